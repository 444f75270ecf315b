//! Hostile servers, and other programs at a server's port.

use crate::sessions::{client, counts, ended, session, stream};
use linerate_engine::testing::Reached;
use linerate_iperf3::Iperf3;
use linerate_model::Transport;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Runs a TCP test against a server that runs `serve` with its control connection. Returns the error.
fn error_of(serve: impl FnOnce(TcpStream, &TcpListener) + Send) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
    let port = listener.local_addr().expect("listens").port();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (control, _) = listener.accept().expect("a client");
            serve(control, &listener);
        });
        ended(client(stream(Transport::Tcp, port), 0, 100)).expect_err("no server of iperf3").to_string()
    })
}

/// Reads exactly `N` bytes.
fn take<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).expect("the client sends");
    bytes
}

/// Follows the protocol until all data flows are connected. Returns the parameters and the data connection.
fn started(control: &mut TcpStream, listener: &TcpListener) -> (Value, TcpStream) {
    let cookie = take::<37>(control);
    control.write_all(&[9]).expect("sent");
    let parameters = text(control);
    control.write_all(&[10]).expect("sent");
    let (mut data, _) = listener.accept().expect("a data connection");
    assert_eq!(take::<37>(&mut data), cookie);
    control.write_all(&[1, 2]).expect("sent");
    (parameters, data)
}

fn text(control: &mut TcpStream) -> Value {
    let length = u32::from_be_bytes(take(control)) as usize;
    let mut text = vec![0; length];
    control.read_exact(&mut text).expect("the client sends");
    serde_json::from_slice(&text).expect("JSON")
}

/// Reads data until the client ends the test.
fn until_end(control: &mut TcpStream, mut data: TcpStream) -> TcpStream {
    let reading = data.try_clone().expect("dup");
    let reader = thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while data.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    assert_eq!(take::<1>(control), [4]);
    control.write_all(&[13]).expect("sent");
    // The reader ends when either end closes.
    drop(reader);
    reading
}

/// Serves a whole test and sends `results`.
fn results_server(results: Vec<u8>) -> impl FnOnce(TcpStream, &TcpListener) + Send {
    move |mut control, listener| {
        let (_, data) = started(&mut control, listener);
        let _data = until_end(&mut control, data);
        text(&mut control);
        let _ = control.write_all(&results);
        // Waits until the client has gone.
        let _ = control.read(&mut [0; 16]);
    }
}

fn message(value: &Value) -> Vec<u8> {
    let text = value.to_string();
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

#[test]
fn servers_of_other_protocols_are_detected() {
    let error = error_of(|mut control, _| control.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").expect("sent"));
    assert!(error.contains("does not speak iperf3's protocol") && error.contains("byte 83"), "{error}");
    let error = error_of(|mut control, _| control.write_all(&[2]).expect("sent"));
    assert!(error.contains("TEST_RUNNING instead of PARAM_EXCHANGE"), "{error}");
    let error = error_of(|mut control, _| {
        take::<37>(&mut control);
    });
    assert!(error.contains("closed the control connection"), "{error}");
    let error = error_of(|mut control, _| control.write_all(&[0xfe, 0, 0, 0, 142, 0, 0, 0, 0]).expect("sent"));
    assert!(error.contains("--username"), "{error}");
}

#[test]
fn a_port_without_a_server_is_reported() {
    // A bound port that does not listen. No other test can take it.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("binds");
    let port = socket.local_addr().expect("bound").as_socket().expect("an address of IPv4").port();
    let error = ended(client(stream(Transport::Tcp, port), 0, 100)).expect_err("nobody").to_string();
    assert!(error.contains("iperf3 -s") && error.contains(&port.to_string()), "{error}");
}

#[test]
fn invalid_results_are_refused() {
    for (results, needle) in [
        (u32::MAX.to_be_bytes().to_vec(), "4294967295 bytes"),
        (0_u32.to_be_bytes().to_vec(), "empty JSON"),
        ([&5_u32.to_be_bytes()[..], b"{\"a\":"].concat(), "no JSON text"),
        (message(&json!([1])), "no object"),
        (message(&json!({"streams": []})), "0 streams"),
        (
            message(
                &json!({"streams": [{"id": 1, "bytes": -7, "jitter": 0, "errors": 0, "packets": 0, "start_time": 0,
                "end_time": 1}]}),
            ),
            "-7 as `bytes`",
        ),
    ] {
        let error = error_of(results_server(results));
        assert!(error.contains(needle), "{needle}: {error}");
    }
}

#[test]
fn a_server_that_disappears_before_the_results_is_reported() {
    let error = error_of(|mut control, listener| {
        let (parameters, data) = started(&mut control, listener);
        assert_eq!(
            (&parameters["tcp"], &parameters["time"], &parameters["omit"]),
            (&json!(true), &json!(1), &json!(0))
        );
        drop(until_end(&mut control, data));
    });
    assert!(error.contains("results were exchanged"), "{error}");
}

/// The whole protocol without iperf3. The counts of the server's end are its results.
#[test]
fn the_results_of_a_server_are_stored() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
    let port = listener.local_addr().expect("listens").port();
    let counted = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut control, _) = listener.accept().expect("a client");
            let (_, data) = started(&mut control, &listener);
            let _data = until_end(&mut control, data);
            let own = text(&mut control);
            assert!(own["streams"][0]["bytes"].as_u64() > Some(0) && own["streams"][0]["id"] == 1, "{own}");
            assert!(own["cpu_util_total"].is_number() && own["sender_has_retransmits"] == 1, "{own}");
            let stream = json!({"id": 1, "bytes": 5_000, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0,
                "start_time": 0, "end_time": 0.5});
            control.write_all(&message(&json!({"streams": [stream], "note": "mine"}))).expect("sent");
            control.write_all(&[14]).expect("sent");
            assert_eq!(take::<1>(&mut control), [16]);
        });
        ended(client(stream(Transport::Tcp, port), 0, 100)).expect("a result")
    });
    let (own, told) = counts(counted);
    let received = told.received.expect("it received");
    assert_eq!((received.payload_bytes, received.window.get()), (5_000, 500_000_000));
    assert_eq!(told.told.expect("its own words")["note"], "mine");
    assert!(own.sent.is_some_and(|sent| sent.payload_bytes > 0) && own.received.is_none());
}

#[test]
fn a_control_connection_that_stalls_can_be_stopped() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
    let port = listener.local_addr().expect("listens").port();
    let session = session(client(stream(Transport::Tcp, port), 0, 100));
    thread::scope(|scope| {
        let running = scope.spawn(|| session.run(&Iperf3));
        let (mut control, _) = listener.accept().expect("a client");
        take::<37>(&mut control);
        assert!(session.wait_for(Reached::Listening, Duration::from_secs(60)));
        session.stop("enough");
        let error = running.join().expect("no panic").expect_err("it was stopped").to_string();
        assert_eq!(error, "the session was stopped");
        // CLIENT_TERMINATE.
        assert_eq!(take::<1>(&mut control), [12]);
    });
}
