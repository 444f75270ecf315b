//! A test from the client's end: from connecting to the server to the counts of both ends.

use crate::control::{Control, Cookie};
use crate::cpu::CpuTime;
use crate::error::Iperf3Error;
use crate::flows::{self, OPENING};
use crate::job::Job;
use crate::login::{Login, Padding};
use crate::parameters::parameters;
use crate::peer_end::PeerEnd;
use crate::results::{FlowResult, TestResults, ids};
use crate::state::State;
use linerate_engine::{Conductor, Counted, SocketError, Stopped, Timeline, failed};
use linerate_model::{
    Assignment, Caveat, CaveatKind, Direction, EndCounts, Endpoints, FlowCounts, Preparation, Ready, RoleCounts,
    Transport, message,
};
use linerate_streams::{Bulk, BulkCounts, BulkFlow, BulkOptions};
use linerate_sys::clock;
use linerate_sys::handle::OwnedSocket;
use linerate_units::Nanos;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time from the order to start to the start, when the last flow is opened.
const LEAD: Nanos = Nanos::from_millis(20);
/// Time from the server's start of the test to the begin of the load, for starting the threads.
const THREADS_NS: u64 = 2_000_000;
/// Longest time that a server needs between two tests.
const BETWEEN_TESTS_NS: u64 = 2_000_000_000;
/// Interval of asking a busy server again.
const RETRY_NS: u64 = 50_000_000;
/// Delay of the end of the test after the window. The server closes the data flows at the end of the test; calls at the
/// window's edge have returned by then, and senders go on for longer.
const END_DELAY_NS: u64 = 20_000_000;
/// The same for a test that ends by bytes. All of them have been acknowledged, but the server may still have to read
/// some.
const END_DELAY_AFTER_BYTES_NS: u64 = 5_000_000;
/// Step of the test until the server has agreed to it.
const ASKING: &str = "asking for a test";
/// Longest interval of checking for the end of the window.
const LOOK_NS: u64 = 50_000_000;
/// The same for a test that ends by bytes, because the server's clock runs until the end of the test.
const LOOK_AT_BYTES_NS: u64 = 2_000_000;

/// Measures a stream to the server that `assignment` names.
pub(crate) fn run(assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, Iperf3Error> {
    let job = Job::check(assignment)?;
    let stop = host.stop().flag();
    host.listening(Endpoints::new())?;
    host.preparing(Preparation::ReachingIperf3);
    let cookie = Cookie::draw();
    let mut control = agreed(&job, &cookie, stop)?;
    // The server begins when it has the last flow, so that one waits for the start.
    let directions = job.flows();
    let (last, others) = directions.split_last().expect("a stream has a flow");
    let mut flows: Vec<BulkFlow> = Vec::new();
    for flow in others {
        flows.push(flows::open(&job, &cookie, *flow, &control, stop)?);
    }
    let start = host.ready(Ready { lead: LEAD, ..Ready::default() })?;
    if !host.stop().sleep_until(start) {
        return Err(Stopped.into());
    }
    flows.push(flows::open(&job, &cookie, *last, &control, stop)?);
    control.expect(State::TestStart, OPENING)?;
    control.expect(State::TestRunning, OPENING)?;

    let cpu = CpuTime::now();
    let timeline = Timeline::new(clock::now() + THREADS_NS, job.window);
    // The server fails if a connection closes before it has ended the test.
    let _open_connections =
        flows.iter().map(BulkFlow::keep_open).collect::<io::Result<Vec<OwnedSocket>>>().map_err(failed("dup"))?;
    let options = BulkOptions { wide: true, by_bytes: job.task.volume.is_some(), rate_limited: host.is_rate_limited() };
    let bulk = Bulk::start(assignment, job.path, timeline.clone(), flows, options, host.stop())?;
    let work = bulk.work();
    let meters = Arc::clone(&work.meters);
    host.runs(work);
    let (end_delay, interval) = match job.task.volume {
        None => (END_DELAY_NS, LOOK_NS),
        Some(_) => (END_DELAY_AFTER_BYTES_NS, LOOK_AT_BYTES_NS),
    };
    // Bytes may end the test before its time, which changes the close of the window.
    while clock::now() < timeline.close() + end_delay && !meters.has_ended() {
        if control.has_message()? {
            control.check_message("the test ran")?;
        }
        if !host.stop().sleep_until((timeline.close() + end_delay).min(clock::now() + interval)) {
            return Err(Stopped.into());
        }
    }
    if clock::now() >= timeline.close() {
        control.send_state(State::TestEnd, "the test was to end")?;
    } else {
        // A flow has failed. A message of the server may explain it.
        control.check_message("the test ran")?;
    }
    let counts = bulk.join()?;
    control.expect(State::ExchangeResults, "the test was to end")?;
    control.send(&client_results(&job, &counts, CpuTime::now(), cpu).encode(), "results were exchanged")?;
    let text = control.receive("results were exchanged")?;
    let results = TestResults::decode(&text, directions.len())
        .map_err(|reason| control.foreign(reason, "results were exchanged"))?;
    control.expect(State::DisplayResults, "results were exchanged")?;
    control.send_state(State::Done, "the test ended")?;
    let (server, caveats) = server_end(&job, &counts, &results, text);
    Ok(Counted {
        roles: vec![RoleCounts::Flows(Box::new(counts.end)), RoleCounts::Flows(Box::new(server))],
        started_unix_ns: clock::unix_at(timeline.open()),
        caveats,
        remains: Vec::new(),
    })
}

/// Returns a control connection on which the server has agreed to the test of `job`.
fn agreed<'a>(job: &Job, cookie: &Cookie, stop: &'a AtomicBool) -> Result<Control<'a>, Iperf3Error> {
    let Some(login) = &job.login else { return request_test(job, cookie, None, stop) };
    // Servers do not report which padding they read: PKCS#1 v1.5 alone before 3.17, OAEP since, unless an option
    // changes it. PKCS#1 v1.5 is weak: the answers of a server that reads it, or their timing, help to decrypt a
    // recorded login. So a server that reads OAEP and accepts the login never gets the weak padding.
    match request_test(job, cookie, Some((login, Padding::Oaep)), stop) {
        Err(Iperf3Error::LoginWanted(_) | Iperf3Error::ClosedWhenAsked(_)) => (),
        control => return control,
    }
    request_test(job, cookie, Some((login, Padding::Pkcs1v15)), stop).map_err(|error| {
        let user = login.user().to_owned();
        match error {
            Iperf3Error::LoginWanted(server) => Iperf3Error::LoginRefused { server, user },
            Iperf3Error::ClosedWhenAsked(server) => Iperf3Error::ClosedAfterLogin { server, user },
            other => other,
        }
    })
}

/// Asks the server for the test of `job`, with a login if it has one.
fn request_test<'a>(
    job: &Job,
    cookie: &Cookie,
    login: Option<(&Login, Padding)>,
    stop: &'a AtomicBool,
) -> Result<Control<'a>, Iperf3Error> {
    let mut control = connect(job, cookie, stop)?;
    let token = match login {
        // The server compares the login's time with its own, so the token is made at the last moment.
        Some((login, padding)) => Some(login.token(padding, clock::unix_now()).map_err(SocketError::InvalidRequest)?),
        None => None,
    };
    control.send(&parameters(job, token), ASKING)?;
    match control.expect(State::CreateStreams, ASKING) {
        Ok(()) => Ok(control),
        Err(Iperf3Error::Closed { server, .. }) => Err(Iperf3Error::ClosedWhenAsked(server)),
        Err(error) => Err(error),
    }
}

/// Returns a control connection on which the server waits for the parameters of a test.
///
/// Between two tests a server is busy for a moment and does not listen, so this retries for a while.
fn connect<'a>(job: &Job, cookie: &Cookie, stop: &'a AtomicBool) -> Result<Control<'a>, Iperf3Error> {
    let deadline = clock::now() + BETWEEN_TESTS_NS;
    loop {
        let control = Control::open(job, cookie, stop).and_then(|mut control| {
            control.expect(State::ParameterExchange, ASKING)?;
            Ok(control)
        });
        match control {
            Err(Iperf3Error::Busy(_) | Iperf3Error::Unreachable { .. } | Iperf3Error::Broken { .. })
                if clock::now() < deadline =>
            {
                if stop.load(Ordering::Relaxed) {
                    return Err(Stopped.into());
                }
                clock::sleep_until(clock::now() + RETRY_NS);
            }
            control => return control,
        }
    }
}

/// Returns the results of this end for the server, which only prints them.
fn client_results(job: &Job, counts: &BulkCounts, now: CpuTime, start: CpuTime) -> TestResults {
    let directions = job.flows();
    let ids = ids(directions.len());
    let mut flows = Vec::new();
    for (((_, backward), id), flow) in directions.into_iter().zip(ids).zip(&counts.end.flows) {
        flows.push(if backward { received_result(job, counts, id, flow) } else { sent_result(job, counts, id, flow) });
    }
    TestResults {
        cpu: now.since(start),
        congestion: counts.end.flows.iter().find_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.congestion.clone()),
        counts_retransmits: job.task.net.transport == Transport::Tcp && job.task.direction != Direction::Receive,
        flows,
    }
}

fn sent_result(job: &Job, counts: &BulkCounts, id: u64, flow: &FlowCounts) -> FlowResult {
    FlowResult {
        id,
        bytes: flow.sent_bytes,
        retransmits: flow.tcp.as_ref().map(|tcp| tcp.retransmits),
        datagrams: datagrams(job, flow.sent_bytes),
        time: counts.end.sent.as_ref().map(|sent| sent.window).unwrap_or_default(),
        ..FlowResult::default()
    }
}

fn received_result(job: &Job, counts: &BulkCounts, id: u64, flow: &FlowCounts) -> FlowResult {
    let received = counts.end.received.as_ref();
    FlowResult {
        id,
        bytes: flow.received_bytes,
        jitter: received.and_then(|received| received.jitter).unwrap_or_default(),
        datagrams: datagrams(job, flow.received_bytes),
        time: received.map(|received| received.window).unwrap_or_default(),
        ..FlowResult::default()
    }
}

/// Returns the number of datagrams with `bytes` bytes in all; zero for TCP.
fn datagrams(job: &Job, bytes: u64) -> u64 {
    if job.task.net.transport == Transport::Udp { bytes / job.task.message_bytes.get() } else { 0 }
}

/// Returns the server's end from its `results`, and caveats about them.
fn server_end(job: &Job, counts: &BulkCounts, results: &TestResults, text: Value) -> (EndCounts, Vec<Caveat>) {
    let to_here: Vec<bool> = job.flows().into_iter().map(|(_, backward)| backward).collect();
    let peer = PeerEnd {
        transport: job.task.net.transport,
        message_bytes: job.task.message_bytes.get(),
        has_warmup: job.omit_s > 0,
        to_here: &to_here,
        local: &counts.end,
        numbered: counts.numbered,
    };
    let (end, mut caveats) = peer.counts(results, text);
    caveats.extend(other_congestion(job, results));
    (end, caveats)
}

/// Returns a caveat if the server sent with another congestion control than requested. The server only prints a warning
/// itself.
fn other_congestion(job: &Job, results: &TestResults) -> Option<Caveat> {
    let asked = job.task.net.socket.congestion.as_ref()?;
    let used = results.congestion.as_ref()?;
    (job.task.direction != Direction::Send && asked != used).then(|| {
        let text = message!(
            "caveat-iperf3-congestion",
            "the iperf3 server sent with congestion control {used}, for it has no `{asked}`; load its module \
             there (modprobe tcp_{asked})",
            used,
            asked
        );
        Caveat::new(CaveatKind::Fallback, text)
    })
}
