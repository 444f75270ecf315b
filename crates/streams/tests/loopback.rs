//! Two halves in one process, over loopback: every kind of trial, and what goes wrong with them.

use linerate_model::{
    Arrivals, Connect, Direction, EndResult, EndRole, EndSpec, HalfSpec, IpVersion, Offered, ReceiveBy, SendBy,
    SocketOptions, StreamSpec, Timing, TransactSpec, TransactStyle, Transport, TrialId, TrialKey, Workload,
};
use linerate_streams::{Running, StreamError, prepare};
use linerate_sys::clock;
use linerate_units::{BitRate, ByteCount, Nanos, OpRate};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

const MEASURE: u64 = 300_000_000;

fn stream(transport: Transport) -> StreamSpec {
    StreamSpec::plain(transport, ByteCount::new(if transport == Transport::Tcp { 128 << 10 } else { 1_448 }))
}

fn half(workload: &Workload, role: EndRole) -> HalfSpec {
    HalfSpec {
        id: TrialId("test".into()),
        key: TrialKey([5; 16]),
        workload: workload.clone(),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::new(MEASURE) },
        ends: vec![EndSpec { path: 0, role }],
    }
}

fn halves(workload: &Workload) -> (HalfSpec, HalfSpec) {
    let address = match workload.ip() {
        IpVersion::V4 => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpVersion::V6 => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    (half(workload, EndRole::Opener), half(workload, EndRole::Listener { address }))
}

fn begin(workload: &Workload) -> (Running, Running) {
    let (opener, listener) = halves(workload);
    let listener = prepare(&listener).expect("listens");
    let mut opener = prepare(&opener).expect("is prepared");
    opener.connect(&Connect { listeners: listener.prepared().listening }).expect("connects");
    let at = clock::now() + 30_000_000;
    // The two ends of a real trial do not start at the same moment either.
    (opener.start(at).expect("starts"), listener.start(at + 3_000_000).expect("starts"))
}

fn run(workload: &Workload) -> (EndResult, EndResult) {
    let (opener, listener) = begin(workload);
    let (opener, listener) = (opener.join().expect("opener"), listener.join().expect("listener"));
    assert_eq!((opener.len(), listener.len()), (1, 1));
    (opener.into_iter().next().expect("one end"), listener.into_iter().next().expect("one end"))
}

/// A flow's greeting with a key of `key`s, as it is on the wire.
fn greeting(key: u8) -> Vec<u8> {
    [&b"lnrt-hi1"[..], &[key; 16], &[0; 16]].concat()
}

fn bits_per_second(bytes: u64, window: Nanos) -> f64 {
    bytes as f64 * 8.0 / window.as_secs_f64()
}

fn off_by(got: f64, wanted: f64) -> f64 {
    (got - wanted).abs() / wanted
}

#[test]
fn tcp_both_ways_over_flows_of_their_own() {
    let spec = StreamSpec { direction: Direction::Both, flows: 2, ..stream(Transport::Tcp) };
    let (opener, listener) = run(&Workload::Stream(spec));
    for (sender, receiver) in [(&opener, &listener), (&listener, &opener)] {
        let (sent, received) = (sender.sent.as_ref().expect("sent"), receiver.received.as_ref().expect("received"));
        assert_eq!((sent.means.as_str(), received.means.as_str()), ("sendfile", "recv"));
        let (out, into) = (
            bits_per_second(sent.payload_bytes, sent.window),
            bits_per_second(received.payload_bytes, received.window),
        );
        assert!(into > 1e8, "{into}");
        assert!(off_by(out, into) < 0.2, "sent {out}, received {into}");
        assert_eq!(receiver.flows.len(), 4);
        let tcp: Vec<_> = receiver.flows.iter().filter(|flow| flow.received_bytes > 0).collect();
        assert_eq!(tcp.len(), 2);
        assert_eq!(tcp.iter().map(|flow| flow.received_bytes).sum::<u64>(), received.payload_bytes);
        assert!(tcp.iter().all(|flow| flow.tcp.as_ref().is_some_and(|tcp| tcp.segments_in > 0)));
    }
}

#[test]
fn tcp_by_write_and_discard_with_options_over_ipv6() {
    let socket = SocketOptions {
        congestion: Some("reno".into()),
        dscp: Some(10),
        mss: Some(1_200),
        send_buffer: Some(ByteCount::new(200_000)),
        receive_buffer: Some(ByteCount::new(200_000)),
        bind_address: Some(Ipv6Addr::LOCALHOST.into()),
        bind_device: Some("lo".into()),
        sender_cpus: vec![0],
        receiver_cpus: vec![0],
    };
    let spec = StreamSpec {
        ip: IpVersion::V6,
        direction: Direction::Receive,
        send_by: SendBy::Write,
        receive_by: ReceiveBy::Discard,
        socket,
        ..stream(Transport::Tcp)
    };
    let (opener, listener) = run(&Workload::Stream(spec));
    assert!(opener.sent.is_none() && listener.received.is_none());
    assert_eq!(listener.sent.expect("the listener sends").means, "write");
    let received = opener.received.expect("the opener receives");
    assert!(received.means.contains("MSG_TRUNC") && received.payload_bytes > 1_000_000, "{received:?}");
    let tcp = listener.flows[0].tcp.as_ref().expect("TCP_INFO");
    assert_eq!(tcp.congestion, "reno");
    // Timestamps take 12 bytes of each segment.
    assert!((1_100..=1_200).contains(&tcp.mss), "{tcp:?}");
    assert!(tcp.segments_out > 0 && tcp.busy.get() > 0, "{tcp:?}");
}

#[test]
fn a_set_rate_is_kept_and_counted_exactly() {
    for (transport, offload) in [(Transport::Udp, true), (Transport::Udp, false), (Transport::Tcp, true)] {
        let rate = BitRate::per_second(100_000_000);
        let offered = Some(Offered::PayloadBps(rate));
        let message_bytes = ByteCount::new(1_250);
        let spec = StreamSpec { offered, offload, message_bytes, flows: 2, ..stream(transport) };
        let (opener, listener) = run(&Workload::Stream(spec));
        let (sent, received) = (opener.sent.expect("sent"), listener.received.expect("received"));
        let rate = bits_per_second(received.payload_bytes, received.window);
        // 0.1 % at 1 s; the window here is 0.3 s, and other tests share the cores.
        assert!(off_by(rate, 1e8) < 0.01, "{transport}: {rate}, {sent:?} {received:?}");
        if transport == Transport::Udp {
            assert_eq!(sent.messages + sent.not_sent + sent.refused, 3_000);
            assert_eq!(received.arrived, sent.messages);
            assert_eq!((received.duplicates, received.reordered), (0, 0));
            assert!(received.jitter.is_some());
        }
    }
}

#[test]
fn every_datagram_is_accounted_for_at_full_speed() {
    for (offload, ip, message) in [
        (true, IpVersion::V4, 1_448),
        (false, IpVersion::V6, 64),
        (true, IpVersion::V4, 65_507),
        (true, IpVersion::V6, 16),
    ] {
        let spec = StreamSpec { offload, ip, message_bytes: ByteCount::new(message), ..stream(Transport::Udp) };
        let (opener, listener) = run(&Workload::Stream(spec));
        let (sent, received) = (opener.sent.expect("sent"), listener.received.expect("received"));
        assert!(sent.messages > 1_000, "{sent:?}");
        assert_eq!(sent.payload_bytes, sent.messages * message);
        assert_eq!(offload && message < 30_000, sent.means.contains("UDP_SEGMENT"), "{sent:?}");
        assert_eq!(offload && message < 30_000, received.joined > 0, "{received:?}");
        assert!(received.arrived <= sent.messages && received.messages <= received.arrived);
        let lost = sent.messages - received.arrived;
        // Loopback loses nothing but for want of room in the socket, and drops count buffers, joined or not.
        let per_buffer = if received.joined > 0 { (65_507 / message).min(64) } else { 1 };
        assert!(lost <= received.socket_drops * per_buffer, "{lost} lost, {received:?}");
        assert!(received.socket_drops <= lost, "{lost} lost, {received:?}");
        if received.joined == 0 {
            assert_eq!(lost, received.socket_drops);
        }
    }
}

#[test]
fn a_small_buffer_drops_where_it_should() {
    let socket = SocketOptions { receive_buffer: Some(ByteCount::new(4_096)), ..SocketOptions::default() };
    let spec = StreamSpec { offload: false, socket, direction: Direction::Both, ..stream(Transport::Udp) };
    let (opener, listener) = run(&Workload::Stream(spec));
    for (sender, receiver) in [(&opener, &listener), (&listener, &opener)] {
        let (sent, received) = (sender.sent.as_ref().expect("sent"), receiver.received.as_ref().expect("received"));
        assert!(received.socket_drops > 0, "{received:?}");
        assert_eq!(sent.messages - received.arrived, received.socket_drops);
    }
}

#[test]
fn transactions_of_every_style() {
    let connect = TransactSpec { style: TransactStyle::Connect, flows: 2, ..TransactSpec::plain(Transport::Tcp) };
    let deep = |transport| TransactSpec {
        outstanding: 16,
        request_bytes: ByteCount::new(100),
        response_bytes: ByteCount::new(3_000),
        ..TransactSpec::plain(transport)
    };
    let large = TransactSpec {
        request_bytes: ByteCount::new(1_000_000),
        response_bytes: ByteCount::new(1_000_000),
        outstanding: 8,
        ..TransactSpec::plain(Transport::Tcp)
    };
    for spec in [
        TransactSpec::plain(Transport::Tcp),
        TransactSpec::plain(Transport::Udp),
        TransactSpec { ip: IpVersion::V6, busy_poll: true, ..TransactSpec::plain(Transport::Tcp) },
        TransactSpec { busy_poll: true, ..TransactSpec::plain(Transport::Udp) },
        deep(Transport::Tcp),
        deep(Transport::Udp),
        TransactSpec { outstanding: 128, ..TransactSpec::plain(Transport::Udp) },
        large,
        connect.clone(),
        TransactSpec { busy_poll: true, ..connect },
    ] {
        let (asked, answered) = run(&Workload::Transact(spec.clone()));
        let done = asked.transactions.expect("the opener asks");
        assert!(answered.transactions.is_none() && asked.sent.is_none() && asked.received.is_none());
        assert!(done.completed > 20, "{spec:?}: {}", done.completed);
        assert_eq!((done.failed, done.not_sent), (0, 0), "{spec:?}");
        assert_eq!(done.latency.count(), done.completed, "{spec:?}");
        assert!(done.latency.quantile(0.5) > 1_000);
        // Little's law: under way = rate x time.
        let flows = f64::from(spec.flows) * f64::from(spec.outstanding);
        let law = done.completed as f64 / done.window.as_secs_f64() * done.latency.mean() / 1e9;
        assert!(law < flows * 1.1, "{spec:?}: {law}");
        let received: u64 = asked.flows.iter().map(|flow| flow.received_bytes).sum();
        assert_eq!(received, done.completed * spec.response_bytes.get());
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    for (transport, style, arrivals) in [
        (Transport::Tcp, TransactStyle::Persistent, Arrivals::Even),
        (Transport::Udp, TransactStyle::Persistent, Arrivals::Poisson),
        (Transport::Tcp, TransactStyle::Connect, Arrivals::Even),
    ] {
        let rate = Some(OpRate::per_second(1_000));
        let spec = TransactSpec { style, arrivals, rate, flows: 2, ..TransactSpec::plain(transport) };
        let done = run(&Workload::Transact(spec)).0.transactions.expect("asks");
        let tolerance = if arrivals == Arrivals::Even { 3 } else { 150 };
        assert!(done.completed.abs_diff(300) <= tolerance, "{transport} {style:?}: {}", done.completed);
        assert_eq!((done.failed, done.not_sent), (0, 0));
    }
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("statm");
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages") * 4_096
}

#[test]
fn an_open_loop_beyond_what_is_possible_ends_in_time_and_can_be_stopped() {
    for (transport, arrivals) in [
        (Transport::Udp, Arrivals::Even),
        (Transport::Udp, Arrivals::Poisson),
        (Transport::Tcp, Arrivals::Even),
        (Transport::Tcp, Arrivals::Poisson),
    ] {
        // As many as can be asked for, so that it is out of reach however fast the machine.
        let rate = Some(OpRate::per_second(100_000_000));
        let spec = TransactSpec {
            rate,
            arrivals,
            request_bytes: ByteCount::new(64),
            response_bytes: ByteCount::new(64),
            ..TransactSpec::plain(transport)
        };
        let workload = Workload::Transact(spec);
        let before = resident_bytes();
        let (opener, listener) = begin(&workload);
        let closes = opener.closes_at();
        let done = opener.join().expect("opener").remove(0).transactions.expect("asks");
        let late = clock::now().saturating_sub(closes);
        listener.join().expect("listener");
        assert!(late < 1_500_000_000, "{transport} {arrivals:?}: {} ms after the window", late / 1_000_000);
        // 30 million were due in 0.3 s.
        assert!(done.not_sent > 10_000_000, "{transport} {arrivals:?}: {} not sent", done.not_sent);
        assert!(done.completed > 1_000, "{transport} {arrivals:?}: {} completed", done.completed);
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 200 << 20, "{transport} {arrivals:?}: grew by {} MiB", grown >> 20);

        let (opener, listener) = begin(&workload);
        clock::sleep_until(opener.opens_at());
        let begun = clock::now();
        opener.stop();
        assert!(matches!(opener.join(), Err(StreamError::Stopped)));
        drop(listener);
        let took = clock::now() - begun;
        assert!(took < 1_000_000_000, "{transport} {arrivals:?}: stopped after {} ms", took / 1_000_000);
    }
}

#[test]
fn large_answers_to_many_small_requests_end_with_the_window() {
    let spec = TransactSpec { response_bytes: ByteCount::new(1_000_000), ..TransactSpec::plain(Transport::Tcp) };
    let listener = prepare(&halves(&Workload::Transact(spec)).1).expect("listens");
    let mut asking = TcpStream::connect(listener.prepared().listening[&0]).expect("connects");
    asking.write_all(&greeting(5)).expect("writes");
    asking.read_exact(&mut greeting(0)).expect("is answered");
    // Answers of 65 GB.
    asking.write_all(&[0; 65_536]).expect("writes");
    let reading = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while asking.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    let running = listener.start(clock::now()).expect("starts");
    let closes = running.closes_at();
    let end = running.join().expect("ends").remove(0);
    let late = clock::now().saturating_sub(closes);
    assert!(late < 2_000_000_000, "{} ms after the window", late / 1_000_000);
    // What the window saw of them, not all or nothing: 0.3 s at up to 30 GB/s.
    let answered = end.flows[0].received_bytes;
    assert!((1..10_000).contains(&answered), "{answered} answered");
    assert_eq!(end.flows[0].sent_bytes, answered * 1_000_000);
    reading.join().expect("reads");
}

#[test]
fn a_stall_is_in_an_open_loops_latency() {
    // The answering end starts 150 ms after the asking end's window has opened: requests wait for it.
    let spec = TransactSpec { rate: Some(OpRate::per_second(1_000)), ..TransactSpec::plain(Transport::Tcp) };
    let (opener, listener) = halves(&Workload::Transact(spec));
    let listener = prepare(&listener).expect("listens");
    let mut opener = prepare(&opener).expect("is prepared");
    opener.connect(&Connect { listeners: listener.prepared().listening }).expect("connects");
    let at = clock::now() + 10_000_000;
    let opener = opener.start(at).expect("starts");
    clock::sleep_until(opener.opens_at() + 150_000_000);
    let listener = listener.start(opener.opens_at() - 100_000_000).expect("starts");
    let done = opener.join().expect("opener").remove(0).transactions.expect("asks");
    listener.join().expect("listener");
    assert!(done.latency.count().abs_diff(300) <= 2, "every request that was due is timed: {}", done.latency.count());
    // Those due in the first 150 ms of 300 waited up to 150 ms; the median of them all is near zero or half of that.
    let p75 = done.latency.quantile(0.75);
    assert!((50_000_000..120_000_000).contains(&p75), "p75 {p75}");
    assert!(done.latency.max() > 140_000_000);
}

#[test]
fn strangers_are_turned_away_without_a_word() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let (opener, listener) = halves(&Workload::Stream(stream(transport)));
        let listener = prepare(&listener).expect("listens");
        let address = listener.prepared().listening[&0];
        let greeting = greeting(6);
        match transport {
            Transport::Tcp => {
                let _silent = TcpStream::connect(address).expect("connects");
                let mut stranger = TcpStream::connect(address).expect("connects");
                stranger.write_all(&greeting).expect("writes");
                assert_eq!(stranger.read(&mut [0; 32]).unwrap_or(0), 0, "closed, nothing answered");
            }
            Transport::Udp => {
                let stranger = UdpSocket::bind("127.0.0.1:0").expect("binds");
                stranger.send_to(&greeting, address).expect("sends");
                stranger.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
                stranger.recv(&mut [0; 32]).expect_err("nothing is answered");
            }
        }
        let wrong = HalfSpec { key: TrialKey([6; 16]), ..opener.clone() };
        let connect = Connect { listeners: listener.prepared().listening };
        if transport == Transport::Tcp {
            let refused = prepare(&wrong).expect("is prepared").connect(&connect).expect_err("the key is wrong");
            assert!(matches!(refused, StreamError::NoAnswer { .. }), "{refused}");
        }
        // The right one still comes through.
        let mut opener = prepare(&opener).expect("is prepared");
        opener.connect(&connect).expect("connects");
        let at = clock::now();
        let (opener, listener) = (opener.start(at).expect("starts"), listener.start(at).expect("starts"));
        opener.stop();
        listener.stop();
    }
}

/// Takes the datagrams that lie in `socket` or come within 150 ms.
fn arriving(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_millis(150))).expect("sets");
    let mut buffer = [0; 2_048];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec())).collect()
}

#[test]
fn datagrams_go_to_nobody_who_does_not_read_the_answers() {
    let spec = StreamSpec { direction: Direction::Receive, ..stream(Transport::Udp) };
    let (opener, listener_spec) = halves(&Workload::Stream(spec));
    // Direction "receive": the listener's flow to the opener is a backward one.
    let mut greeting = greeting(5);
    greeting[28] = 1;
    for proves in [false, true] {
        let listener = prepare(&listener_spec).expect("listens");
        let address = listener.prepared().listening[&0];
        let victim = UdpSocket::bind("127.0.0.1:0").expect("binds");
        victim.send_to(&greeting, address).expect("sends");
        let answers = arriving(&victim);
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].len(), greeting.len(), "no answer is longer than what asked for it");
        // The forger does not know the answer's nonce, but may guess its port.
        let own = SocketAddr::new(address.ip(), u16::from_be_bytes([answers[0][30], answers[0][31]]));
        let mut confirmation = greeting.clone();
        victim.send_to(&confirmation, own).expect("sends");
        confirmation[32..].copy_from_slice(&1u64.to_be_bytes());
        victim.send_to(&confirmation, own).expect("sends");
        assert!(arriving(&victim).is_empty());
        if proves {
            // Lost on the way, either one: asked again, the same is answered.
            confirmation[32..].copy_from_slice(&answers[0][32..]);
            victim.send_to(&greeting, address).expect("sends");
            assert_eq!(arriving(&victim), answers);
            for _ in 0..2 {
                victim.send_to(&confirmation, own).expect("sends");
                let told = arriving(&victim);
                assert_eq!((told.len(), &told[0][30..32]), (1, &[0, 0][..]));
                assert_eq!(told[0][32..], answers[0][32..]);
            }
            let running = listener.start(clock::now()).expect("has its flow");
            assert!(!arriving(&victim).is_empty());
            running.stop();
        } else {
            // The real opener is not kept out.
            let mut real = prepare(&opener).expect("is prepared");
            real.connect(&Connect { listeners: listener.prepared().listening }).expect("connects");
            let at = clock::now();
            let (real, running) = (real.start(at).expect("starts"), listener.start(at).expect("starts"));
            assert!(arriving(&victim).is_empty());
            real.stop();
            running.stop();
        }
    }
    let listener = prepare(&listener_spec).expect("listens");
    let victim = UdpSocket::bind("127.0.0.1:0").expect("binds");
    victim.send_to(&greeting, listener.prepared().listening[&0]).expect("sends");
    clock::sleep_until(clock::now() + 100_000_000);
    let error = listener.start(clock::now()).expect_err("nobody confirmed").to_string();
    assert!(error.contains("0 of 1 flows"), "{error}");
}

#[test]
fn an_opener_repeats_what_was_lost() {
    let listener = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let own = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let port = own.local_addr().expect("is bound").port();
    let address = listener.local_addr().expect("is bound");
    let answering = std::thread::spawn(move || {
        let mut bytes = [0; 64];
        for (socket, port) in [(&listener, port), (&own, 0)] {
            // The first is lost, and so is the answer to the second.
            for lost in [true, true, false] {
                let (length, from) = socket.recv_from(&mut bytes).expect("is greeted");
                let mut answer = bytes[..length].to_vec();
                answer[..8].copy_from_slice(b"lnrt-ok1");
                answer[30..32].copy_from_slice(&u16::to_be_bytes(port));
                answer[32..].copy_from_slice(&[9; 8]);
                if port == 0 {
                    assert_eq!(bytes[32..length], [9; 8], "the nonce comes back");
                }
                if !lost {
                    socket.send_to(&answer, from).expect("sends");
                }
            }
        }
    });
    let mut opener = prepare(&halves(&Workload::Stream(stream(Transport::Udp))).0).expect("is prepared");
    opener.connect(&Connect { listeners: [(0, address)].into() }).expect("connects");
    answering.join().expect("answers");
}

#[test]
fn many_flows_connect_and_listeners_end_together() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let workload = Workload::Stream(StreamSpec { flows: 300, ..stream(transport) });
        let (opener, mut listener) = halves(&workload);
        let role = listener.ends[0].role;
        listener.ends.extend((1..30).map(|path| EndSpec { path, role }));
        let mut opener = prepare(&opener).expect("is prepared");
        let listener = prepare(&listener).expect("listens");
        opener.connect(&Connect { listeners: listener.prepared().listening }).expect("connects");
        let begun = clock::now();
        drop(listener);
        let took = clock::now() - begun;
        assert!(took < 200_000_000, "{transport}: {} ms", took / 1_000_000);
    }
}

#[test]
fn a_peer_that_goes_away_is_named() {
    for workload in [
        Workload::Stream(stream(Transport::Tcp)),
        Workload::Stream(StreamSpec { direction: Direction::Receive, ..stream(Transport::Tcp) }),
        Workload::Stream(stream(Transport::Udp)),
        Workload::Transact(TransactSpec::plain(Transport::Tcp)),
        // A closed loop's one request may be lost with the port; the next one is told that nobody is there.
        Workload::Transact(TransactSpec {
            rate: Some(OpRate::per_second(1_000)),
            ..TransactSpec::plain(Transport::Udp)
        }),
        Workload::Transact(TransactSpec { style: TransactStyle::Connect, ..TransactSpec::plain(Transport::Tcp) }),
    ] {
        let (opener, listener) = begin(&workload);
        // Before the window: an end 250 ms before its close could be the other clock's.
        clock::sleep_until(opener.opens_at() - 50_000_000);
        let peer = opener.local_addresses()[0].1;
        drop(listener);
        let begun = clock::now();
        let error = opener.join().map(|_| ()).expect_err("the listener is gone");
        assert!(matches!(error, StreamError::PeerGone { .. }), "{workload:?}: {error}");
        assert!(error.to_string().contains(&peer.to_string()), "{error}");
        assert!(clock::now() - begun < 2_000_000_000, "{workload:?}");
    }
}

#[test]
fn stopping_is_quick_and_leaves_no_thread() {
    for workload in [
        Workload::Stream(StreamSpec { flows: 3, ..stream(Transport::Tcp) }),
        Workload::Stream(stream(Transport::Udp)),
        Workload::Transact(TransactSpec::plain(Transport::Udp)),
    ] {
        let (opener, listener) = begin(&workload);
        let threads: Vec<_> = opener.threads().into_iter().chain(listener.threads()).collect();
        assert!(threads.iter().any(|thread| thread.sends) && threads.iter().any(|thread| !thread.sends));
        let path = |tid: i32| format!("/proc/self/task/{tid}");
        assert!(threads.iter().all(|thread| std::fs::exists(path(thread.tid)).expect("stat")), "{threads:?}");
        clock::sleep_until(opener.opens_at() + 50_000_000);
        assert!(!opener.progress().done);
        if matches!(workload, Workload::Stream(_)) {
            assert!(opener.progress().sent_bytes > 0 && listener.progress().received_bytes > 0);
        } else {
            assert!(opener.progress().transactions > 0);
        }
        let begun = clock::now();
        opener.stop();
        assert!(matches!(opener.join(), Err(StreamError::Stopped)));
        drop(listener);
        assert!(clock::now() - begun < 1_000_000_000, "{} ms", (clock::now() - begun) / 1_000_000);
        for thread in threads {
            assert!(!std::fs::exists(path(thread.tid)).expect("stat"), "{thread:?} is still there");
        }
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let workload = Workload::Stream(stream(Transport::Tcp));
    let foreign = EndRole::Listener { address: IpAddr::from([198, 18, 255, 1]) };
    let error = prepare(&half(&workload, foreign)).expect_err("no address of this host").to_string();
    assert!(error.contains("198.18.255.1") && error.contains("ip address"), "{error}");

    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for transport in [Transport::Tcp, Transport::Udp] {
        let mut opener = prepare(&half(&Workload::Stream(stream(transport)), EndRole::Opener)).expect("is prepared");
        let error =
            opener.connect(&Connect { listeners: [(0, nobody)].into() }).expect_err("nobody listens").to_string();
        assert!(error.contains("127.0.0.1:1") && error.contains("refused"), "{error}");
        assert!(error.contains("0 of 1 flows connected"), "{error}");
        let error = opener.start(clock::now()).expect_err("no flows").to_string();
        assert!(error.contains("0 of 1 flows"), "{error}");
    }

    let socket = SocketOptions { bind_device: Some("nosuch0".into()), ..SocketOptions::default() };
    let spec = Workload::Stream(StreamSpec { socket, ..stream(Transport::Tcp) });
    let mut opener = prepare(&half(&spec, EndRole::Opener)).expect("is prepared");
    let error = opener.connect(&Connect { listeners: [(0, nobody)].into() }).expect_err("no such device").to_string();
    assert!(error.contains("nosuch0"), "{error}");
}
