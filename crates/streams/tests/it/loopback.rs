//! Every kind of stream and transaction over loopback, and the counts of both ends.

use crate::hosts::{
    MEASURE, counts, flows, greeting, long, over_ip, pair, parts, run, run_metered, server_of, start, start_server,
    stream, was_stopped, window,
};
use linerate_engine::testing::{self, Session};
use linerate_engine::{Conductor, Engine as _, Stop, Stopped, Work};
use linerate_model::{
    Arrivals, Assignment, Direction, EndCounts, Endpoints, IpVersion, Net, Offered, Preparation, Ready, ReceiveBy,
    Received, SendBy, Sent, SocketOptions, StreamTask, Task, Timing, TransactStyle, TransactTask, Transactions,
    Transport, Warmup, Window,
};
use linerate_streams::Streams;
use linerate_sys::clock;
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, Nanos, OpRate};
use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, TcpStream};
use std::sync::Arc;

#[test]
fn tcp_in_both_directions_over_separate_flows() {
    let spec = StreamTask { net: flows(Transport::Tcp, 2), direction: Direction::Both, ..stream(Transport::Tcp) };
    let [(client, client_meter), (server, server_meter)] = run_metered(&Task::Stream(spec));
    for (sender, receiver, out, into) in
        [(&client, &server, client_meter, server_meter), (&server, &client, server_meter, client_meter)]
    {
        let sent = sender.sent.as_ref().expect("sent");
        let received = receiver.received.as_ref().expect("received");
        assert_eq!((sent.io_method.as_str(), received.io_method.as_str()), ("write", "recv"));
        // The windows of both ends need not agree: an edge comes late to a thread that waits for its core. What was
        // moved does.
        assert!(0 < sent.payload_bytes && sent.payload_bytes <= out.sent_bytes, "{sent:?} of {out:?}");
        assert!(
            0 < received.payload_bytes && received.payload_bytes <= into.received_bytes,
            "{received:?} of {into:?}"
        );
        assert!(into.received_bytes <= out.sent_bytes, "sent {out:?}, received {into:?}");
        // An edge is at most half a window off, for where it is late the last sample before it is taken if that is
        // nearer.
        assert!(sent.window.get() > MEASURE / 2 && received.window.get() > MEASURE / 2, "{sent:?} {received:?}");
        assert_eq!(receiver.flows.len(), 4);
        let tcp: Vec<_> = receiver.flows.iter().filter(|flow| flow.received_bytes > 0).collect();
        assert_eq!(tcp.len(), 2);
        assert_eq!(tcp.iter().map(|flow| flow.received_bytes).sum::<u64>(), received.payload_bytes);
        assert!(tcp.iter().all(|flow| flow.tcp.as_ref().is_some_and(|tcp| tcp.segments_in > 0)));
    }
}

#[test]
fn tcp_by_sendfile_and_discard_with_options_over_ipv6() {
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
    let spec = StreamTask {
        net: Net { socket, ..over_ip(Transport::Tcp, IpVersion::V6) },
        direction: Direction::Receive,
        send_by: SendBy::Sendfile,
        receive_by: ReceiveBy::Discard,
        ..stream(Transport::Tcp)
    };
    let (client, server) = run(&Task::Stream(spec));
    assert!(client.sent.is_none() && server.received.is_none());
    assert_eq!(server.sent.expect("the server sends").io_method, "sendfile");
    let received = client.received.expect("the client receives");
    assert!(received.io_method.contains("MSG_TRUNC") && received.payload_bytes > 0, "{received:?}");
    let tcp = server.flows[0].tcp.as_ref().expect("TCP_INFO");
    assert_eq!(tcp.congestion, "reno");
    // Timestamps take 12 bytes of each segment.
    assert!((1_100..=1_200).contains(&tcp.mss), "{tcp:?}");
    // Busy times are counted in the kernel's ticks: a receiver that keeps up may leave none.
    assert!(tcp.segments_out > 0 && tcp.rtt.get() > 0 && tcp.congestion_window > 0, "{tcp:?}");
}

#[test]
fn the_dscp_of_datagrams_is_checked_at_their_receiver() {
    for version in [IpVersion::V4, IpVersion::V6] {
        for (direction, dscp) in [(Direction::Send, Some(46)), (Direction::Receive, Some(46)), (Direction::Send, None)]
        {
            let socket = SocketOptions { dscp, ..SocketOptions::default() };
            let net = Net { socket, ..over_ip(Transport::Udp, version) };
            let offered = Some(Offered::PayloadBps(BitRate::per_second(10_000_000)));
            let spec = StreamTask { net, direction, offered, ..stream(Transport::Udp) };
            let (client, server) = run(&Task::Stream(spec));
            let received = client.received.or(server.received).expect("one end receives");
            let counted = received.dscp.map(|dscp| (dscp.kept >= received.arrived, dscp.changed, dscp.changed_to));
            assert_eq!(counted, dscp.map(|_| (true, 0, None)), "{version:?} {direction:?}: {received:?}");
        }
    }
}

#[test]
fn a_set_rate_is_not_exceeded_and_each_datagram_is_counted() {
    for (transport, offload) in [(Transport::Udp, true), (Transport::Udp, false), (Transport::Tcp, true)] {
        let rate = BitRate::per_second(100_000_000);
        let offered = Some(Offered::PayloadBps(rate));
        let message_bytes = ByteCount::new(1_250);
        let spec = StreamTask { net: flows(transport, 2), offered, offload, message_bytes, ..stream(transport) };
        let begin = clock::now();
        let [(client, moved), (server, _)] = run_metered(&Task::Stream(spec));
        let took = Nanos::new(clock::now() - begin);
        let sent = client.sent.expect("sent");
        let received = server.received.expect("received");
        // Counts all that was sent, whenever threads ran. The tests of `pace` check that the schedule is exact.
        assert!(
            moved.sent_bytes as f64 * 8.0 < rate.get() as f64 * took.as_secs_f64(),
            "{transport}: {moved:?} in {took}"
        );
        assert!(
            moved.sent_bytes > sent.payload_bytes && received.payload_bytes > 0,
            "{transport}: {sent:?} {received:?}"
        );
        if transport == Transport::Udp {
            assert_eq!(sent.messages + sent.not_sent + sent.refused, 6_000);
            assert_accounted(&sent, &received, 1_250);
            assert_eq!((received.duplicates, received.reordered), (0, 0));
            assert!(received.jitter.is_some());
        }
    }
}

/// Asserts that datagrams of `message` bytes arrived, and that all others were dropped because the receiver's socket
/// was full.
fn assert_accounted(sent: &Sent, received: &Received, message: u64) {
    let lost = sent.messages.checked_sub(received.arrived).expect("no more arrive than were sent");
    // The kernel counts dropped buffers, which may contain several datagrams.
    let per_buffer = if received.joined > 0 { (65_507 / message).min(64) } else { 1 };
    assert!(lost <= received.socket_drops.unwrap_or(0) * per_buffer, "{lost} lost, {sent:?} {received:?}");
    assert!(received.arrived > 0, "{sent:?} {received:?}");
}

#[test]
fn every_datagram_is_accounted_for_at_full_speed() {
    for (offload, ip, message) in [
        (true, IpVersion::V4, 1_448),
        (false, IpVersion::V6, 64),
        (true, IpVersion::V4, 65_507),
        (true, IpVersion::V6, 16),
    ] {
        let spec = StreamTask {
            net: over_ip(Transport::Udp, ip),
            offload,
            message_bytes: ByteCount::new(message),
            ..stream(Transport::Udp)
        };
        let (client, server) = run(&Task::Stream(spec));
        let sent = client.sent.expect("sent");
        let received = server.received.expect("received");
        assert_eq!(sent.payload_bytes, sent.messages * message);
        assert_eq!(offload && message < 30_000, sent.io_method.contains("UDP_SEGMENT"), "{sent:?}");
        assert_eq!(offload && message < 30_000, received.joined > 0, "{received:?}");
        assert!(
            received.window.get() >= MEASURE && received.payload_bytes == received.messages * message,
            "{received:?}"
        );
        assert!(received.messages > 0, "{received:?}");
        assert_accounted(&sent, &received, message);
    }
}

#[test]
fn drops_of_a_small_buffer_are_counted() {
    let socket = SocketOptions { receive_buffer: Some(ByteCount::new(4_096)), ..SocketOptions::default() };
    let net = Net { socket, ..Net::plain(Transport::Udp) };
    let spec = StreamTask { net, offload: false, direction: Direction::Both, ..stream(Transport::Udp) };
    let (client, server) = run(&Task::Stream(spec));
    for (sender, receiver) in [(&client, &server), (&server, &client)] {
        let sent = sender.sent.as_ref().expect("sent");
        let received = receiver.received.as_ref().expect("received");
        let lost = sent.messages - received.arrived;
        assert!(lost > 0, "{received:?}");
        // All drops count, also those before the first measured datagram.
        assert!(lost <= received.socket_drops.unwrap_or(0), "{lost} lost, {received:?}");
    }
}

#[test]
fn transactions_of_every_style() {
    let connect = TransactTask {
        net: flows(Transport::Tcp, 2),
        style: TransactStyle::Connect,
        ..TransactTask::plain(Transport::Tcp)
    };
    let deep = |transport| TransactTask {
        outstanding: 16,
        request_bytes: ByteCount::new(100),
        response_bytes: ByteCount::new(3_000),
        ..TransactTask::plain(transport)
    };
    let large = TransactTask {
        request_bytes: ByteCount::new(1_000_000),
        response_bytes: ByteCount::new(1_000_000),
        outstanding: 8,
        ..TransactTask::plain(Transport::Tcp)
    };
    for spec in [
        TransactTask::plain(Transport::Tcp),
        TransactTask::plain(Transport::Udp),
        TransactTask {
            net: over_ip(Transport::Tcp, IpVersion::V6),
            busy_poll: true,
            ..TransactTask::plain(Transport::Tcp)
        },
        TransactTask { busy_poll: true, ..TransactTask::plain(Transport::Udp) },
        deep(Transport::Tcp),
        deep(Transport::Udp),
        TransactTask { outstanding: 128, ..TransactTask::plain(Transport::Udp) },
        large,
        connect.clone(),
        TransactTask { busy_poll: true, ..connect },
    ] {
        let (asked, answered) = run(&Task::Transact(spec.clone()));
        let done = asked.transactions.expect("the client asks");
        assert!(answered.transactions.is_none() && asked.sent.is_none() && asked.received.is_none());
        assert!(done.completed > 0, "{spec:?}");
        assert_eq!(done.not_sent, 0, "{spec:?}");
        assert_answered(&done, &spec);
        // Latencies include the requests in flight at the window's end.
        let under_way = u64::from(spec.net.flows) * u64::from(spec.outstanding);
        assert!((0..=under_way).contains(&(done.latency.count() - done.completed)), "{spec:?}");
        assert!(done.latency.quantile(0.5) > 1_000);
        // Little's law, in flight = rate x latency, over the window and the requests that cross its edges.
        let in_flight = f64::from(spec.net.flows) * f64::from(spec.outstanding);
        let latencies_ns = done.completed as f64 * done.latency.mean();
        let time_ns = (done.window.get() + 2 * done.latency.max()) as f64;
        assert!(latencies_ns < in_flight * time_ns * 1.01, "{spec:?}: {}", latencies_ns / time_ns);
        let received: u64 = asked.flows.iter().map(|flow| flow.received_bytes).sum();
        assert_eq!(received, done.completed * spec.response_bytes.get());
    }
}

/// Asserts that transactions were completed, and that none failed over a persistent connection. Datagrams and
/// connections fail after a second, which a busy machine may take.
fn assert_answered(done: &Transactions, spec: &TransactTask) {
    let is_persistent = spec.net.transport == Transport::Tcp && spec.style == TransactStyle::Persistent;
    let max_failed = if is_persistent { 0 } else { done.completed / 10 };
    assert!(done.completed > 0 && done.failed <= max_failed, "{spec:?}: {done:?}");
}

#[test]
fn an_open_loop_keeps_its_rate() {
    for (transport, style, arrivals) in [
        (Transport::Tcp, TransactStyle::Persistent, Arrivals::Even),
        (Transport::Udp, TransactStyle::Persistent, Arrivals::Poisson),
        (Transport::Tcp, TransactStyle::Connect, Arrivals::Even),
    ] {
        let rate = Some(OpRate::per_second(1_000));
        let spec = TransactTask { net: flows(transport, 2), style, arrivals, rate, ..TransactTask::plain(transport) };
        let done = run(&Task::Transact(spec.clone())).0.transactions.expect("asks");
        let tolerance = if arrivals == Arrivals::Even { 3 } else { 150 };
        // Each due request is timed, also if it completes late, or counted as failed or not sent.
        let due = done.latency.count() + done.failed + done.not_sent;
        assert!(due.abs_diff(600) <= tolerance, "{transport} {style:?}: {due}, of which {} not sent", done.not_sent);
        assert_answered(&done, &spec);
    }
}

/// Stops the sessions on drop.
struct Stopping<'a>([&'a Session; 2]);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|session| session.stop("the test is over"));
    }
}

/// Runs `task` with a warm-up that ends after `is_steady` returned true.
fn opened_late(task: &Task, is_steady: impl Fn(&Session, &Session) -> bool) -> (EndCounts, EndCounts) {
    let (mut client, mut server) = parts(task);
    for assignment in [&mut client, &mut server] {
        assignment.timing = Timing::Window(Window { warmup: Warmup::STEADY, measure: Nanos::new(MEASURE) });
    }
    let (client, server) = pair(client, server);
    testing::scope(|scope| {
        // Without a window they would continue after the test fails.
        let _stopping = Stopping([&client, &server]);
        let client_thread = start(scope, &client);
        let server_thread = start(scope, &server);
        let (_, closes) = window(&client);
        window(&server);
        assert!(closes > clock::now() + (1 << 60), "nobody knows yet when the window closes");
        wait_until("the load is seen", || is_steady(&client, &server).then_some(()));
        let opens = clock::now() + 20_000_000;
        assert!(client.open_window(opens) && server.open_window(opens) && !client.open_window(opens));
        (counts(client_thread.join().expect("no panic")), counts(server_thread.join().expect("no panic")))
    })
}

#[test]
fn a_window_that_opens_late_is_measured_as_any_other() {
    for (transport, offered) in [
        (Transport::Tcp, None),
        (Transport::Tcp, Some(Offered::PayloadBps(BitRate::per_second(10_000_000)))),
        (Transport::Udp, None),
        (Transport::Udp, Some(Offered::PayloadBps(BitRate::per_second(10_000_000)))),
    ] {
        let spec = StreamTask { offered, ..stream(transport) };
        let begin = clock::now();
        let (client, server) = opened_late(&Task::Stream(spec), |client, server| {
            client.meter().unwrap_or_default().sent_bytes > 100_000
                && server.meter().unwrap_or_default().received_bytes > 100_000
        });
        let sent = client.sent.expect("sent");
        let received = server.received.expect("received");
        assert!(received.payload_bytes > 0, "{transport} {offered:?}: {received:?}");
        for length in [sent.window, received.window] {
            let took = clock::now() - begin;
            assert!((MEASURE / 2..=took).contains(&length.get()), "{transport} {offered:?}: {length} of {took} ns");
        }
        if let (Transport::Udp, Some(_)) = (transport, offered) {
            // 10 Mbit/s in datagrams of 1,448 bytes. A sender that notices the window late sends fewer in it.
            let due = sent.messages + sent.not_sent + sent.refused;
            assert!((1..=519).contains(&due), "{sent:?}");
            assert_accounted(&sent, &received, 1_448);
        }
    }
    for (transport, style, rate) in [
        (Transport::Tcp, TransactStyle::Persistent, None),
        (Transport::Udp, TransactStyle::Persistent, None),
        (Transport::Udp, TransactStyle::Persistent, Some(OpRate::per_second(1_000))),
        (Transport::Tcp, TransactStyle::Connect, None),
    ] {
        let spec = TransactTask { style, rate, ..TransactTask::plain(transport) };
        let (client, _) = opened_late(&Task::Transact(spec.clone()), |client, _| {
            client.meter().is_some_and(|meter| meter.operations > 20)
        });
        let done = client.transactions.expect("asks");
        assert_answered(&done, &spec);
        if rate.is_some() {
            let due = done.latency.count() + done.failed + done.not_sent;
            assert!((1..=601).contains(&due), "{due} were due");
        }
    }
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("statm");
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages") * 4_096
}

#[test]
fn an_open_loop_at_an_impossible_rate_ends_in_time_and_can_be_stopped() {
    for (transport, arrivals) in [
        (Transport::Udp, Arrivals::Even),
        (Transport::Udp, Arrivals::Poisson),
        (Transport::Tcp, Arrivals::Even),
        (Transport::Tcp, Arrivals::Poisson),
    ] {
        // The highest rate that a task may request. No machine reaches it.
        let rate = Some(OpRate::per_second(100_000_000));
        let spec = TransactTask {
            rate,
            arrivals,
            request_bytes: ByteCount::new(64),
            response_bytes: ByteCount::new(64),
            ..TransactTask::plain(transport)
        };
        let task = Task::Transact(spec);
        let before = resident_bytes();
        let (client, server) = parts(&task);
        let (client, server) = pair(client, server);
        let client_end = testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            let client_end = client_thread.join().expect("no panic");
            server_thread.join().expect("no panic").expect("the server has counts");
            client_end
        });
        let done = counts(client_end).transactions.expect("asks");
        // 60 million were due in 0.6 s. The client does not send the rest after the window.
        assert!(done.not_sent > 10_000_000, "{transport} {arrivals:?}: {} not sent", done.not_sent);
        assert!(done.completed > 0, "{transport} {arrivals:?}: none completed");
        let growth = resident_bytes().saturating_sub(before);
        assert!(growth < 200 << 20, "{transport} {arrivals:?}: grew by {} MiB", growth >> 20);

        let (client, server) = parts(&task);
        let (client, server) = pair(long(client), long(server));
        testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            let (opens, closes) = window(&client);
            clock::sleep_until(opens);
            client.stop("enough");
            assert!(was_stopped(&client_thread.join().expect("no panic")));
            server.stop("enough");
            server_thread.join().expect("no panic").expect_err("stopped, or its client is gone");
            assert!(clock::now() < closes, "{transport} {arrivals:?}: they continued to the window's end");
        });
    }
}

#[test]
fn large_answers_to_many_small_requests_end_with_the_window() {
    let spec = TransactTask { response_bytes: ByteCount::new(1_000_000), ..TransactTask::plain(Transport::Tcp) };
    let (client, server) = parts(&Task::Transact(spec));
    let (client, server) = pair(client, server);
    let end = testing::scope(|scope| {
        let answering = start(scope, &server);
        let mut asking = TcpStream::connect(server_of(&client)).expect("connects");
        asking.write_all(&greeting(5)).expect("writes");
        asking.read_exact(&mut greeting(0)).expect("is answered");
        // Answers of 65 GB.
        asking.write_all(&[0; 65_536]).expect("writes");
        scope.spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            while asking.read(&mut buffer).is_ok_and(|read| read > 0) {}
        });
        start_server(&client);
        counts(answering.join().expect("no panic"))
    });
    let sent = server.meter().expect("it was at work").sent_bytes;
    assert!(sent < 65_536 * 1_000_000, "it sent all answers: {sent} bytes");
    // The answers of the window: 0.6 s at up to 30 GB/s.
    let answered = end.flows[0].received_bytes;
    assert!((1..20_000).contains(&answered), "{answered} answered");
    assert_eq!(end.flows[0].sent_bytes, answered * 1_000_000);
}

/// A session of a host that is late.
struct Late<'a> {
    session: &'a Session,
    /// Delay of the threads, in nanoseconds.
    threads: u64,
    /// Delay of the start that the host uses, in nanoseconds.
    start: u64,
}

impl Conductor for Late<'_> {
    fn preparing(&self, doing: Preparation) {
        self.session.preparing(doing);
    }

    fn listening(&self, here: Endpoints) -> Result<Endpoints, Stopped> {
        self.session.listening(here)
    }

    fn ready(&self, ready: Ready) -> Result<u64, Stopped> {
        let start = self.session.ready(ready)?;
        clock::sleep_until(start + self.threads);
        Ok(start + self.start)
    }

    fn runs(&self, work: Work) {
        self.session.runs(work);
    }

    fn sent(&self) -> Result<(), Stopped> {
        self.session.sent()
    }

    fn stop(&self) -> &Arc<Stop> {
        Conductor::stop(self.session)
    }
}

#[test]
fn a_stall_is_in_an_open_loops_latency() {
    // The server starts 150 ms after the client's window opens. Requests wait for it.
    let spec = TransactTask { rate: Some(OpRate::per_second(1_000)), ..TransactTask::plain(Transport::Tcp) };
    let [client, answering] = <[_; 2]>::from(parts(&Task::Transact(spec)))
        .map(|part| Assignment { timing: Timing::of(Nanos::from_millis(100), Nanos::from_millis(300)), ..part });
    let (client, server) = pair(client, answering.clone());
    let done = testing::scope(|scope| {
        let asking = start(scope, &client);
        // The warm-up takes 100 ms.
        let late = Late { session: &server, threads: 250_000_000, start: 0 };
        Streams.run(&answering, &late).expect("answers");
        counts(asking.join().expect("no panic")).transactions.expect("asks")
    });
    let due = done.latency.count() + done.not_sent;
    assert!(due.abs_diff(300) <= 2, "every request that was due is timed or not sent: {due}");
    // Requests of the first 150 ms of 300 waited up to 150 ms, and half of them longer than 75 ms.
    let p75 = done.latency.quantile(0.75);
    assert!(p75 > 50_000_000, "p75 {p75}");
    assert!(done.latency.max() > 140_000_000);
}

/// Agents of busy hosts take their orders late.
#[test]
fn an_end_that_starts_late_counts_until_the_other_is_done() {
    for task in [Task::Stream(stream(Transport::Tcp)), Task::Transact(TransactTask::plain(Transport::Tcp))] {
        let [client, answering] = <[_; 2]>::from(parts(&task))
            .map(|part| Assignment { timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(1)), ..part });
        let (client, server) = pair(client, answering.clone());
        let (first, late) = testing::scope(|scope| {
            let first = start(scope, &client);
            // Streams continue for 250 ms after the window. This is later.
            let late = Streams.run(&answering, &Late { session: &server, threads: 0, start: 600_000_000 });
            (counts(first.join().expect("no panic")), counts(late))
        });
        match (&first.sent, &late.received) {
            (Some(sent), Some(received)) => {
                assert!(received.payload_bytes > 0, "{sent:?} {received:?}");
            }
            _ => assert!(first.transactions.is_some_and(|done| done.completed > 0)),
        }
    }
}
