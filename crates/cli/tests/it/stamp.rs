//! `linerate serve --stamp`, as a user types it.

use crate::program::{TestFolder, words};
use linerate_probes::stamp::{ErrorEstimate, Key, Mode, Sender};
use linerate_sys::clock;
use linerate_testsuite::server_test;
use linerate_testsuite::servers::StampSuite;
use std::fs::{Permissions, set_permissions};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// Reads the port from the message of the start.
fn port(message: &str) -> u16 {
    let digits = message.rsplit("UDP port ").next().and_then(|rest| rest.split_whitespace().next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no port in: {message}"))
}

#[test]
fn a_confined_agent_answers_stamp_senders_that_have_its_key() {
    let place = TestFolder::new();
    let digits = "5a".repeat(32);
    let file = place.file("stamp.key", &digits);
    set_permissions(&file, Permissions::from_mode(0o600)).expect("set");
    let line = format!("serve --ephemeral --listen 127.0.0.1:0 --stamp=0 --stamp-key-file {file}");
    let mut agent = place.start(&words(&line));
    let port = port(&agent.message("answers STAMP senders with the key at"));
    agent.message("confined");
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    socket.connect((Ipv4Addr::LOCALHOST, port)).expect("connects");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    let keys = [Key::new(b"another key"), Key::from_hex(&digits).expect("a key")];
    let mut senders = keys.map(|key| Sender::new(Mode::Authenticated(key), 1));
    for sender in &mut senders {
        let mut packet = Vec::new();
        sender.next(clock::unix_now().cast_signed(), ErrorEstimate::unsynchronised(), &[], &mut packet);
        socket.send(&packet).expect("sends");
    }
    let mut buffer = [0; 1_500];
    let length = socket.recv(&mut buffer).expect("a reply");
    let now_ns = clock::unix_now().cast_signed();
    let answer = senders[1].read(&buffer[..length], now_ns).expect("the first reply is for the agent's key");
    assert_eq!((answer.sequence, answer.reflected.sequence), (0, 0));
}

#[test]
fn a_key_file_that_cannot_be_used_ends_the_agent_at_once() {
    let place = TestFolder::new();
    let file = place.file("stamp.key", "5a");
    set_permissions(&file, Permissions::from_mode(0o600)).expect("set");
    let serve = "serve --ephemeral --listen 127.0.0.1:0";
    place.run(&words(&format!("{serve} --stamp=0 --stamp-key-file {file}"))).says(2, &["stamp.key", "16"]);
    place.run(&words(&format!("{serve} --stamp-key-file {file}"))).says(2, &["--stamp"]);
    place.run(&words(&format!("{serve} --stamp=box.example"))).says(2, &["--stamp=8862"]);
}

#[server_test(Program("stamp-suite"))]
fn an_agent_answers_stamp_suite() {
    let place = TestFolder::new();
    let mut agent = place.start(&words("serve --ephemeral --listen 127.0.0.1:0 --stamp=0"));
    let port = port(&agent.message("answers STAMP senders at"));
    let summary = StampSuite::send(port, &["--count", "20", "--send-delay", "5ms", "--timeout", "30"]);
    assert_eq!((&summary["packets_sent"], &summary["packets_lost"]), (&20.into(), &0.into()), "{summary}");
}
