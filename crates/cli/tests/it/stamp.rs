//! `linerate serve --stamp`, as a user types it.

use crate::firewall::Host;
use crate::program::{TestFolder, words};
use linerate_probes::stamp::{ErrorEstimate, Key, Mode, Sender};
use linerate_sys::clock;
use linerate_testsuite::servers::StampSuite;
use linerate_testsuite::{lab_test, server_test};
use std::fs::{Permissions, set_permissions};
use std::io::ErrorKind;
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

/// The agent listens at all addresses of both families, and has two on the link.
#[lab_test]
fn replies_go_to_allowed_sources_from_the_address_that_was_asked() {
    let place = TestFolder::new();
    let client = Host::new();
    let far = Host::new();
    client.link(("eth0", "198.18.7.1"), &far, ("eth0", "198.18.7.2"));
    client.does("ip address add 198.18.7.3/24 dev eth0");
    far.does("ip address add 198.18.7.4/24 dev eth0");
    let line = words("serve --ephemeral --stamp --stamp-allow 198.18.7.3");
    let mut agent = far.network.enter(|| place.start(&line)).expect("entered");
    assert_eq!(port(&agent.message("answers STAMP senders at")), 862);
    agent.message("confined");
    let [mut refused, mut allowed] = [1, 2].map(|ssid| Sender::new(Mode::Unauthenticated, ssid));
    let sockets = ["198.18.7.1:0", "198.18.7.3:0"].map(|from| {
        let socket = client.network.enter(|| UdpSocket::bind(from)).expect("entered").expect("binds");
        // A connected socket takes datagrams of this address and port only.
        socket.connect("198.18.7.4:862").expect("connects");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        socket
    });
    for (sender, socket) in [&mut refused, &mut allowed].into_iter().zip(&sockets) {
        let mut packet = Vec::new();
        sender.next(clock::unix_now().cast_signed(), ErrorEstimate::unsynchronised(), &[], &mut packet);
        socket.send(&packet).expect("sends");
    }
    let mut buffer = [0; 1_500];
    let length = sockets[1].recv(&mut buffer).expect("a reply");
    let answer = allowed.read(&buffer[..length], clock::unix_now().cast_signed()).expect("its reply");
    assert_eq!((answer.reflected.sequence, answer.reflected.sender_ttl), (0, 64));
    // A reply to the first packet would have come before.
    sockets[0].set_nonblocking(true).expect("sets");
    assert_eq!(sockets[0].recv(&mut buffer).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

#[server_test(Program("stamp-suite"))]
fn an_agent_answers_stamp_suite() {
    let place = TestFolder::new();
    let mut agent = place.start(&words("serve --ephemeral --listen 127.0.0.1:0 --stamp=0"));
    let port = port(&agent.message("answers STAMP senders at"));
    let summary = StampSuite::send(port, &["--count", "20", "--send-delay", "5ms", "--timeout", "30"]);
    assert_eq!((&summary["packets_sent"], &summary["packets_lost"]), (&20.into(), &0.into()), "{summary}");
}
