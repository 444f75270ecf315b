//! Connections over loopback: strangers, lost datagrams, peers that disappear, and stops.

use crate::hosts::{
    LINK, TIMEOUT, answered, client, counts, failed_at, failure, flows, greeting, greeting_to, greeting_with, long,
    pair, part, parts, read_answer, serve_at, server, server_of, start, start_server, stream, was_stopped, window,
};
use linerate_engine::Conductor as _;
use linerate_engine::testing::{self, Reached, Session, sessions};
use linerate_model::{
    Assignment, Direction, Endpoints, LinkId, Meter, Net, SessionKey, SocketOptions, StreamTask, Task, TransactStyle,
    TransactTask, Transport,
};
use linerate_streams::Streams;
use linerate_sys::clock;
use linerate_testsuite::wait_until;
use linerate_units::OpRate;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

#[test]
fn strangers_get_no_answer() {
    let wrong_key = greeting(6);
    // The session's key for another server of the session, where somebody may have seen the greeting.
    let other_link = greeting_to(LinkId(LINK.0 + 1), 5, false, 0);
    for (transport, greeting) in [
        (Transport::Tcp, &wrong_key),
        (Transport::Tcp, &other_link),
        (Transport::Udp, &wrong_key),
        (Transport::Udp, &other_link),
    ] {
        let (own, theirs) = parts(&Task::Stream(stream(transport)));
        let (client, server) = pair(long(own.clone()), long(theirs));
        testing::scope(|scope| {
            let serving = start(scope, &server);
            let address = server_of(&client);
            match transport {
                Transport::Tcp => {
                    let _silent = TcpStream::connect(address).expect("connects");
                    let mut stranger = TcpStream::connect(address).expect("connects");
                    stranger.write_all(greeting).expect("writes");
                    assert_eq!(stranger.read(&mut [0; 32]).unwrap_or(0), 0, "closed, nothing answered");
                }
                Transport::Udp => {
                    let stranger = UdpSocket::bind("127.0.0.1:0").expect("binds");
                    stranger.send_to(greeting, address).expect("sends");
                    no_answer(&stranger);
                }
            }
            if transport == Transport::Tcp {
                let mut role = own.roles[0].clone();
                role.connects = vec![LinkId(LINK.0 + 1)];
                for stranger in [
                    Assignment { key: SessionKey([6; 16]), ..own.clone() },
                    Assignment { roles: vec![role], ..own.clone() },
                ] {
                    let error = failed_at(stranger, address);
                    assert!(error.contains("did not answer the trial's hello"), "{error}");
                }
            }
            // The right client still connects.
            let connecting = start(scope, &client);
            window(&server);
            window(&client);
            for (session, running) in [(&client, connecting), (&server, serving)] {
                session.stop("enough");
                running.join().expect("no panic").expect_err("stopped, or its peer is gone");
            }
        });
    }
}

/// Receives one datagram, and checks that no other one follows.
fn only_answer(socket: &UdpSocket) -> Vec<u8> {
    socket.set_read_timeout(Some(TIMEOUT)).expect("sets");
    let mut buffer = [0; 2_048];
    let length = socket.recv(&mut buffer).expect("an answer");
    no_answer(socket);
    buffer[..length].to_vec()
}

/// Checks that no datagram arrives within 50 ms.
fn no_answer(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("sets");
    socket.recv(&mut [0; 2_048]).expect_err("nothing is answered");
}

#[test]
fn datagrams_go_to_nobody_who_does_not_read_the_answers() {
    let spec = StreamTask { direction: Direction::Receive, ..stream(Transport::Udp) };
    let (own, theirs) = parts(&Task::Stream(spec));
    // The server sends.
    let greeting = greeting_with(5, true, 0);
    for proves in [false, true] {
        let (client, server) = pair(long(own.clone()), long(theirs.clone()));
        testing::scope(|scope| {
            let serving = start(scope, &server);
            let address = server_of(&client);
            let victim = UdpSocket::bind("127.0.0.1:0").expect("binds");
            victim.send_to(&greeting, address).expect("sends");
            let answer = only_answer(&victim);
            assert_eq!(answer.len(), greeting.len(), "no answer is longer than its greeting");
            // An attacker does not know the nonce of the answer, but may guess the port.
            let (port, nonce) = read_answer(&answer);
            let port = SocketAddr::new(address.ip(), port);
            victim.send_to(&greeting, port).expect("sends");
            victim.send_to(&greeting_with(5, true, 1), port).expect("sends");
            no_answer(&victim);
            if proves {
                // If a greeting or an answer is lost, a repeated greeting gets the same answer.
                let confirmation = greeting_with(5, true, nonce);
                victim.send_to(&greeting, address).expect("sends");
                assert_eq!(only_answer(&victim), answer);
                for _ in 0..2 {
                    victim.send_to(&confirmation, port).expect("sends");
                    assert_eq!(read_answer(&only_answer(&victim)), (0, nonce));
                }
                start_server(&client);
                victim.set_read_timeout(Some(TIMEOUT)).expect("sets");
                victim.recv(&mut [0; 2_048]).expect("the stream comes");
            } else {
                // The right client still connects.
                let connecting = start(scope, &client);
                window(&server);
                no_answer(&victim);
                client.stop("enough");
                assert!(was_stopped(&connecting.join().expect("no panic")));
            }
            server.stop("enough");
            serving.join().expect("no panic").expect_err("stopped, or its client is gone");
        });
    }
    let (client, server) = pair(own, theirs);
    testing::scope(|scope| {
        let serving = start(scope, &server);
        let victim = UdpSocket::bind("127.0.0.1:0").expect("binds");
        victim.send_to(&greeting, server_of(&client)).expect("sends");
        only_answer(&victim);
        start_server(&client);
        let error = failure(serving.join().expect("no panic"));
        assert!(error.contains("0 of 1 flows"), "nobody confirmed: {error}");
    });
}

#[test]
fn a_client_repeats_lost_greetings() {
    let listener = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let own = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let port = own.local_addr().expect("is bound").port();
    let address = listener.local_addr().expect("is bound");
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; 64];
        for (socket, port) in [(&listener, port), (&own, 0)] {
            // The first greeting is lost, and so is the answer to the second.
            for lost in [true, true, false] {
                let (length, from) = socket.recv_from(&mut bytes).expect("is greeted");
                let (nonce, answer) = answered(&bytes[..length], port, 9);
                if port == 0 {
                    assert_eq!(nonce, 9, "the nonce comes back");
                }
                if !lost {
                    socket.send_to(&answer, from).expect("sends");
                }
            }
        }
    });
    let (own, theirs) = parts(&Task::Stream(stream(Transport::Udp)));
    let (client, server) = pair(own, theirs);
    testing::scope(|scope| {
        let connecting = start(scope, &client);
        serve_at(&server, address);
        assert!(client.wait_for(Reached::Ready, TIMEOUT));
        assert_eq!(client.reached(), Reached::Ready, "it is connected");
        client.stop("enough");
        assert!(was_stopped(&connecting.join().expect("no panic")));
    });
    answering.join().expect("answers");
}

#[test]
fn many_flows_connect_and_a_stop_ends_their_listeners() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let task = Task::Stream(StreamTask { net: flows(transport, 300), ..stream(transport) });
        let servers = (0..30).map(|path| server(path, Ipv4Addr::LOCALHOST.into())).collect();
        // The third session does not become ready, so the others do not start.
        let all = sessions([part(&task, vec![client()], 30), part(&task, servers, 30), part(&task, Vec::new(), 30)]);
        testing::scope(|scope| {
            let (connecting, serving) = (start(scope, &all[0]), start(scope, &all[1]));
            all[2].listening(Endpoints::new()).expect("goes on");
            assert!(all[0].wait_for(Reached::Ready, TIMEOUT));
            assert_eq!(all[0].reached(), Reached::Ready, "all flows are connected");
            all[1].stop("enough");
            assert!(was_stopped(&serving.join().expect("no panic")));
            assert!(was_stopped(&connecting.join().expect("no panic")));
        });
    }
}

#[test]
fn a_stop_ends_the_connecting() {
    // Servers that do not answer.
    let tcp = TcpListener::bind("127.0.0.1:0").expect("listens");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("binds");
    for (transport, address) in [(Transport::Tcp, tcp.local_addr()), (Transport::Udp, udp.local_addr())] {
        let (own, theirs) = parts(&Task::Stream(stream(transport)));
        let (client, server) = pair(own, theirs);
        testing::scope(|scope| {
            let connecting = start(scope, &client);
            serve_at(&server, address.expect("is bound"));
            // The client has sent its greeting, and its connection stays open.
            let greeted = match transport {
                Transport::Tcp => {
                    let mut stream = tcp.accept().expect("accepts").0;
                    stream.read_exact(&mut greeting(0)).map(|()| Some(stream))
                }
                Transport::Udp => udp.recv(&mut greeting(0)).map(|_| None),
            };
            let _stream = greeted.expect("is greeted");
            client.stop("enough");
            // It did not wait for the answer.
            assert!(was_stopped(&connecting.join().expect("no panic")));
        });
    }
}

/// Returns the first bytes that a client sends to the server's address.
fn first_bytes(task: &Task, key: SessionKey) -> Vec<u8> {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("listens");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let transport = task.net().expect("it has sockets").transport;
    let third_party = if transport == Transport::Tcp { tcp.local_addr() } else { udp.local_addr() };
    let own = Assignment { key, ..parts(task).0 };
    let (client, other) = pair(own.clone(), own);
    let mut sent = vec![0; 2_048];
    testing::scope(|scope| {
        let connecting = start(scope, &client);
        serve_at(&other, third_party.expect("is bound"));
        let length = match transport {
            Transport::Tcp => {
                let mut stream = tcp.accept().expect("accepts").0;
                let mut length = stream.read(&mut sent).expect("is greeted");
                // Nothing follows before the answer, which does not belong to this trial.
                stream.set_read_timeout(Some(Duration::from_millis(50))).expect("sets");
                length += stream.read(&mut sent[length..]).unwrap_or(0);
                stream.write_all(&[b'+'; 56]).expect("answers");
                length + stream.read(&mut sent[length..]).unwrap_or(0)
            }
            Transport::Udp => udp.recv(&mut sent).expect("is greeted"),
        };
        sent.truncate(length);
        client.stop("enough");
        connecting.join().expect("no panic").expect_err("stopped, or the answer is wrong");
    });
    sent
}

/// Attack: the requester of a session chooses a key that contains a command, and the address of a server outside the
/// trial. Before that server proves that it has the key, it gets only a keyed hash with a salt of the client.
#[test]
fn requests_forged_at_third_parties_hold_no_byte_of_the_callers_choice() {
    let command = SessionKey(*b"\r\nFLUSHALL\r\nEXIT");
    let connect = TransactTask { style: TransactStyle::Connect, ..TransactTask::plain(Transport::Tcp) };
    for task in [
        Task::Stream(stream(Transport::Tcp)),
        Task::Stream(stream(Transport::Udp)),
        Task::Transact(TransactTask::plain(Transport::Tcp)),
        Task::Transact(TransactTask::plain(Transport::Udp)),
        Task::Transact(connect),
    ] {
        let [once, again] = [first_bytes(&task, command), first_bytes(&task, command)];
        for part in command.0.windows(3) {
            assert!(!once.windows(3).any(|sent| sent == part), "{task:?}: {}", once.escape_ascii());
        }
        assert_eq!((once.len(), again.len()), (56, 56), "{task:?}: a greeting and no more");
        let same = once[8..].iter().zip(&again[8..]).filter(|(one, other)| one == other).count();
        assert!(same < 12, "{task:?}: {same} of 48 bytes are the same, so the requester chooses them");
    }
}

/// Attack: strangers connect during the load and send nothing or an incomplete greeting. Each once stalled the
/// answering thread for a quarter of a second.
#[test]
fn silent_strangers_delay_no_transaction() {
    let task = Task::Transact(TransactTask { style: TransactStyle::Connect, ..TransactTask::plain(Transport::Tcp) });
    let (own, theirs) = parts(&task);
    let (client, server) = pair(own, theirs);
    testing::scope(|scope| {
        let serving = start(scope, &server);
        let address = server_of(&client);
        let connecting = start(scope, &client);
        window(&server);
        let strangers: Vec<TcpStream> = (0..60u8)
            .map(|number| {
                let mut stranger = TcpStream::connect(address).expect("connects");
                stranger.write_all(&greeting(6)[..usize::from(number % 56)]).expect("writes");
                stranger
            })
            .collect();
        let client_counts = counts(connecting.join().expect("no panic"));
        let server_counts = counts(serving.join().expect("no panic"));
        drop(strangers);
        let transactions = client_counts.transactions.expect("it asked");
        // A stalled client may fail a transaction. If the server waits for strangers, most transactions fail.
        assert!(transactions.completed > 10 * transactions.failed, "{transactions:?}");
        assert!(server_counts.flows[0].received_bytes > 0);
    });
}

/// Returns `Some` after the session has moved data.
fn has_traffic(session: &Session) -> Option<()> {
    let Meter { sent_bytes, received_bytes, operations, .. } = session.meter()?;
    (sent_bytes + received_bytes + operations > 0).then_some(())
}

#[test]
fn a_peer_that_disappears_is_named() {
    for task in [
        Task::Stream(stream(Transport::Tcp)),
        Task::Stream(StreamTask { direction: Direction::Receive, ..stream(Transport::Tcp) }),
        Task::Stream(stream(Transport::Udp)),
        Task::Transact(TransactTask::plain(Transport::Tcp)),
        // The only request of a closed loop may be lost with the port. An open loop sends another, which ICMP refuses.
        Task::Transact(TransactTask { rate: Some(OpRate::per_second(1_000)), ..TransactTask::plain(Transport::Udp) }),
        Task::Transact(TransactTask { style: TransactStyle::Connect, ..TransactTask::plain(Transport::Tcp) }),
    ] {
        let (own, theirs) = parts(&task);
        let (client, server) = pair(long(own), long(theirs));
        testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            wait_until("there is traffic", || has_traffic(&client));
            server.stop("enough");
            assert!(was_stopped(&server_thread.join().expect("no panic")));
            let error = failure(client_thread.join().expect("no panic"));
            assert!(error.contains("127.0.0.1") && error.contains("went away"), "{task:?}: {error}");
            assert!(!error.contains("for 5 s"), "the connection or ICMP shows it, not silence: {error}");
            assert!(client.has_ended());
        });
    }
}

#[test]
fn a_stop_ends_the_window_and_leaves_no_thread() {
    for task in [
        Task::Stream(StreamTask { net: flows(Transport::Tcp, 3), ..stream(Transport::Tcp) }),
        Task::Stream(stream(Transport::Udp)),
        Task::Transact(TransactTask::plain(Transport::Udp)),
    ] {
        let (own, theirs) = parts(&task);
        let (client, server) = pair(long(own), long(theirs));
        testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            let (_, closes) = window(&client);
            window(&server);
            let threads: Vec<_> = client.threads().into_iter().chain(server.threads()).collect();
            assert!(threads.iter().any(|thread| thread.sends) && threads.iter().any(|thread| !thread.sends));
            let path = |tid: i32| format!("/proc/self/task/{tid}");
            assert!(threads.iter().all(|thread| std::fs::exists(path(thread.tid)).expect("stat")), "{threads:?}");
            wait_until("there is traffic", || has_traffic(&client));
            if matches!(task, Task::Stream(_)) {
                let has_received = |meter: Meter| (meter.received_bytes > 0).then_some(());
                wait_until("the server receives", || server.meter().and_then(has_received));
            }
            assert!(!client.has_ended());
            client.stop("enough");
            assert!(was_stopped(&client_thread.join().expect("no panic")));
            server.stop("enough");
            server_thread.join().expect("no panic").expect_err("stopped, or its client is gone");
            assert!(clock::now() < closes, "they did not wait for the window's end");
            for thread in threads {
                // A joined thread may be listed for a moment.
                wait_until(&format!("{thread:?} is gone"), || {
                    (!std::fs::exists(path(thread.tid)).expect("stat")).then_some(())
                });
            }
        });
    }
}

#[test]
fn errors_name_what_cannot_be_opened() {
    let task = Task::Stream(stream(Transport::Tcp));
    let foreign = part(&task, vec![server(0, [198, 18, 255, 1].into())], 1);
    let error = failure(linerate_engine::testing::run(&Streams, [foreign]).remove(0));
    assert!(error.contains("198.18.255.1") && error.contains("ip address"), "no address of this host: {error}");

    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for transport in [Transport::Tcp, Transport::Udp] {
        let error = failed_at(parts(&Task::Stream(stream(transport))).0, nobody);
        assert!(error.contains("127.0.0.1:1") && error.contains("refused"), "{error}");
        assert!(error.contains("0 of 1 flows connected"), "{error}");
    }

    let socket = SocketOptions { bind_device: Some("nosuch0".into()), ..SocketOptions::default() };
    let net = Net { socket, ..Net::plain(Transport::Tcp) };
    let error = failed_at(parts(&Task::Stream(StreamTask { net, ..stream(Transport::Tcp) })).0, nobody);
    assert!(error.contains("nosuch0"), "{error}");
}
