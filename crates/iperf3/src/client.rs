//! A test from the client's end: from reaching the server to what both ends counted.

use crate::control::{Control, Cookie};
use crate::cpu::CpuTime;
use crate::error::Iperf3Error;
use crate::flows::{self, OPENING};
use crate::job::Job;
use crate::login::Padding;
use crate::parameters::parameters;
use crate::results::{FlowResult, TestResults, ids};
use crate::state::State;
use crate::told::ToldOf;
use linerate_engine::{Conductor, Counted, Timeline};
use linerate_model::{
    Assignment, Caveat, CaveatKind, Direction, EndCounts, Endpoints, FlowCounts, Ready, RoleCounts, Transport, message,
};
use linerate_streams::{Bulk, BulkCounts, BulkFlow, Iperf3Test};
use linerate_sys::clock;
use linerate_units::Nanos;
use serde_json::Value;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From hearing of the start to the start: the last flow is opened then.
const LEAD: Nanos = Nanos::from_millis(20);
/// From the server's word that the test runs to the begin of the load: time to start the threads.
const THREADS_NS: u64 = 2_000_000;
/// How long a server may take from the end of one test to the next one's begin, and how soon it is asked again.
const BETWEEN_TESTS_NS: u64 = 2_000_000_000;
const AGAIN_NS: u64 = 50_000_000;
/// The server closes the data flows as soon as it hears of the end. It hears of it so long after the window: calls that straddle the
/// window's edge have ended then. Senders go on for longer.
const LATER_NS: u64 = 20_000_000;
/// The same of a test that ends by bytes: all of them have been acknowledged, and the server's process may still have to read some.
const LATER_AFTER_BYTES_NS: u64 = 5_000_000;
/// What is done until the server has agreed to the test.
const ASKING: &str = "asking for a test";
/// How often it is looked whether the window is over, at the latest.
const LOOK_NS: u64 = 50_000_000;
/// The same where it ends by bytes: the server's clock runs until it hears of the end.
const LOOK_AT_BYTES_NS: u64 = 2_000_000;

/// Measures a stream to the server that `assignment` names.
pub(crate) fn run(assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, Iperf3Error> {
    let job = Job::check(assignment)?;
    let stop = host.stop().flag();
    host.listening(Endpoints::new())?;
    host.preparing("reaching the iperf3 server");
    let cookie = Cookie::draw();
    let mut control = agreed(&job, &cookie, stop)?;
    // The server begins when the last flow is there. That one waits for the start.
    let all = job.flows();
    let (last, first) = all.split_last().expect("a stream has a flow");
    let open = |flow: &(u16, bool), control: &Control<'_>| flows::open(&job, &cookie, *flow, control, stop);
    let mut flows: Vec<BulkFlow> = first.iter().map(|flow| open(flow, &control)).collect::<Result<_, _>>()?;
    let start = host.ready(Ready { lead: LEAD, ..Ready::default() })?;
    if !host.stop().sleep_until(start) {
        return Err(Iperf3Error::Stopped);
    }
    flows.push(open(last, &control)?);
    control.expect(State::TestStart, OPENING)?;
    control.expect(State::TestRunning, OPENING)?;

    let (cpu, timeline) = (CpuTime::now(), Timeline::new(clock::now() + THREADS_NS, job.window));
    // The server fails if a connection closes before it has ended the test.
    let _held = flows
        .iter()
        .map(BulkFlow::keep_open)
        .collect::<io::Result<Vec<OwnedFd>>>()
        .map_err(Iperf3Error::socket("dup"))?;
    let test = Iperf3Test { wide: true, by_bytes: job.task.volume.is_some(), rate_limited: host.is_rate_limited() };
    let bulk = Bulk::start(assignment, job.path, timeline.clone(), flows, test, host.stop())?;
    let work = bulk.work();
    let meters = Arc::clone(&work.meters);
    host.runs(work);
    let (later, every) = match job.task.volume {
        None => (LATER_NS, LOOK_NS),
        Some(_) => (LATER_AFTER_BYTES_NS, LOOK_AT_BYTES_NS),
    };
    // Bytes may end the test before its time.
    let end = || timeline.close() + later;
    while clock::now() < end() && !meters.has_ended() {
        if control.has_said()? {
            control.look("the test ran")?;
        }
        if !host.stop().sleep_until(end().min(clock::now() + every)) {
            return Err(Iperf3Error::Stopped);
        }
    }
    if clock::now() >= timeline.close() {
        control.tell(State::TestEnd, "the test was to end")?;
    } else {
        // A flow has failed. What the server says of it tells more.
        control.look("the test ran")?;
    }
    let own = bulk.join()?;
    control.expect(State::ExchangeResults, "the test was to end")?;
    control.send(&own_results(&job, &own, CpuTime::now(), cpu).encode(), "results were told")?;
    let told = control.receive("results were told")?;
    let results =
        TestResults::decode(&told, all.len()).map_err(|reason| control.foreign(reason, "results were told"))?;
    control.expect(State::DisplayResults, "results were told")?;
    control.tell(State::Done, "the test ended")?;
    let (server, caveats) = server_end(&job, &own, &results, told);
    Ok(Counted {
        roles: vec![RoleCounts::Flows(Box::new(own.end)), RoleCounts::Flows(Box::new(server))],
        started_unix_ns: clock::unix_at(timeline.open()),
        caveats,
        remains: Vec::new(),
    })
}

/// Returns a control connection on which the server has agreed to the test of `job`.
fn agreed<'a>(job: &Job, cookie: &Cookie, stop: &'a AtomicBool) -> Result<Control<'a>, Iperf3Error> {
    let asked = |padding: Option<Padding>| {
        let mut control = begun(job, cookie, stop)?;
        // The server compares the login's time with its own: it is made at the last moment.
        let token = job.login.as_ref().zip(padding).map(|(login, padding)| login.token(padding, clock::unix_now()));
        let token = token.transpose().map_err(Iperf3Error::InvalidRequest)?;
        control.send(&parameters(job, token), ASKING)?;
        match control.expect(State::CreateStreams, ASKING) {
            Err(Iperf3Error::Closed { server, .. }) => Err(Iperf3Error::ClosedWhenAsked(server)),
            agreed => agreed.map(|()| control),
        }
    };
    let Some(login) = &job.login else { return asked(None) };
    let user = || login.user().to_owned();
    let refused = |error| match error {
        Iperf3Error::LoginWanted(server) => Iperf3Error::LoginRefused { server, user: user() },
        Iperf3Error::ClosedWhenAsked(server) => Iperf3Error::ClosedAfterLogin { server, user: user() },
        other => other,
    };
    // No server says which padding it reads: before 3.17 PKCS#1 v1.5 alone, and OAEP since, unless it was told otherwise. PKCS#1 v1.5 is
    // the weak one: a server that reads it tells by its answers, or by the time they take, what helps to decrypt a login that somebody
    // recorded. So a server that reads OAEP and accepts the login never gets the weak one.
    match asked(Some(Padding::Oaep)) {
        Err(Iperf3Error::LoginWanted(_) | Iperf3Error::ClosedWhenAsked(_)) => {
            asked(Some(Padding::Pkcs1v15)).map_err(refused)
        }
        agreed => agreed,
    }
}

/// Returns a control connection on which the server waits for the parameters of a test. Between two tests a server is busy for a moment, and does not
/// listen for another: so it is asked again for a while.
fn begun<'a>(job: &Job, cookie: &Cookie, stop: &'a AtomicBool) -> Result<Control<'a>, Iperf3Error> {
    let until = clock::now() + BETWEEN_TESTS_NS;
    loop {
        let agreed = Control::open(job, cookie, stop).and_then(|mut control| {
            control.expect(State::ParameterExchange, ASKING)?;
            Ok(control)
        });
        match agreed {
            Err(Iperf3Error::Busy(_) | Iperf3Error::Unreachable { .. } | Iperf3Error::Broken { .. })
                if clock::now() < until =>
            {
                if stop.load(Ordering::Relaxed) {
                    return Err(Iperf3Error::Stopped);
                }
                clock::sleep_until(clock::now() + AGAIN_NS);
            }
            agreed => return agreed,
        }
    }
}

/// What this end tells the server, which only prints it.
fn own_results(job: &Job, own: &BulkCounts, now: CpuTime, begun: CpuTime) -> TestResults {
    let bytes = job.task.message_bytes.get();
    let window = |backward: bool| match backward {
        true => own.end.received.as_ref().map(|received| received.window),
        false => own.end.sent.as_ref().map(|sent| sent.window),
    };
    let received = own.end.received.as_ref();
    let counted = job.flows().into_iter().zip(ids(job.flows().len())).zip(&own.end.flows);
    let flow = |(((_, backward), id), flow): (((u16, bool), u64), &FlowCounts)| {
        let moved = if backward { flow.received_bytes } else { flow.sent_bytes };
        FlowResult {
            id,
            bytes: moved,
            retransmits: flow.tcp.as_ref().filter(|_| !backward).map(|tcp| tcp.retransmits),
            jitter: received.filter(|_| backward).and_then(|received| received.jitter).unwrap_or_default(),
            datagrams: if job.task.net.transport == Transport::Udp { moved / bytes } else { 0 },
            time: window(backward).unwrap_or_default(),
            ..FlowResult::default()
        }
    };
    TestResults {
        cpu: now.since(begun),
        congestion: own.end.flows.iter().find_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.congestion.clone()),
        counts_retransmits: job.task.net.transport == Transport::Tcp && job.task.direction != Direction::Receive,
        flows: counted.map(flow).collect(),
    }
}

/// The server's end by what it told, and doubts about that.
fn server_end(job: &Job, own: &BulkCounts, told: &TestResults, text: Value) -> (EndCounts, Vec<Caveat>) {
    let to_here: Vec<bool> = job.flows().into_iter().map(|(_, backward)| backward).collect();
    let of = ToldOf {
        transport: job.task.net.transport,
        message_bytes: job.task.message_bytes.get(),
        has_warmup: job.omit_s > 0,
        to_here: &to_here,
        own: &own.end,
        numbered: own.numbered,
    };
    let (end, mut caveats) = of.end(told, text);
    caveats.extend(other_congestion(job, told));
    (end, caveats)
}

/// That the server sent with another congestion control than was asked for: iperf3 only warns of it, on its own screen.
fn other_congestion(job: &Job, told: &TestResults) -> Option<Caveat> {
    let (asked, used) = (job.task.net.socket.congestion.as_ref()?, told.congestion.as_ref()?);
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
