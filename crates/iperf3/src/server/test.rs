//! One test, served.

use super::flow_counts::{FlowCounts, Way, received_words, sent_words};
use super::test_request::{RequestError, TestRequest};
use super::tests_under_way::{AcceptedFlow, Slot, Wants};
use super::{Observer, ServedTest, ServiceLimits};
use crate::cpu::CpuTime;
use crate::message;
use crate::reading::{self, TICK, Unread, is_timeout};
use crate::results::{FlowResult, TestResults};
use crate::state::State;
use crate::told::ToldOf;
use linerate_engine::{Stop, Timeline, end_if_vanished};
use linerate_model::{
    Caveat, Direction, EndCounts, HostCounts, RoleCounts, SocketOptions, Timing, Transport, Warmup, Window,
};
use linerate_observe::interface_of;
use linerate_streams::{Bulk, BulkFlow, BulkSocket, Iperf3Test};
use linerate_sys::clock;
use linerate_units::{BitRate, Nanos};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// A client has so long for each of its steps.
const STEP_NS: u64 = 10_000_000_000;
/// It has so long to end the test after its time, as iperf3 gives it.
const GRACE: Nanos = Nanos::from_secs(10);
/// Bytes of a client's parameters. As JSON values they take up to 16 times as much.
const LONGEST_PARAMETERS: u32 = 64 << 10;
/// Bytes of a client's results, without its flows and for each of them: about 250 are usual.
const LONGEST_RESULTS: u32 = 64 << 10;
const LONGEST_RESULT: u32 = 1 << 10;
/// Memory that the texts of a test take.
pub(super) const TEXTS_MEMORY: u64 = 16 * (LONGEST_PARAMETERS + LONGEST_RESULTS) as u64;
pub(super) const RESULT_MEMORY: u64 = 16 * LONGEST_RESULT as u64;
/// A rate that was agreed may be exceeded by so much, for clocks differ, and by so many bytes at once, for what a client has been kept
/// from sending it catches up.
const BEYOND_RATE: f64 = 1.1;
const BEYOND_BYTES: f64 = 4e6;
/// A flow that failed before the test ended: the client says why within this time, or does not.
const FAILED_NS: u64 = 2_000_000_000;
/// How often the counts are looked at, at the end of a test of so many bytes.
const POLL: Duration = Duration::from_millis(2);
/// What has not come by so many looks after the last byte is lost. Looks and not time: a host that was held up looks late, once.
const LOST_POLLS: u32 = 250;

/// Why a test came to nothing.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("refused: {}", .0.reason)]
    Refused(RequestError),
    #[error("ended early: {0}")]
    Early(String),
}

impl From<Unread> for Ended {
    fn from(unread: Unread) -> Self {
        Self::Early(unread.to_string())
    }
}

impl From<RequestError> for Ended {
    fn from(error: RequestError) -> Self {
        Self::Refused(error)
    }
}

/// A test with its client.
pub(super) struct Test {
    pub(super) control: TcpStream,
    pub(super) peer: IpAddr,
    pub(super) place: Slot,
    pub(super) limits: ServiceLimits,
    pub(super) stop: Arc<Stop>,
    pub(super) observer: Arc<dyn Observer>,
}

impl Test {
    /// Serves it to its end, and reports what came of it.
    pub(super) fn serve(mut self) {
        let said = match self.run() {
            Ok(words) => words,
            Err(ended) => {
                // A client that has gone needs no reason.
                let _ = match &ended {
                    Ended::Refused(error) => self.refuse(error),
                    Ended::Early(_) => self.tell(State::ServerTerminate),
                };
                ended.to_string()
            }
        };
        self.observer.report(&format!("{}: {said}", self.peer.to_canonical()));
    }

    fn run(&mut self) -> Result<String, Ended> {
        let early = |error: std::io::Error| Ended::Early(error.to_string());
        self.control
            .set_nonblocking(false)
            .and_then(|()| self.control.set_read_timeout(Some(TICK)))
            .and_then(|()| self.control.set_write_timeout(Some(Duration::from_nanos(STEP_NS / 2))))
            .and_then(|()| self.control.set_nodelay(true))
            .and_then(|()| end_if_vanished(&self.control))
            .map_err(early)?;
        self.tell(State::ParameterExchange)?;
        let asked = TestRequest::read(&self.text(LONGEST_PARAMETERS)?)?;
        let (sends, receives) = asked.rates();
        self.place.admit((sends.unwrap_or(0), receives.unwrap_or(0)), |others| asked.check(&self.limits, others))?;
        let _reserved = (self.limits.reserve.0)(asked.needs(self.peer)?).map_err(RequestError::beyond_budget)?;
        let ways = asked.ways();
        let local = self.control.local_addr().map_err(early)?;
        self.place.wait_for(Wants {
            transport: asked.transport,
            missing: ways.len(),
            service: local,
            socket: asked.socket.clone(),
        });
        self.tell(State::CreateStreams)?;
        let flows = self.flows(&asked, &ways)?;
        let is_udp = asked.transport == Transport::Udp;
        let kept = |flow: &BulkFlow| flow.keep_open().map(TcpStream::from);
        let sockets: Vec<TcpStream> = match is_udp {
            true => Vec::new(),
            false => flows.iter().map(kept).collect::<Result<_, _>>().map_err(early)?,
        };
        let congestion = flows.iter().find_map(|flow| congestion(&flow.socket));
        let service = SocketAddr::new(local.ip().to_canonical(), local.port());
        let served = ServedTest {
            peer: self.peer.to_canonical(),
            service,
            stream: asked.seen_from_here(self.peer),
            timing: Timing::of(asked.omit, asked.time.unwrap_or(self.limits.max_time)),
            bytes: asked.bytes,
        };
        let mut watch = Arc::clone(&self.observer).begins(served);
        self.tell(State::TestStart)?;

        let longest = match asked.time {
            Some(time) => asked.omit + time + GRACE,
            None => self.limits.max_time + GRACE,
        };
        // Before anything is sent: what is sent at once counts as well.
        let begun = FlowCounts::none(ways.len(), &sockets);
        let (start, cpu) = (begun.at, CpuTime::now());
        let timeline = Timeline::new(start, Window { warmup: Warmup::Fixed(Nanos::default()), measure: longest });
        let stop = Stop::default();
        let test = Iperf3Test {
            wide: asked.wide,
            by_bytes: asked.bytes.is_some(),
            rate_limited: self.limits.max_rate.is_some(),
        };
        let bulk = Bulk::start(&asked.assignment(self.peer, longest), 0, timeline, flows, test, &stop)
            .map_err(|failed| Ended::Early(failed.to_string()))?;
        let mut work = bulk.work();
        // The client says when the window closes.
        work.window = Some(Timeline::new(start, Window { warmup: Warmup::Fixed(asked.omit), measure: longest }));
        watch.watch(work);
        self.tell(State::TestRunning)?;
        let counted = self.until_end(&asked, &bulk, &sockets, begun, start + longest.get());
        let counted = counted.map(|before| (self.all_of(&asked, &bulk, &sockets, &before), watch.seen(), before));
        stop.set("the test is over".to_owned());
        // It gives no counts of its own, for its window is open.
        let _ = bulk.join();
        let (after, (observation, series), before) = counted?;

        let results = after.since(&before, &ways, is_udp);
        let told = self.exchange(&asked, &results, CpuTime::now(), cpu, congestion)?;
        let told = client_results(&told, ways.len());
        let own = EndCounts {
            interface: interface_of(service.ip()),
            ..after.end(&before, &results, &ways, asked.message_bytes, &sockets)
        };
        if let Some(told) = &told
            && let Some((client, caveats)) = client_end(&asked, &results, &ways, &own, told)
        {
            let roles = [own, client].map(|end| RoleCounts::Flows(Box::new(end))).into();
            let started_unix_ns = clock::unix_at(before.at);
            watch.ended(
                Timing::of(asked.omit, Nanos::new(after.at.saturating_sub(before.at))),
                HostCounts { roles, observation, series, started_unix_ns, caveats, remains: Vec::new() },
            );
        }
        Ok(words(&asked, &results, told.as_ref(), &ways))
    }

    /// Takes the flows that the client opens. Their order says which way each goes; a cookie that was lost and sent again comes later.
    fn flows(&self, asked: &TestRequest, ways: &[(u16, bool)]) -> Result<Vec<BulkFlow>, Ended> {
        let deadline = clock::now() + STEP_NS;
        let mut accepted = Vec::new();
        while accepted.len() < ways.len() {
            match self.place.flows.recv_timeout(TICK) {
                Ok(flow) => accepted.push(flow),
                Err(RecvTimeoutError::Timeout) if self.stop.is_set() => return Err(Unread::Stopped.into()),
                Err(RecvTimeoutError::Timeout) if clock::now() < deadline => (),
                Err(_) => {
                    let (open, all) = (accepted.len(), ways.len());
                    let over = asked.transport;
                    return Err(Ended::Early(format!("it opened {open} of {all} {over} flows")));
                }
            }
        }
        accepted.sort_by_key(|flow| flow.number);
        let flow = |(flow, way): (AcceptedFlow, &(u16, bool))| {
            let (number, backward) = *way;
            BulkFlow { number, backward, client: false, socket: flow.socket }
        };
        Ok(accepted.into_iter().zip(ways).map(flow).collect())
    }

    /// Waits for the client to end the test. Returns the counts at the end of the warm-up; `start` are those at its beginning.
    fn until_end(
        &mut self,
        asked: &TestRequest,
        bulk: &Bulk,
        sockets: &[TcpStream],
        start: FlowCounts,
        deadline: u64,
    ) -> Result<FlowCounts, Ended> {
        let meters = bulk.work().meters;
        let begun = start.at;
        let warm = begun + asked.omit.get();
        let mut before = if asked.omit.is_zero() { Some(start) } else { None };
        let mut failed = None;
        loop {
            let mut byte = [0];
            match self.control.read(&mut byte) {
                Ok(0) => return Err(Unread::Closed.into()),
                Ok(_) => match State::of(byte[0]) {
                    // An end within the warm-up leaves nothing that counts.
                    Some(State::TestEnd) => return Ok(before.unwrap_or_else(|| FlowCounts::now(bulk, sockets))),
                    Some(State::ClientTerminate) => return Err(Ended::Early("the client ended it".to_owned())),
                    _ => return Err(Ended::Early(format!("it said byte {}", byte[0]))),
                },
                Err(error) if is_timeout(&error) => (),
                Err(error) => return Err(Unread::Broken(error).into()),
            }
            let now = clock::now();
            if before.is_none() && now >= warm {
                before = Some(FlowCounts::now(bulk, sockets));
            }
            if self.stop.is_set() {
                return Err(Unread::Stopped.into());
            }
            if now >= deadline {
                return Err(Ended::Early("it did not end in its time".to_owned()));
            }
            // Flows that have sent all their bytes have ended, too.
            let is_whole = || asked.volume().is_some_and(|bytes| meters.read().sent_bytes >= bytes.get());
            if meters.has_ended() && !is_whole() && now >= *failed.get_or_insert(now) + FAILED_NS {
                return Err(Ended::Early("its flows ended before it did".to_owned()));
            }
            let agreed = self.limits.max_rate.and(asked.rates().1);
            let received = || FlowCounts::now(bulk, sockets).received_bytes() as f64;
            if let Some(rate) = agreed
                && received() > rate as f64 / 8.0 * (now - begun) as f64 / 1e9 * BEYOND_RATE + BEYOND_BYTES
            {
                let rate = BitRate::per_second(rate);
                return Err(Ended::Early(format!("it sent more than the {rate} that it had asked for")));
            }
        }
    }

    /// The counts at the end. A client ends a test of so many bytes once it has sent them; the last of them are still on their way then.
    fn all_of(&self, asked: &TestRequest, bulk: &Bulk, sockets: &[TcpStream], before: &FlowCounts) -> FlowCounts {
        let mut last = FlowCounts::now(bulk, sockets);
        let Some(bytes) = asked.bytes.filter(|_| asked.direction != Direction::Receive) else { return last };
        let deadline = last.at + STEP_NS / 2;
        let all = before.received_bytes().saturating_add(bytes);
        let mut without_news = 0;
        while last.received_bytes() < all && !self.stop.is_set() {
            std::thread::sleep(POLL);
            let now = FlowCounts::now(bulk, sockets);
            let (at, news) = (now.at, now.received_bytes() > last.received_bytes());
            (last, without_news) = if news { (now, 0) } else { (last, without_news + 1) };
            if without_news > LOST_POLLS || at > deadline {
                break;
            }
        }
        last
    }

    /// Tells each other what was counted. Returns what the client told.
    fn exchange(
        &mut self,
        asked: &TestRequest,
        results: &[FlowResult],
        now: CpuTime,
        begun: CpuTime,
        congestion: Option<String>,
    ) -> Result<Value, Ended> {
        self.tell(State::ExchangeResults)?;
        let told = self.text(LONGEST_RESULTS + LONGEST_RESULT * results.len() as u32)?;
        let own = TestResults {
            cpu: now.since(begun),
            congestion,
            counts_retransmits: asked.transport == Transport::Tcp && asked.direction != Direction::Send,
            flows: results.to_vec(),
        };
        self.write(&message::encode(&own.encode()))?;
        self.tell(State::DisplayResults)?;
        let mut byte = [0];
        // Whatever it says now, the test is over.
        let _ = reading::fill(&self.control, &mut byte, clock::now() + STEP_NS, self.stop.flag());
        Ok(told)
    }

    /// Reads a text of at most `longest` bytes.
    fn text(&self, longest: u32) -> Result<Value, Ended> {
        let deadline = clock::now() + STEP_NS;
        let mut head = [0; 4];
        reading::fill(&self.control, &mut head, deadline, self.stop.flag())?;
        let length = message::length(head, longest).map_err(Ended::Early)?;
        let text = reading::text(&self.control, length, deadline, self.stop.flag())?;
        message::decode(&text).map_err(Ended::Early)
    }

    fn tell(&self, state: State) -> Result<(), Ended> {
        self.write(&[state.byte()])
    }

    fn refuse(&self, error: &RequestError) -> Result<(), Ended> {
        let mut said = vec![State::ServerError.byte()];
        said.extend(error.number.to_be_bytes());
        said.extend(0_i32.to_be_bytes());
        self.write(&said)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Ended> {
        (&self.control).write_all(bytes).map_err(|error| Unread::Broken(error).into())
    }
}

/// Returns what the client `told` of its `flows`; `None` if it told what cannot be.
fn client_results(told: &Value, flows: usize) -> Option<TestResults> {
    let client = TestResults::decode(told, flows).ok()?;
    let congestion = client.congestion.filter(|name| SocketOptions::is_congestion_name(name));
    Some(TestResults { congestion, ..client })
}

/// The client's end by what it `told`, and doubts about that; none where nothing was moved.
fn client_end(
    asked: &TestRequest,
    results: &[FlowResult],
    ways: &[(u16, bool)],
    own: &EndCounts,
    told: &TestResults,
) -> Option<(EndCounts, Vec<Caveat>)> {
    let to_here: Vec<bool> = ways.iter().map(|(_, backward)| !backward).collect();
    let of = ToldOf {
        transport: asked.transport,
        message_bytes: asked.message_bytes,
        has_warmup: !asked.omit.is_zero(),
        to_here: &to_here,
        own,
        numbered: Way::of(results, ways, false).map_or(0, |way| way.numbered()),
    };
    results.iter().any(|flow| flow.bytes > 0).then(|| of.end(told, told.encode()))
}

/// The congestion control of a flow.
fn congestion(socket: &BulkSocket) -> Option<String> {
    let BulkSocket::Tcp(stream) = socket else { return None };
    let name = socket2::SockRef::from(stream).tcp_congestion().ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// A test in words. What this host sent is told as the client counted it: TCP may still hold a part of it in its buffers.
fn words(asked: &TestRequest, results: &[FlowResult], told: Option<&TestResults>, ways: &[(u16, bool)]) -> String {
    let is_udp = asked.transport == Transport::Udp;
    let time = results.iter().map(|flow| flow.time).max().unwrap_or_default().as_secs_f64();
    let told = told.map(|told| &told.flows[..]);
    let each: Vec<String> =
        received_words(results, ways, is_udp).into_iter().chain(sent_words(results, told, ways, is_udp)).collect();
    let flows = if ways.len() == 1 { "1 flow".to_owned() } else { format!("{} flows", ways.len()) };
    let over = if is_udp { "UDP" } else { "TCP" };
    format!("{over}, {flows}, {time:.1} s: {}", each.join("; "))
}
