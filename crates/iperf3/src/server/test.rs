//! One served test.

use super::flow_counts::{FlowCounts, Way, received_words, sent_words};
use super::running_tests::{ExpectedFlows, Slot};
use super::test_request::{RequestError, TestRequest};
use super::{Observer, ServedTest, ServiceLimits};
use crate::cpu::CpuTime;
use crate::message;
use crate::peer_end::PeerEnd;
use crate::reading::{self, TICK, Unread};
use crate::results::{FlowResult, TestResults};
use crate::state::State;
use linerate_sys::socket::is_timeout;

use linerate_engine::{Stop, Timeline, end_if_vanished};
use linerate_model::{
    Caveat, Direction, EndCounts, HostCounts, RoleCounts, SocketOptions, Timing, Transport, Warmup, Window,
};
use linerate_observe::interface_of;
use linerate_streams::{Bulk, BulkFlow, BulkOptions, BulkSocket};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::{clock, tcp};
use linerate_units::{BitRate, Nanos};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Time limit for each step of a client.
const STEP_NS: u64 = 10_000_000_000;
/// Time limit for ending the test after its time, as in iperf3.
const GRACE: Nanos = Nanos::from_secs(10);
/// Most bytes of a client's parameters. As JSON values they take up to 16 times as much.
const LONGEST_PARAMETERS: u32 = 64 << 10;
/// Most bytes of a client's results, without its flows.
const LONGEST_RESULTS: u32 = 64 << 10;
/// Most bytes of a client's results for each flow: about 250 are usual.
const LONGEST_RESULT: u32 = 1 << 10;
/// Memory of the texts of a test.
pub(super) const TEXTS_MEMORY: u64 = 16 * (LONGEST_PARAMETERS + LONGEST_RESULTS) as u64;
/// Memory of the results of each flow.
pub(super) const RESULT_MEMORY: u64 = 16 * LONGEST_RESULT as u64;
/// Tolerance of the agreed rate, because clocks differ.
const RATE_TOLERANCE: f64 = 1.1;
/// Tolerance in bytes, because a client catches up after a stall.
const BYTES_TOLERANCE: f64 = 4e6;
/// Time in which the client may report why a flow failed before the test ended.
const FAILED_NS: u64 = 2_000_000_000;
/// Interval of polling the counts at the end of a test that ends by bytes.
const POLL: Duration = Duration::from_millis(2);
/// Polls without new bytes after which missing bytes are lost. A stalled host polls late, but only once, so this is not
/// a time.
const LOST_POLLS: u32 = 250;

/// Reason for a test without results.
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

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        Self::Early(error.to_string())
    }
}

impl From<RequestError> for Ended {
    fn from(error: RequestError) -> Self {
        Self::Refused(error)
    }
}

/// Test with its client.
pub(super) struct Test {
    pub(super) control: TcpStream,
    pub(super) peer: IpAddr,
    pub(super) slot: Slot,
    pub(super) limits: ServiceLimits,
    pub(super) stop: Arc<Stop>,
    pub(super) observer: Arc<dyn Observer>,
}

impl Test {
    /// Serves the test to its end, and reports the outcome.
    pub(super) fn serve(mut self) {
        let outcome = match self.run() {
            Ok(words) => words,
            Err(ended) => {
                // Sending the reason fails if the client has gone.
                let _ = match &ended {
                    Ended::Refused(error) => self.refuse(error),
                    Ended::Early(_) => self.send_state(State::ServerTerminate),
                };
                ended.to_string()
            }
        };
        self.observer.report(&format!("{}: {outcome}", self.peer.to_canonical()));
    }

    fn run(&mut self) -> Result<String, Ended> {
        self.control.set_nonblocking(false)?;
        self.control.set_read_timeout(Some(TICK))?;
        self.control.set_write_timeout(Some(Duration::from_nanos(STEP_NS / 2)))?;
        self.control.set_nodelay(true)?;
        end_if_vanished(&self.control)?;
        self.send_state(State::ParameterExchange)?;
        let request = TestRequest::read(&self.text(LONGEST_PARAMETERS)?)?;
        let (sends, receives) = request.rates();
        self.slot.admit((sends.unwrap_or(0), receives.unwrap_or(0)), |others| request.check(&self.limits, others))?;
        let _reserved = (self.limits.reserve.0)(request.needs(self.peer)?).map_err(RequestError::beyond_budget)?;
        let ways = request.ways();
        let local = self.control.local_addr()?;
        self.slot.wait_for(ExpectedFlows {
            transport: request.transport,
            missing: ways.len(),
            service: local,
            socket: request.socket.clone(),
        });
        self.send_state(State::CreateStreams)?;
        let flows = self.flows(&request, &ways)?;
        let is_udp = request.transport == Transport::Udp;
        let mut sockets: Vec<TcpStream> = Vec::new();
        if !is_udp {
            for flow in &flows {
                sockets.push(flow.keep_open()?.into());
            }
        }
        let congestion = flows.iter().find_map(|flow| congestion(&flow.socket));
        let service = SocketAddr::new(local.ip().to_canonical(), local.port());
        let served = ServedTest {
            peer: self.peer.to_canonical(),
            service,
            stream: request.seen_from_here(self.peer),
            timing: Timing::of(request.omit, request.time.unwrap_or(self.limits.max_time)),
            bytes: request.bytes,
        };
        let mut watch = Arc::clone(&self.observer).begins(served);
        self.send_state(State::TestStart)?;

        let longest = match request.time {
            Some(time) => request.omit + time + GRACE,
            None => self.limits.max_time + GRACE,
        };
        // Taken before the first bytes, so that they count as well.
        let start_counts = FlowCounts::before_start(ways.len(), &sockets);
        let start = start_counts.at;
        let cpu = CpuTime::now();
        let timeline = Timeline::new(start, Window { warmup: Warmup::Fixed(Nanos::default()), measure: longest });
        let stop = Stop::default();
        let options = BulkOptions {
            wide: request.wide,
            by_bytes: request.bytes.is_some(),
            rate_limited: self.limits.max_rate.is_some(),
        };
        let bulk = Bulk::start(&request.assignment(self.peer, longest), 0, timeline, flows, options, &stop)
            .map_err(|error| Ended::Early(error.to_string()))?;
        let mut work = bulk.work();
        // The client closes the window.
        work.window = Some(Timeline::new(start, Window { warmup: Warmup::Fixed(request.omit), measure: longest }));
        watch.watch(work);
        self.send_state(State::TestRunning)?;
        let counts = self
            .until_end(&request, &bulk, &sockets, start_counts, start + longest.get())
            .map(|before| (self.final_counts(&request, &bulk, &sockets, &before), watch.seen(), before));
        stop.set("the test is over".to_owned());
        // Its counts are not used, because its window is still open.
        let _ = bulk.join();
        let (after, (observation, series), before) = counts?;

        let results = after.since(&before, &ways, is_udp);
        let client_text = self.exchange(&request, &results, CpuTime::now(), cpu, congestion)?;
        let client_results = client_results(&client_text, ways.len());
        let local_end = EndCounts {
            interface: interface_of(service.ip()),
            ..after.end(&before, &results, &ways, request.message_bytes, &sockets)
        };
        if let Some(client_results) = &client_results
            && let Some((client, caveats)) = client_end(&request, &results, &ways, &local_end, client_results)
        {
            let roles = [local_end, client].map(|end| RoleCounts::Flows(Box::new(end))).into();
            let started_unix_ns = clock::unix_at(before.at);
            watch.ended(
                Timing::of(request.omit, Nanos::new(after.at.saturating_sub(before.at))),
                HostCounts { roles, observation, series, started_unix_ns, caveats, remains: Vec::new() },
            );
        }
        Ok(summary(&request, &results, client_results.as_ref(), &ways))
    }

    /// Accepts the flows that the client opens. Their order of arrival at the port decides their directions, not the
    /// order in which their cookies are complete.
    fn flows(&self, request: &TestRequest, ways: &[(u16, bool)]) -> Result<Vec<BulkFlow>, Ended> {
        let deadline = clock::now() + STEP_NS;
        let mut accepted = Vec::new();
        while accepted.len() < ways.len() {
            match self.slot.flows.recv_timeout(TICK) {
                Ok(flow) => accepted.push(flow),
                Err(RecvTimeoutError::Timeout) if self.stop.is_set() => return Err(Unread::Stopped.into()),
                Err(RecvTimeoutError::Timeout) if clock::now() < deadline => (),
                Err(_) => {
                    let open = accepted.len();
                    let all = ways.len();
                    return Err(Ended::Early(format!("it opened {open} of {all} {} flows", request.transport)));
                }
            }
        }
        accepted.sort_by_key(|flow| flow.number);
        let mut flows = Vec::new();
        for (flow, &(number, backward)) in accepted.into_iter().zip(ways) {
            flows.push(BulkFlow { number, backward, client: false, socket: flow.socket });
        }
        Ok(flows)
    }

    /// Waits for the client to end the test. Returns the counts at the end of the warm-up; `start` are those at its
    /// beginning.
    fn until_end(
        &mut self,
        request: &TestRequest,
        bulk: &Bulk,
        sockets: &[TcpStream],
        start: FlowCounts,
        deadline: u64,
    ) -> Result<FlowCounts, Ended> {
        let meters = bulk.work().meters;
        let start_time = start.at;
        let warmup_end = start_time + request.omit.get();
        let mut before = if request.omit.is_zero() { Some(start) } else { None };
        let mut failure_time = None;
        loop {
            let mut byte = [0];
            match self.control.read(&mut byte) {
                Ok(0) => return Err(Unread::Closed.into()),
                Ok(_) => match State::of(byte[0]) {
                    // A test that ends within the warm-up counts nothing.
                    Some(State::TestEnd) => return Ok(before.unwrap_or_else(|| FlowCounts::now(bulk, sockets))),
                    Some(State::ClientTerminate) => return Err(Ended::Early("the client ended it".to_owned())),
                    _ => return Err(Ended::Early(format!("it said byte {}", byte[0]))),
                },
                Err(error) if is_timeout(&error) => (),
                Err(error) => return Err(Unread::Broken(error).into()),
            }
            let now = clock::now();
            if before.is_none() && now >= warmup_end {
                before = Some(FlowCounts::now(bulk, sockets));
            }
            if self.stop.is_set() {
                return Err(Unread::Stopped.into());
            }
            if now >= deadline {
                return Err(Ended::Early("it did not end in its time".to_owned()));
            }
            // Flows that have sent all their bytes end as well, without a failure.
            if meters.has_ended()
                && request.volume().is_none_or(|bytes| meters.read().sent_bytes < bytes.get())
                && now >= *failure_time.get_or_insert(now) + FAILED_NS
            {
                return Err(Ended::Early("its flows ended before it did".to_owned()));
            }
            if let Some(rate) = self.limits.max_rate.and(request.rates().1)
                && FlowCounts::now(bulk, sockets).received_bytes() as f64 > max_bytes(rate, now - start_time)
            {
                let rate = BitRate::per_second(rate);
                return Err(Ended::Early(format!("it sent more than the {rate} that it had asked for")));
            }
        }
    }

    /// Returns the counts at the end. In a test that ends by bytes, the client ends it once it has sent them, so this
    /// waits for bytes that are still on their way.
    fn final_counts(
        &self,
        request: &TestRequest,
        bulk: &Bulk,
        sockets: &[TcpStream],
        before: &FlowCounts,
    ) -> FlowCounts {
        let mut last = FlowCounts::now(bulk, sockets);
        let Some(bytes) = request.bytes.filter(|_| request.direction != Direction::Receive) else { return last };
        let deadline = last.at + STEP_NS / 2;
        let expected = before.received_bytes().saturating_add(bytes);
        let mut idle_polls = 0;
        while last.received_bytes() < expected && !self.stop.is_set() {
            std::thread::sleep(POLL);
            let counts = FlowCounts::now(bulk, sockets);
            let at = counts.at;
            if counts.received_bytes() > last.received_bytes() {
                last = counts;
                idle_polls = 0;
            } else {
                idle_polls += 1;
            }
            if idle_polls > LOST_POLLS || at > deadline {
                break;
            }
        }
        last
    }

    /// Exchanges results with the client. Returns those of the client.
    fn exchange(
        &mut self,
        request: &TestRequest,
        results: &[FlowResult],
        now: CpuTime,
        start: CpuTime,
        congestion: Option<String>,
    ) -> Result<Value, Ended> {
        self.send_state(State::ExchangeResults)?;
        let client_text = self.text(LONGEST_RESULTS + LONGEST_RESULT * results.len() as u32)?;
        let results = TestResults {
            cpu: now.since(start),
            congestion,
            counts_retransmits: request.transport == Transport::Tcp && request.direction != Direction::Send,
            flows: results.to_vec(),
        };
        self.write(&message::encode(&results.encode()))?;
        self.send_state(State::DisplayResults)?;
        let mut byte = [0];
        // The test is over, whatever the client sends now.
        let _ = reading::fill(&self.control, &mut byte, clock::now() + STEP_NS, self.stop.flag());
        Ok(client_text)
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

    fn send_state(&self, state: State) -> Result<(), Ended> {
        self.write(&[state.byte()])
    }

    fn refuse(&self, error: &RequestError) -> Result<(), Ended> {
        let mut message = vec![State::ServerError.byte()];
        message.extend(error.number.to_be_bytes());
        message.extend(0_i32.to_be_bytes());
        self.write(&message)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Ended> {
        (&self.control).write_all(bytes).map_err(|error| Unread::Broken(error).into())
    }
}

/// Returns the most bytes that a client may have sent in `elapsed` nanoseconds at `rate` bits per second.
fn max_bytes(rate: u64, elapsed: u64) -> f64 {
    rate as f64 / 8.0 * elapsed as f64 / 1e9 * RATE_TOLERANCE + BYTES_TOLERANCE
}

/// Reads the results of the client for its `flows`. Returns `None` if they are impossible.
fn client_results(text: &Value, flows: usize) -> Option<TestResults> {
    let results = TestResults::decode(text, flows).ok()?;
    let congestion = results.congestion.filter(|name| SocketOptions::is_congestion_name(name));
    Some(TestResults { congestion, ..results })
}

/// Returns the client's end from its results, and caveats about them. Returns `None` if nothing was moved.
fn client_end(
    request: &TestRequest,
    results: &[FlowResult],
    ways: &[(u16, bool)],
    local: &EndCounts,
    client_results: &TestResults,
) -> Option<(EndCounts, Vec<Caveat>)> {
    let to_here: Vec<bool> = ways.iter().map(|(_, backward)| !backward).collect();
    let peer = PeerEnd {
        transport: request.transport,
        message_bytes: request.message_bytes,
        has_warmup: !request.omit.is_zero(),
        to_here: &to_here,
        local,
        numbered: Way::of(results, ways, false).map_or(0, |way| way.numbered()),
    };
    let has_moved = results.iter().any(|flow| flow.bytes > 0);
    has_moved.then(|| peer.counts(client_results, client_results.encode()))
}

/// Returns the congestion control of a flow.
fn congestion(socket: &BulkSocket) -> Option<String> {
    let BulkSocket::Tcp(stream) = socket else { return None };
    tcp::congestion(stream.as_socket()).ok()?
}

/// Describes a test. Data that this host sent are reported as the client counted them, because TCP may still buffer a
/// part.
fn summary(
    request: &TestRequest,
    results: &[FlowResult],
    client_results: Option<&TestResults>,
    ways: &[(u16, bool)],
) -> String {
    let is_udp = request.transport == Transport::Udp;
    let time = results.iter().map(|flow| flow.time).max().unwrap_or_default().as_secs_f64();
    let client_flows = client_results.map(|results| &results.flows[..]);
    let mut directions: Vec<String> = Vec::new();
    directions.extend(received_words(results, ways, is_udp));
    directions.extend(sent_words(results, client_flows, ways, is_udp));
    let flows = if ways.len() == 1 { "1 flow".to_owned() } else { format!("{} flows", ways.len()) };
    let transport = if is_udp { "UDP" } else { "TCP" };
    format!("{transport}, {flows}, {time:.1} s: {}", directions.join("; "))
}
