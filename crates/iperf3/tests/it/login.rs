//! Logins to servers with users: Debian's iperf3, and a server that shows what it receives.

use crate::sessions::{client, counts, ended, stream};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_iperf3::public_key;
use linerate_model::{Assignment, Iperf3End, Iperf3Login, Iperf3Server, Password, StreamTask, Transport};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::{Iperf3 as Witness, KeyPair};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// A user name beyond ASCII.
const USER: &str = "j\u{fc}rg";
const PASSWORD: &str = "p\u{e4}ss,{w}ord";

/// Returns a stream to the server at `port` with a login that is encrypted for `keys`.
fn as_user(port: u16, keys: &KeyPair, user: &str, password: &str) -> Assignment {
    let text = fs::read_to_string(&keys.public).expect("the public key");
    let login = Iperf3Login { user: user.to_owned(), public_key: public_key(&text).expect("a public key") };
    let server = Iperf3Server { address: Ipv4Addr::LOCALHOST.into(), port, report: false, login: Some(login) };
    let task = StreamTask { iperf3: Some(Iperf3End::Server(server)), ..stream(Transport::Tcp, port) };
    let assignment = client(task, 0, 200);
    Assignment { password: Some(Password(password.to_owned())), ..assignment }
}

#[server_test(Program("iperf3"), Program("openssl"))]
fn a_user_who_logs_in_is_served() {
    let witness = Witness::serve_user(USER, PASSWORD);
    // A repeat logs in again.
    for _ in 0..2 {
        let (own, told) = counts(ended(as_user(witness.port(), &witness.keys(), USER, PASSWORD)).expect("a result"));
        assert!(own.sent.is_some_and(|sent| sent.payload_bytes > 0) && told.received.is_some());
    }
}

#[server_test(Program("iperf3"), Program("openssl"))]
fn the_error_of_a_refused_or_missing_login_says_what_to_check() {
    let witness = Witness::serve_user(USER, PASSWORD);
    let folder = tempfile::tempdir().expect("a folder");
    let (keys, other) = (witness.keys(), KeyPair::create(folder.path()));
    for (keys, user, password) in [(&keys, USER, "secret"), (&keys, "ann", PASSWORD), (&other, USER, PASSWORD)] {
        let error = ended(as_user(witness.port(), keys, user, password)).expect_err("no such user").to_string();
        assert!(error.contains(&format!("refused the login of `{user}`")), "{error}");
        assert!(error.contains("clocks of both hosts") && !error.contains(password), "{error}");
    }
    let error = ended(client(stream(Transport::Tcp, witness.port()), 0, 200)).expect_err("no login").to_string();
    assert!(error.contains("--username and --rsa-public-key-path"), "{error}");
}

/// Receives a client's parameters, sends `answer` and closes the connection. Returns the decoded token.
fn refused_token(listener: &TcpListener, answer: &[u8]) -> Vec<u8> {
    let (mut control, _) = listener.accept().expect("a client");
    let mut cookie = [0; 37];
    control.read_exact(&mut cookie).expect("a cookie");
    control.write_all(&[9]).expect("sent");
    let mut length = [0; 4];
    control.read_exact(&mut length).expect("a length");
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut text).expect("the parameters");
    let parameters: Value = serde_json::from_slice(&text).expect("JSON");
    control.write_all(answer).expect("sent");
    STANDARD.decode(parameters["authtoken"].as_str().expect("a token")).expect("base64")
}

#[server_test(Program("openssl"))]
fn a_login_is_sent_with_oaep_first_and_with_the_time_of_this_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = KeyPair::create(folder.path());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
    let port = listener.local_addr().expect("listens").port();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    // After a failed login iperf3 3.12 answers this, and iperf3 3.21 closes the connection.
    for answer in [&[0xfe, 0, 0, 0, 142][..], &[]] {
        let begin = now();
        let tokens = thread::scope(|scope| {
            let server = scope.spawn(|| [(); 2].map(|()| refused_token(&listener, answer)));
            let error = ended(as_user(port, &keys, USER, PASSWORD)).expect_err("refused twice").to_string();
            assert!(error.contains(&format!("refused the login of `{USER}`")), "{error}");
            server.join().expect("no panic")
        });
        for (padding, token) in ["oaep", "pkcs1"].iter().zip(tokens) {
            let text = String::from_utf8(keys.decrypt(padding, &token)).expect("UTF-8");
            let time = text.strip_prefix(&format!("user: {USER}\npwd:  {PASSWORD}\nts:   ")).expect("iperf3's form");
            assert!((begin..=now()).contains(&time.parse().expect("seconds")), "{text}");
        }
    }
}
