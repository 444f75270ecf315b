//! Strangers at the ports of a session: what they are sent, and what they can take up.

use super::*;
use crate::greeting::{self, GREET};
use crate::message::put_call;
use crate::record::put_record;
use crate::server::unproven::LIMITS;
use std::time::Duration;

fn call(to: Procedure, credential: &Credential, args: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_call(&mut bytes, 7, to, credential, args);
    bytes
}

/// The bytes that come to `socket` in answer to `request`.
fn answer(socket: &UdpSocket, request: &[u8], server: SocketAddr) -> Vec<u8> {
    socket.send_to(request, server).expect("sends");
    let mut bytes = vec![0; 64 << 10];
    // A server that answers at all does so at once.
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
    let length = socket.recv(&mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

/// The attack: calls over UDP with the forged source of a victim. The attacker may even hold the session's key, and a
/// ticket of its own; what it cannot do is read what the server sends to the victim.
#[test]
fn a_spoofed_source_is_sent_no_more_than_it_sent() {
    let open: Server =
        Server::start(Transport::Udp, LOOPBACK, vec![Arc::new(TestProgram::without_data())]).expect("listens");
    let session = serve(Transport::Udp, vec![Arc::new(TestProgram::new())]);
    let mut attacker = caller(Transport::Udp, session.address());
    let ticket = attacker.greet(&KEY).expect("holds the key");
    let args = program::arguments(RpcCall::Read, &[0; 60_000]);
    let read = attacker.ask("READ", of(RpcCall::Read), &ticket, &args, SOON).expect("is answered");
    assert!(read.len() > 60_000, "with its own source it is");

    let none = Credential::none();
    let null = call(of(RpcCall::Null), &none, &[]);
    let [mut short, mut other] = [null[..12].to_vec(), null.clone()];
    (short[11], other[11]) = (3, 3);
    let requests = [
        null.clone(),
        short,
        other,
        call(of(RpcCall::Read), &ticket, &args),
        call(of(RpcCall::Read), &Credential::short(&KEY.0), &args),
        call(of(RpcCall::Read), &Credential::sys("host", 0, 0), &args),
        call(GREET, &none, &greeting::arguments(&KEY, &[1; 16])),
        call(GREET, &none, &[]),
        call(Procedure { program: 100_003, ..of(RpcCall::Null) }, &none, &[]),
        call(Procedure { version: 9, ..of(RpcCall::Null) }, &none, &[]),
        null[..null.len() - 4].to_vec(),
        Vec::new(),
    ];
    for server in [open.address(), session.address()] {
        let mut sent = 0;
        let mut received = 0;
        for request in &requests {
            // A new socket, so that a late answer to the request before is not taken for one to this.
            let victim = UdpSocket::bind(LOOPBACK).expect("binds");
            let answer = answer(&victim, request, server);
            assert!(answer.len() <= request.len(), "{} bytes for {} to {request:02x?}", answer.len(), request.len());
            (sent, received) = (sent + request.len(), received + answer.len());
        }
        assert!(received > 0 && received <= sent, "{received} bytes for {sent}");
    }
    // A server that is held up is asked again by who may.
    let calls = 1..=1 + attacker.retransmitted();
    assert!(calls.contains(&session.service().calls), "strangers are not counted among the session's calls");
}

/// The attack: more connections than there are places, silent, half greeted or with long records, while a trial runs.
#[test]
fn strangers_exhaust_no_server_over_tcp() {
    let server = serve(Transport::Tcp, vec![Arc::new(TestProgram::new())]);
    let mut known = caller(Transport::Tcp, server.address());
    let credential = known.greet(&KEY).expect("holds the key");
    let args = program::arguments(RpcCall::Echo, &[7; 1_000]);
    let mut greeting = Vec::new();
    put_record(&mut greeting, |out| put_call(out, 1, GREET, &Credential::none(), &greeting::arguments(&KEY, &[1; 16])));
    let strangers: Vec<TcpStream> = (0..3 * LIMITS.places_each)
        .map(|number| {
            let mut stranger = TcpStream::connect(server.address()).expect("connects");
            let said = match number % 4 {
                0 => Vec::new(),
                1 => greeting[..number % greeting.len()].to_vec(),
                // A record of 1 MiB, of which 2 KiB come.
                2 => [&0x8010_0000_u32.to_be_bytes()[..], &[1; 2_048]].concat(),
                _ => vec![0x80, 0, 0, 0],
            };
            // It may be closed already.
            let _ = stranger.write_all(&said);
            if number % 20 == 0 {
                known.ask("ECHO", of(RpcCall::Echo), &credential, &args, SOON).expect("is served");
            }
            stranger
        })
        .collect();
    let is_closed = |stranger: &TcpStream| {
        stranger.set_nonblocking(true).expect("sets");
        match (&*stranger).read(&mut [0; 64]) {
            Ok(read) => read == 0,
            Err(error) => !linerate_sys::socket::is_timeout(&error),
        }
    };
    wait_until("all but one address's places are closed", || {
        (strangers.iter().filter(|stranger| !is_closed(stranger)).count() <= LIMITS.places_each).then_some(())
    });
    assert_eq!((server.connections(), server.threads().len()), (1, 1), "no stranger has a thread");
    // One that holds the key still comes in.
    caller(Transport::Tcp, server.address()).greet(&KEY).expect("there is a place");
    known.ask("ECHO", of(RpcCall::Echo), &credential, &args, SOON).expect("is served");
}

/// The same where there is no key: the service that answers null calls of anyone.
#[test]
fn one_address_does_not_take_all_connections_of_a_public_service() {
    let options = ServerOptions { connections_each: 3, idle_ns: Some(10_000_000_000), ..ServerOptions::default() };
    let programs: Vec<Arc<dyn Program>> = vec![Arc::new(TestProgram::without_data())];
    let server = Server::at(Transport::Tcp, LOOPBACK, programs, options).expect("listens");
    let mut callers: Vec<Caller> = (0..3).map(|_| caller(Transport::Tcp, server.address())).collect();
    let ask = |caller: &mut Caller| caller.ask("a null call", of(RpcCall::Null), &Credential::none(), &[], SOON);
    for caller in &mut callers {
        ask(caller).expect("is served");
    }
    let mut more = TcpStream::connect(server.address()).expect("connects");
    more.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
    assert!(!matches!(more.read(&mut [0; 8]), Ok(1..)), "closed");
    assert_eq!(server.connections(), 3);
    // Another address still finds a place.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, 2], 0)))).expect("binds");
    socket.connect(&SockAddr::from(server.address())).expect("connects");
    ask(&mut Caller::tcp(socket.into()).expect("a caller")).expect("is served");
}

/// The attack: a caller asks for far more than it reads, or never ends a call, to keep its place without end.
#[test]
fn a_caller_that_reads_nothing_or_ends_no_call_is_dropped() {
    let zero = || AtomicUsize::new(0);
    let program = Arc::new(Large { executed: zero(), read: zero(), ahead: zero() });
    let options = ServerOptions { idle_ns: Some(1_000_000_000), ..ServerOptions::default() };
    let server = Server::at(Transport::Tcp, LOOPBACK, vec![program.clone()], options).expect("listens");
    // Their replies are 400 MB, more than the buffers of a socket hold.
    let mut reads_nothing = TcpStream::connect(server.address()).expect("connects");
    let mut calls = Vec::new();
    (0..400).for_each(|_| put_record(&mut calls, |out| put_call(out, 1, of(RpcCall::Read), &Credential::none(), &[])));
    reads_nothing.write_all(&calls).expect("sends");
    wait_until("the caller that reads nothing is dropped", || {
        let executed = program.executed.load(Ordering::Relaxed);
        assert!(executed < 400, "the replies were taken");
        (executed > 0 && server.connections() == 0).then_some(())
    });
    // A record of 1 MiB, which comes byte by byte.
    let mut drips = TcpStream::connect(server.address()).expect("connects");
    drips.write_all(&0x8010_0000_u32.to_be_bytes()).expect("sends");
    wait_until("the caller that ends no call is dropped", || drips.write_all(&[1]).is_err().then_some(()));
}

/// Connections from outside the networks that the agent's owner allows are closed, whatever they show; datagrams are
/// not answered.
#[test]
fn peers_that_are_not_allowed_are_not_answered() {
    for transport in TRANSPORTS {
        let peers = AllowedPeers::only(["198.18.0.0/15".parse().expect("a network")]);
        let options = ServerOptions { key: Some(KEY), peers, ..ServerOptions::default() };
        let server = Server::at(transport, LOOPBACK, vec![Arc::new(TestProgram::new())], options).expect("listens");
        match transport {
            Transport::Tcp => {
                let error = caller(transport, server.address()).greet(&KEY).expect_err("not allowed").to_string();
                assert!(error.contains("went away"), "{error}");
            }
            Transport::Udp => {
                let socket = UdpSocket::bind(LOOPBACK).expect("binds");
                let greeting = call(GREET, &Credential::none(), &greeting::arguments(&KEY, &[1; 16]));
                assert!(answer(&socket, &greeting, server.address()).is_empty());
            }
        }
    }
}

/// The attack: a session's key holds a command for a server that is no part of the trial, and its address is given as
/// the peer's. Before that server has proved that it holds the key, all that it is sent is one call whose bytes nobody
/// chooses.
#[test]
fn requests_forged_at_third_parties_hold_no_byte_of_the_callers_choice() {
    let command = SessionKey(*b"\r\nFLUSHALL\r\nEXIT");
    let third_party = std::net::TcpListener::bind(LOOPBACK).expect("listens");
    let sent = [(); 2].map(|()| {
        let mut caller = caller(Transport::Tcp, third_party.local_addr().expect("bound"));
        let (mut stream, _) = third_party.accept().expect("accepts");
        let greeting = thread::spawn(move || caller.greet(&command).map(drop));
        let mut sent = [0; 76];
        stream.read_exact(&mut sent).expect("is greeted");
        // Success as any RPC server says it, with 32 bytes of results.
        let mut reply = Vec::new();
        put_record(&mut reply, |out| {
            put_accepted(out, u32::from_be_bytes(sent[4..8].try_into().expect("four bytes")));
            out.extend_from_slice(&[b'+'; 32]);
        });
        stream.write_all(&reply).expect("answers");
        let error = greeting.join().expect("no panic").expect_err("it does not hold the key").to_string();
        assert!(error.contains("no server of this trial"), "{error}");
        assert_eq!(stream.read(&mut [0; 8]).expect("closed"), 0, "nothing follows");
        sent
    });
    for part in command.0.windows(3) {
        assert!(!sent[0].windows(3).any(|sent| sent == part), "{}", sent[0].escape_ascii());
    }
    let same = sent[0][44..].iter().zip(&sent[1][44..]).filter(|(one, other)| one == other).count();
    assert!(same < 8, "{same} of 32 bytes are the same, so the caller chooses them");
}
