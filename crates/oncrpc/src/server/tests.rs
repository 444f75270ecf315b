//! Callers and servers over loopback.

use super::*;
use crate::client::{Caller, Retransmission};
use crate::greeting::{PROGRAM, VERSION};
use crate::message::{Credential, Procedure, Reply, put_accepted};
use crate::program::{self, TestProgram};
use linerate_model::{RpcCall, SessionKey};
use linerate_testsuite::wait_until;
use linerate_units::Nanos;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};

const KEY: SessionKey = SessionKey([9; 16]);
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// No call of a test takes so long. Who waits for a reply goes on as soon as it comes.
const SOON: Nanos = Nanos::from_secs(60);
const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Udp];

fn caller(transport: Transport, server: SocketAddr) -> Caller {
    match transport {
        Transport::Tcp => Caller::tcp(TcpStream::connect(server).expect("connects")),
        Transport::Udp => {
            let socket = UdpSocket::bind(LOOPBACK).expect("binds");
            socket.connect(server).expect("connects");
            Caller::udp(socket, Retransmission::default())
        }
    }
    .expect("a caller")
}

/// A server of a session, whose key it holds.
fn serve(transport: Transport, programs: Vec<Arc<dyn Program>>) -> Server {
    let options = ServerOptions { key: Some(KEY), ..ServerOptions::default() };
    Server::at(transport, LOOPBACK, programs, options).expect("listens")
}

fn of(call: RpcCall) -> Procedure {
    Procedure { program: PROGRAM, version: VERSION, procedure: program::number(call) }
}

#[test]
fn many_calls_are_under_way_and_each_gets_its_own_reply() {
    for transport in TRANSPORTS {
        let program = Arc::new(TestProgram::new());
        let server = serve(transport, vec![program.clone()]);
        let mut caller = caller(transport, server.address());
        let credential = caller.greet(&KEY).expect("is known");
        // Units of different sizes come back at their own length.
        let mut sizes = BTreeMap::new();
        for round in 0..20u32 {
            for n in 0..16 {
                let data = vec![n as u8; (round * 400 + n * 3) as usize];
                let call = if n % 2 == 0 { RpcCall::Echo } else { RpcCall::Read };
                let xid = caller.call(of(call), &credential, &program::arguments(call, &data));
                sizes.insert(xid, (call, data));
            }
            while caller.outstanding() > 0 {
                caller
                    .poll(SOON, &mut |xid, reply| {
                        let (call, data) = sizes.remove(&xid).expect("was asked");
                        let Reply::Accepted(results) = reply else { panic!("{transport}: {reply:?}") };
                        assert_eq!(program::carried(call, results, data.len()), Some(data.len()), "{transport}");
                        assert!(call == RpcCall::Read || results[4..][..data.len()] == data, "{transport}");
                    })
                    .expect("polls");
            }
        }
        assert!(sizes.is_empty());
        // Over UDP a call is sent again where the server's thread waits for its core.
        let again = caller.retransmitted();
        assert!(caller.strays() <= again && (again == 0 || transport == Transport::Udp), "{transport}: {again} again");
        let moved = program.moved().expect("it counts");
        assert_eq!(moved.received_calls, 160, "{transport}");
        assert!((320..=320 + again).contains(&moved.sent_calls) && moved.duplicates <= again, "{transport}: {moved:?}");
        assert_eq!(server.threads().len(), 1);
        // A reply is counted once it has been sent, which its caller may see first.
        let service = wait_until("all replies are counted", || Some(server.service()).filter(|told| told.calls >= 320));
        assert!(service.calls <= 320 + again && service.time.count() == service.calls, "{transport}: {service:?}");
    }
}

#[test]
fn a_megabyte_there_and_back_over_tcp() {
    let program = Arc::new(TestProgram::new());
    let server = serve(Transport::Tcp, vec![program]);
    let mut caller = caller(Transport::Tcp, server.address());
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 7) as u8).collect();
    let args = program::arguments(RpcCall::Echo, &data);
    let credential = caller.greet(&KEY).expect("is known");
    // All of them are queued before any is read: neither end may wait for the other to read first.
    for _ in 0..12 {
        caller.call(of(RpcCall::Echo), &credential, &args);
    }
    let mut same = 0;
    while caller.outstanding() > 0 {
        caller.poll(SOON, &mut |_, reply| same += u32::from(reply == Reply::Accepted(&args))).expect("polls");
    }
    assert_eq!(same, 12);
}

#[test]
fn only_the_trials_key_moves_data_and_others_learn_why_not() {
    for transport in TRANSPORTS {
        let program = Arc::new(TestProgram::new());
        let server = serve(transport, vec![program.clone()]);
        let mut caller = caller(transport, server.address());
        let error = caller.greet(&SessionKey([8; 16])).expect_err("another key").to_string();
        assert!(error.contains("AUTH_BADCRED"), "{transport}: {error}");
        let none = Credential::none();
        let key = caller.greet(&KEY).expect("is known");
        let mut ask = |to, credential: &Credential, args: &[u8]| {
            caller.ask("a call", to, credential, args, SOON).map_err(|error| error.to_string())
        };
        let data = program::arguments(RpcCall::Write, &[1; 100]);
        assert_eq!(ask(of(RpcCall::Null), &none, &[]), Ok(Vec::new()));
        assert_eq!(ask(of(RpcCall::Write), &key, &data), Ok(Vec::new()));
        let write = of(RpcCall::Write);
        let null = of(RpcCall::Null);
        for (to, credential, args, needle) in [
            (write, &none, &data[..], "AUTH_BADCRED"),
            (write, &Credential::short(&[8; 16]), &data, "AUTH_BADCRED"),
            (write, &Credential::short(&KEY.0), &data, "AUTH_BADCRED"),
            (of(RpcCall::Read), &Credential::sys("host", 0, 0), &[0, 0, 0, 9], "AUTH_BADCRED"),
            (write, &key, &data[..50], "cannot read the arguments"),
            (of(RpcCall::Read), &key, &[0xff; 4], "cannot read the arguments"),
            (null, &none, &data, "cannot read the arguments"),
            (Procedure { procedure: 5, ..null }, &key, &[], "does not have this procedure"),
            (Procedure { version: 2, ..null }, &none, &[], "versions 1 to 1"),
            (Procedure { program: 100_003, ..null }, &none, &[], "does not have this program"),
        ] {
            let error = ask(to, credential, args).expect_err(needle);
            assert!(error.contains(needle), "{transport}: {error}");
        }
        let moved = program.moved().expect("it counts");
        // A server that is held up is asked again over UDP.
        assert!(moved.duplicates == 0 || transport == Transport::Udp, "{moved:?}");
        let once = Moved { received_bytes: 100, received_calls: 1, duplicates: moved.duplicates, ..Moved::default() };
        assert_eq!(moved, once);
    }
}

/// Replies only after a while, the first call's last.
struct Slow;

impl Program for Slow {
    fn number(&self) -> u32 {
        1
    }

    fn versions(&self) -> RangeInclusive<u32> {
        1..=1
    }

    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        reply.extend_from_slice(call.args);
        Ok(Some(call.arrived_ns + if call.args == [0, 0, 0, 0] { 1_000_000_000 } else { 20_000_000 }))
    }
}

#[test]
fn a_slow_reply_holds_up_no_other() {
    for transport in TRANSPORTS {
        let server = Server::start(transport, LOOPBACK, vec![Arc::new(Slow)]).expect("listens");
        let mut caller = caller(transport, server.address());
        let to = Procedure { program: 1, version: 1, procedure: 1 };
        let begun = clock::now();
        for n in 0..4u32 {
            caller.call(to, &Credential::none(), &n.to_be_bytes());
        }
        let mut order = Vec::new();
        while caller.outstanding() > 0 {
            caller
                .poll(SOON, &mut |_, reply| match reply {
                    Reply::Accepted(results) => order.push((results[3], clock::now() - begun)),
                    other => panic!("{other:?}"),
                })
                .expect("polls");
        }
        assert_eq!(order.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2, 3, 0], "{transport}");
        assert!(order[0].1 >= 20_000_000 && order[3].1 >= 1_000_000_000, "{transport}: {order:?}");
    }
}

#[test]
fn a_call_over_udp_without_a_reply_is_sent_again_and_counted_once() {
    let program = TestProgram::new();
    // A server that drops the first copy of every other call, and answers each of the others twice.
    let socket = UdpSocket::bind(LOOPBACK).expect("binds");
    let address = socket.local_addr().expect("bound");
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("sets");
    let lossy = thread::spawn(move || {
        let mut bytes = vec![0; 2_000];
        let mut dropped = std::collections::BTreeSet::new();
        let mut answered = std::collections::BTreeSet::new();
        while answered.len() < 10 {
            let (length, peer) = socket.recv_from(&mut bytes).expect("receives");
            let message = read_call(&bytes[..length]).expect("a call");
            let call = Call {
                xid: message.xid,
                version: 1,
                procedure: message.to.procedure,
                args: message.args,
                peer,
                transport: Transport::Udp,
                arrived_ns: clock::now(),
            };
            let mut reply = Vec::new();
            put_accepted(&mut reply, message.xid);
            program.call(&call, &mut reply).expect("it carries data");
            // What was dropped is the reply: the call was executed.
            if message.xid.is_multiple_of(2) && dropped.insert(message.xid) {
                continue;
            }
            for _ in 0..2 {
                socket.send_to(&reply, peer).expect("sends");
            }
            answered.insert(message.xid);
        }
        program.moved().expect("it counts")
    });
    let mut caller = caller(Transport::Udp, address);
    let args = program::arguments(RpcCall::Write, &[5; 1_000]);
    for _ in 0..10 {
        caller.call(of(RpcCall::Write), &Credential::none(), &args);
    }
    let mut replies = 0;
    while caller.outstanding() > 0 {
        caller.poll(SOON, &mut |_, reply| replies += u32::from(reply == Reply::Accepted(&[]))).expect("polls");
    }
    caller.poll(Nanos::from_millis(50), &mut |_, _| panic!("each was answered")).expect("polls");
    // More are sent again where the server's thread waits for its core.
    let again = caller.retransmitted();
    assert!(replies == 10 && again >= 5, "{replies} replies, {again} sent again");
    assert!(caller.strays() >= 9, "the second copies: {}", caller.strays());
    let moved = lossy.join().expect("serves");
    assert_eq!((moved.received_calls, moved.received_bytes), (10, 10_000));
    assert!((5..=again).contains(&moved.duplicates), "{} duplicates of {again} sent again", moved.duplicates);
}

#[test]
fn a_server_that_is_not_there_or_goes_away_is_named() {
    for transport in TRANSPORTS {
        let server = Server::start(transport, LOOPBACK, vec![Arc::new(TestProgram::without_data())]).expect("listens");
        let address = server.address();
        let mut caller = caller(transport, address);
        let mut ask = || caller.ask("a null call", of(RpcCall::Null), &Credential::none(), &[], SOON);
        ask().expect("is there");
        drop(server);
        let error = ask().expect_err("is gone").to_string();
        assert!(error.contains(&address.to_string()) && error.contains("went away"), "{transport}: {error}");
    }
}

#[test]
fn rubbish_ends_its_own_connection_and_no_other() {
    let server = Server::start(Transport::Tcp, LOOPBACK, vec![Arc::new(TestProgram::without_data())]).expect("listens");
    let mut good = caller(Transport::Tcp, server.address());
    for bytes in [&[0xff; 64][..], &[0x80, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut bad = TcpStream::connect(server.address()).expect("connects");
        bad.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("sets");
        bad.write_all(bytes).expect("sends");
        let read = bad.read(&mut [0; 8]);
        assert!(
            matches!(&read, Ok(0)) || read.is_err_and(|error| !linerate_sys::socket::is_timeout(&error)),
            "{bytes:?}"
        );
        good.ask("a null call", of(RpcCall::Null), &Credential::none(), &[], SOON).expect("goes on");
    }
}

#[test]
fn a_hostile_server_is_an_error_or_a_stray() {
    let listener = std::net::TcpListener::bind(LOOPBACK).expect("listens");
    let address = listener.local_addr().expect("bound");
    for (bytes, needle) in [
        (&[0xff, 0xff, 0xff, 0xff, 1, 2][..], "record of 2147483647 bytes"),
        (&[0x80, 0, 0, 4, 0, 0, 0, 1], "no reply"),
        (&[], "closed the connection"),
    ] {
        let mut caller = caller(Transport::Tcp, address);
        let (mut stream, _) = listener.accept().expect("accepts");
        stream.write_all(bytes).expect("sends");
        drop(stream.shutdown(std::net::Shutdown::Write));
        let error = caller.ask("a call", of(RpcCall::Null), &Credential::none(), &[], SOON).expect_err(needle);
        assert!(error.to_string().contains(needle), "{error}");
    }
    let socket = UdpSocket::bind(LOOPBACK).expect("binds");
    let mut caller = caller(Transport::Udp, socket.local_addr().expect("bound"));
    let xid = caller.call(of(RpcCall::Null), &Credential::none(), &[]);
    caller.poll(Nanos::new(0), &mut |_, reply| panic!("{reply:?}")).expect("sends");
    let (_, from) = socket.recv_from(&mut [0; 100]).expect("receives");
    let mut wrong = Vec::new();
    put_accepted(&mut wrong, xid.wrapping_add(1));
    for bytes in [&[0xff; 50][..], &[], &wrong] {
        socket.send_to(bytes, from).expect("sends");
    }
    while caller.strays() < 3 {
        caller.poll(SOON, &mut |_, reply| panic!("{reply:?}")).expect("goes on");
    }
    assert_eq!(caller.outstanding(), 1);
}

#[test]
fn a_port_that_is_taken_is_named() {
    for transport in TRANSPORTS {
        let server = Server::start(transport, LOOPBACK, Vec::new()).expect("listens");
        let error = Server::start(transport, server.address(), Vec::new()).expect_err("is taken").to_string();
        assert!(error.contains("another program has port") && error.contains("127.0.0.1"), "{transport}: {error}");
    }
}

/// Answers each call with a megabyte, and notes how far it was ahead of its caller.
struct Large {
    executed: AtomicUsize,
    read: AtomicUsize,
    ahead: AtomicUsize,
}

impl Program for Large {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn call(&self, _: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        let executed = self.executed.fetch_add(1, Ordering::Relaxed) + 1;
        let ahead = executed.saturating_sub(self.read.load(Ordering::Relaxed));
        self.ahead.fetch_max(ahead, Ordering::Relaxed);
        reply.resize(reply.len() + (1 << 20), 7);
        Ok(None)
    }
}

/// Answers with more than the buffers of a connection hold.
struct Huge;

impl Program for Huge {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn call(&self, _: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        reply.resize(reply.len() + (64 << 20), 7);
        Ok(None)
    }
}

#[test]
fn what_a_reply_waits_for_the_line_is_no_time_of_the_server() {
    let server = Server::start(Transport::Tcp, LOOPBACK, vec![Arc::new(Huge)]).expect("listens");
    let mut caller = caller(Transport::Tcp, server.address());
    caller.call(of(RpcCall::Read), &Credential::none(), &[]);
    // The call goes on its way, and nothing is read.
    caller.poll(Nanos::new(0), &mut |_, _| ()).expect("sends");
    wait_until("a reply that nobody reads is counted", || (server.service().calls == 1).then_some(()));
}

/// The attack: hundreds of small calls in one piece of the stream, each for a megabyte, had the server keep all of
/// their replies at once.
#[test]
fn pipelined_reads_are_bounded() {
    const CALLS: usize = 400;
    let zero = || AtomicUsize::new(0);
    let program = Arc::new(Large { executed: zero(), read: zero(), ahead: zero() });
    let server = Server::start(Transport::Tcp, LOOPBACK, vec![program.clone()]).expect("listens");
    let mut caller = caller(Transport::Tcp, server.address());
    for _ in 0..CALLS {
        caller.call(of(RpcCall::Read), &Credential::none(), &[]);
    }
    while caller.outstanding() > 0 {
        caller
            .poll(SOON, &mut |_, reply| {
                assert!(matches!(reply, Reply::Accepted(results) if results.len() == 1 << 20), "{reply:?}");
                program.read.fetch_add(1, Ordering::Relaxed);
            })
            .expect("polls");
    }
    assert_eq!(program.executed.load(Ordering::Relaxed), CALLS);
    // What the sockets' own buffers hold comes on top of what the server keeps.
    let ahead = program.ahead.load(Ordering::Relaxed);
    assert!(ahead < CALLS / 4, "{ahead} replies at once");
}

/// Times at which calls came whose replies are not due yet, and how many there were at most.
#[derive(Default)]
struct Delayed {
    waiting: Mutex<VecDeque<u64>>,
    most: AtomicUsize,
}

impl Program for Delayed {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        const LATER_NS: u64 = 100_000_000;
        let mut waiting = self.waiting.lock().expect("no holder panics");
        let now = clock::now();
        while waiting.front().is_some_and(|arrived| arrived + LATER_NS <= now) {
            waiting.pop_front();
        }
        waiting.push_back(call.arrived_ns);
        self.most.fetch_max(waiting.len(), Ordering::Relaxed);
        reply.resize(reply.len() + (8 << 10), 7);
        Ok(Some(call.arrived_ns + LATER_NS))
    }
}

/// The attack: calls whose replies are due later, as a server with a planted delay has them, without end.
#[test]
fn delayed_replies_over_udp_are_bounded() {
    const CALLS: usize = 500;
    let program = Arc::new(Delayed::default());
    let server = serve(Transport::Udp, vec![program.clone()]);
    let mut caller = caller(Transport::Udp, server.address());
    let credential = caller.greet(&KEY).expect("is known");
    for _ in 0..CALLS {
        caller.call(of(RpcCall::Read), &credential, &[]);
    }
    while caller.outstanding() > 0 {
        let mut read = |_: u32, reply: Reply<'_>| {
            // Replies that come together may overflow the caller's socket buffer, again and again.
            let is_whole = matches!(reply, Reply::Accepted(results) if results.len() == 8 << 10);
            assert!(is_whole || matches!(reply, Reply::Lost), "{reply:?}");
        };
        caller.poll(SOON, &mut read).expect("polls");
    }
    // 2 MiB of them are held, and a batch more.
    let most = program.most.load(Ordering::Relaxed);
    assert!(most < 400, "{most} replies waited at once");
}

/// The attack: a holder of the key opens connection after connection, and calls for megabytes that it does not read.
#[test]
fn all_connections_together_keep_to_the_memory_of_their_server() {
    const CONNECTIONS: usize = 16;
    const CALLS: usize = 8;
    let zero = || AtomicUsize::new(0);
    let program = Arc::new(Large { executed: zero(), read: zero(), ahead: zero() });
    let options = ServerOptions { memory: 4 << 20, ..ServerOptions::default() };
    let server = Server::at(Transport::Tcp, LOOPBACK, vec![program.clone()], options).expect("listens");
    let mut callers: Vec<Caller> = (0..CONNECTIONS).map(|_| caller(Transport::Tcp, server.address())).collect();
    for caller in &mut callers {
        for _ in 0..CALLS {
            caller.call(of(RpcCall::Read), &Credential::none(), &[]);
        }
        let mut read = |_: u32, _: Reply<'_>| {
            program.read.fetch_add(1, Ordering::Relaxed);
        };
        caller.poll(Nanos::new(1), &mut read).expect("sends");
    }
    // None of them waits for ever, though each reads only while the others do not.
    while callers.iter().any(|caller| caller.outstanding() > 0) {
        for caller in &mut callers {
            let mut read = |_: u32, _: Reply<'_>| {
                program.read.fetch_add(1, Ordering::Relaxed);
            };
            caller.poll(Nanos::from_millis(1), &mut read).expect("polls");
        }
    }
    assert_eq!(program.executed.load(Ordering::Relaxed), CONNECTIONS * CALLS);
}

mod strangers;
