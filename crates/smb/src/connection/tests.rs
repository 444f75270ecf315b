//! Connections to servers that are made up for each test.

use super::*;
use linerate_testsuite::wait_until;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};

const FILE: [u8; 16] = [7; 16];

/// A connection to a server that does `serve`.
fn connect(silence: Duration, serve: impl FnOnce(TcpStream) + Send + 'static) -> Arc<Connection> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    thread::spawn(move || serve(listener.accept().expect("accepted").0));
    Connection::new(stream, silence).expect("set up")
}

/// The next request, from its header on; none when there are no more.
fn request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 4];
    client.read_exact(&mut head).ok()?;
    let mut message = vec![0; u32::from_be_bytes(head) as usize];
    client.read_exact(&mut message).expect("whole");
    Some(message)
}

/// An answer to it, with `data` behind its header, that brings what credits it asks for.
fn answer(request: &[u8], data: &[u8]) -> Vec<u8> {
    let length = (HEADER + data.len()) as u32;
    let mut answer = length.to_be_bytes().to_vec();
    answer.extend_from_slice(&request[..HEADER]);
    answer[4 + FLAGS] |= FROM_SERVER as u8;
    answer.extend_from_slice(data);
    answer
}

fn read(bytes: usize) -> Request<'static> {
    Request::read(&FILE, 0, bytes)
}

/// Gets the credits that a negotiation brings.
fn begin(connection: &Arc<Connection>) {
    connection.submit(read(1)).and_then(Ticket::wait).expect("answered");
}

#[test]
fn each_thread_gets_its_own_answer_whatever_their_order() {
    const THREADS: usize = 8;
    let connection = connect(SILENCE, |mut client| {
        let first = request(&mut client).expect("one");
        client.write_all(&answer(&first, b"")).expect("sent");
        loop {
            let asked: Vec<_> = (0..THREADS).map_while(|_| request(&mut client)).collect();
            if asked.len() < THREADS {
                return;
            }
            for request in asked.iter().rev() {
                client.write_all(&answer(request, &request[TREE..TREE + 4])).expect("sent");
            }
        }
    });
    begin(&connection);
    thread::scope(|scope| {
        for number in 0..THREADS as u32 {
            let connection = &connection;
            scope.spawn(move || {
                for round in 0..200 {
                    let tree = number * 1000 + round;
                    let answer = connection.submit(Request { tree, ..read(1) }).and_then(Ticket::wait);
                    assert_eq!(answer.expect("answered").message()[HEADER..], tree.to_le_bytes());
                }
            });
        }
    });
}

/// An answer whose first `pieces` bytes, of five, come one by one, a quarter of the time apart for which a server may
/// be silent.
fn answered_in(pieces: usize) -> Result<Answer, CallError> {
    let silence = Duration::from_secs(3);
    let connection = connect(silence, move |mut client| {
        let asked = request(&mut client).expect("one");
        let whole = answer(&asked, b"");
        let (slow, rest) = whole.split_at(5);
        for byte in slow.iter().take(pieces) {
            // The time that a byte takes is what is tested.
            thread::sleep(silence / 4);
            client.write_all(&[*byte]).expect("sent");
        }
        if pieces == slow.len() {
            client.write_all(rest).expect("sent");
        }
        // Says nothing more, and stays until the other end has gone.
        while request(&mut client).is_some() {}
    });
    connection.submit(read(1)).and_then(Ticket::wait)
}

#[test]
fn an_answer_may_take_long_as_long_as_it_comes() {
    assert_eq!(answered_in(5).expect("whole").message().len(), HEADER);
}

#[test]
fn a_server_that_owes_an_answer_is_not_silent_for_long() {
    let lost = answered_in(3).expect_err("not whole").to_string();
    assert_eq!(lost, "the server was silent for 3s");
}

#[test]
fn a_server_that_is_at_work_for_long_is_asked_whether_it_is_there() {
    // Four times as long as the time after which a connection looks whether it should ask.
    let silence = 4 * LOOK;
    let connection = connect(silence, move |mut client| {
        let first = request(&mut client).expect("one");
        client.write_all(&answer(&first, b"")).expect("sent");
        let slow = request(&mut client).expect("another");
        let begun = Instant::now();
        while begun.elapsed() <= silence {
            let echo = request(&mut client).expect("asked");
            assert_eq!(echo[COMMAND], 13);
            client.write_all(&answer(&echo, b"")).expect("sent");
        }
        client.write_all(&answer(&slow, b"")).expect("sent");
    });
    begin(&connection);
    connection.submit(read(1)).and_then(Ticket::wait).expect("answered at last");
}

#[test]
fn what_nobody_asked_for_is_no_answer() {
    let reflecting = connect(SILENCE, |mut client| {
        let sent = request(&mut client).expect("one");
        let back = [&(sent.len() as u32).to_be_bytes()[..], &sent].concat();
        client.write_all(&back).expect("sent");
    });
    let lost = reflecting.submit(read(1)).and_then(Ticket::wait).expect_err("its own").to_string();
    assert!(lost.starts_with("it sent a request"), "{lost}");
    let another = connect(SILENCE, |mut client| {
        let mut sent = request(&mut client).expect("one");
        sent[COMMAND] = 9;
        client.write_all(&answer(&sent, b"")).expect("sent");
    });
    let lost = another.submit(read(1)).and_then(Ticket::wait).expect_err("another's").to_string();
    assert!(lost.starts_with("an answer could not be verified"), "{lost}");
    let long = connect(SILENCE, |mut client| client.write_all(&[0, 0x20, 0, 0]).expect("sent"));
    let lost = long.submit(read(1)).and_then(Ticket::wait).expect_err("2 MiB").to_string();
    assert!(lost.contains("none that was asked for"), "{lost}");
}

#[test]
fn an_end_while_nothing_is_under_way_is_seen() {
    let (end, ending) = std::sync::mpsc::channel::<()>();
    let connection = connect(SILENCE, move |mut client| {
        let first = request(&mut client).expect("one");
        client.write_all(&answer(&first, b"")).expect("sent");
        // Fails when the test drops its end.
        let _ = ending.recv();
    });
    begin(&connection);
    assert!(!connection.is_ended());
    drop(end);
    wait_until("the end is seen", || connection.is_ended().then_some(()));
}

#[test]
fn a_server_that_lets_nothing_more_be_asked_is_not_waited_for() {
    let connection = connect(Duration::from_secs(1), |mut client| {
        while let Some(mut asked) = request(&mut client) {
            asked[CREDITS..CREDITS + 2].fill(0);
            client.write_all(&answer(&asked, b"")).expect("sent");
        }
    });
    begin(&connection);
    let lost = connection.submit(read(1)).err().expect("no credits").to_string();
    assert_eq!(lost, "the server lets nothing more be asked");
}

#[test]
fn a_peer_that_ends_or_is_none_is_named() {
    let gone = connect(SILENCE, |mut client| drop(request(&mut client)));
    let lost = gone.submit(read(1)).and_then(Ticket::wait).expect_err("nobody is there").to_string();
    assert_eq!(lost, "the server closed the connection");
    assert_eq!(gone.submit(read(1)).err().expect("still so").to_string(), lost);
    let other = connect(SILENCE, |mut client| client.write_all(b"220 mail.example ESMTP\r\n").expect("sent"));
    let lost = other.submit(read(1)).and_then(Ticket::wait).expect_err("none").to_string();
    assert!(lost.starts_with("it sent what is no message of SMB 2 or 3"), "{lost}");
}

/// A server that answers one request after the other takes no more of them while nobody takes its answers.
#[test]
fn what_is_sent_does_not_stand_in_the_way_of_what_comes() {
    const PIECE: usize = 1 << 20;
    let connection = connect(SILENCE, |mut client| {
        let content = vec![1; PIECE];
        while let Some(asked) = request(&mut client) {
            let reads = asked[COMMAND] == 8 && asked.len() < PIECE;
            let data = if reads { &content[..] } else { b"" };
            if client.write_all(&answer(&asked, data)).is_err() {
                return;
            }
        }
    });
    begin(&connection);
    let content = vec![2; PIECE];
    let both = (0..32).flat_map(|_| [read(PIECE), Request::write(&FILE, 0, &content)]);
    // 16 credits each: the last ones wait for those of the first.
    let asked: Vec<_> = both.map(|request| connection.submit(request).expect("sent")).collect();
    let bytes: usize = asked.into_iter().map(|asked| asked.wait().expect("answered").message().len() - HEADER).sum();
    assert_eq!(bytes, 32 * PIECE);
}
