//! The clients of iperf3 at an agent: a line for each test, and a record.

use crate::exit::Failure;
use crate::feed::Feed;
use crate::output::{language, say};
use linerate_agent::{Seen, Watching};
use linerate_engine::{Report, Work};
use linerate_iperf3::{Iperf3Service, Observer, ServedTest, ServiceLimits, TestWatch};
use linerate_method::Progress;
use linerate_model::{
    Direction, HostCounts, HostName, Iperf3Server, Observation, Offered, Path, Sampling, Series, Server, Task, Timing,
    Transport, Trial, Warmup, Window,
};
use linerate_observe::{HostOptions, ObserveError};
use linerate_report::said;
use linerate_runner::{Event, Origin, ServedRun};
use linerate_store::Store;
use linerate_units::Nanos;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Records kept within [`DAY`] at the most, and their bytes: whoever reaches the port may have a test, and is not to fill the disk.
const RECORDS: usize = 1_000;
const RECORD_BYTES: usize = 64 << 20;
const DAY: Duration = Duration::from_secs(86_400);
/// How the load is sampled.
const SAMPLING: Sampling = Sampling { period: Nanos::from_millis(100), most_points: 200 };

/// Bytes that iperf3 hands over at a time over TCP.
const USUAL_BYTES: u64 = 128 << 10;

/// Serves clients of iperf3 at `address` within `limits`. Their tests are kept in `store`; none keeps none. `host` is this one.
pub(super) fn serve(
    address: SocketAddr,
    limits: ServiceLimits,
    store: Option<Store>,
    host: HostOptions,
) -> Result<Iperf3Service, Failure> {
    // One of its own: strangers are not to take the lines of those who have an agent URL.
    let report = Report::new(|line| say(&format!("linerate: {line}")));
    let tests = Tests { store: store.map(Arc::new), host, kept: Mutex::default(), report };
    let service = Iperf3Service::start(address, limits, Arc::new(tests)).map_err(Failure::measure)?;
    say(&said!(
        language(),
        "serve-iperf3",
        "linerate: serves clients of iperf3 at {address}, TCP and UDP",
        address = service.address().to_string()
    ));
    Ok(service)
}

/// What becomes of the tests of clients.
struct Tests {
    store: Option<Arc<Store>>,
    host: HostOptions,
    kept: Mutex<Allowance>,
    report: Report,
}

/// How much was kept in the day that began so.
struct Allowance {
    since: Instant,
    records: usize,
    bytes: usize,
    /// Whether it was reported that no more is kept.
    is_reported: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { since: Instant::now(), records: 0, bytes: 0, is_reported: false }
    }
}

/// Whether a record may be kept.
#[derive(Debug, PartialEq, Eq)]
enum Allowed {
    Yes,
    /// Not this one, and none for the rest of the day.
    NoMore,
    No,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> Allowed {
        if now.duration_since(self.since) >= DAY {
            *self = Self { since: now, ..Self::default() };
        }
        if self.records < RECORDS && self.bytes < RECORD_BYTES {
            self.records += 1;
            return Allowed::Yes;
        }
        if std::mem::replace(&mut self.is_reported, true) { Allowed::No } else { Allowed::NoMore }
    }
}

impl Tests {
    /// Begins the run of a test.
    fn begin(self: Arc<Self>, store: Arc<Store>, test: ServedTest) -> Result<UnderWay, ObserveError> {
        let host = linerate_observe::host(&self.host)?;
        let (peer, here) = (test.peer, host.name.clone());
        let origin = Origin { command: client_command(&test), ..Origin::default() };
        let trial = trial(test, &here);
        let run = ServedRun::begin(origin, host, trial.clone());
        let mut feed = Feed::new();
        feed.note(&store, &Event::Started { record: run.record() });
        feed.note(&store, &Event::Begins { trial: &trial, attempt: 0, progress: Progress::default() });
        let feed = Arc::new(Mutex::new(feed));
        Ok(UnderWay { tests: self, store, peer, here, trial, run, feed, watching: None })
    }

    /// Takes the place of a record among those of the day; says so when there are no more.
    fn may_keep(&self) -> bool {
        let allowed = locked(&self.kept).take(Instant::now());
        if allowed == Allowed::NoMore {
            say(&said!(
                language(),
                "serve-iperf3-kept",
                "linerate: {tests} tests of iperf3 clients were kept within a day; others are not kept until it is over",
                tests = locked(&self.kept).records
            ));
        }
        allowed == Allowed::Yes
    }
}

/// What is measured by a test, seen from host `here`.
fn trial(test: ServedTest, here: &HostName) -> Trial {
    let ServedTest { peer, mut stream, timing, .. } = test;
    // Tests of several clients are several measurements.
    let name = match stream.net.transport {
        Transport::Tcp => format!("tcp, {peer}"),
        Transport::Udp => format!("udp {}, {peer}", stream.message_bytes.get()),
    };
    let server = Server::Foreign(format!("iperf3 client {peer}").into());
    stream.paths = vec![Path { client: here.clone(), server }];
    Trial::new(name, Task::Stream(stream), timing)
}

/// A command of iperf3 that asks for the same test, to be typed at the client. Nobody knows what was typed there.
fn client_command(test: &ServedTest) -> Vec<String> {
    let (stream, socket) = (&test.stream, &test.stream.net.socket);
    let mut words = vec!["iperf3".to_owned(), "-c".to_owned(), test.service.ip().to_string()];
    let mut option = |name: &str, value: Option<String>| {
        words.push(name.to_owned());
        words.extend(value);
    };
    if test.service.port() != Iperf3Server::PORT {
        option("-p", Some(test.service.port().to_string()));
    }
    if stream.net.transport == Transport::Udp {
        option("-u", None);
    }
    match stream.direction {
        Direction::Receive => {}
        Direction::Send => option("-R", None),
        Direction::Both => option("--bidir", None),
    }
    if stream.net.flows > 1 {
        option("-P", Some(stream.net.flows.to_string()));
    }
    if let Some(Offered::PayloadBps(all)) = stream.offered {
        option("-b", Some((all.get() / u64::from(stream.net.flows.max(1))).to_string()));
    }
    if stream.net.transport == Transport::Udp || stream.message_bytes.get() != USUAL_BYTES {
        option("-l", Some(stream.message_bytes.get().to_string()));
    }
    let window = socket.receive_buffer.or(socket.send_buffer);
    for (name, value) in [
        ("-w", window.map(|bytes| bytes.get().to_string())),
        ("-C", socket.congestion.clone()),
        ("-M", socket.mss.map(|mss| mss.to_string())),
        ("--dscp", socket.dscp.map(|dscp| dscp.to_string())),
    ] {
        if value.is_some() {
            option(name, value);
        }
    }
    let seconds = |time: Nanos| time.as_secs_f64().round().max(1.0).to_string();
    let (warmup, measure) = match test.timing {
        Timing::Window(Window { warmup: Warmup::Fixed(warmup), measure }) => (warmup, measure),
        Timing::Window(_) | Timing::UntilDone => Default::default(),
    };
    if !warmup.is_zero() {
        option("-O", Some(seconds(warmup)));
    }
    match test.bytes {
        Some(bytes) => option("-n", Some(bytes.to_string())),
        None => option("-t", Some(seconds(measure))),
    }
    words
}

impl Observer for Tests {
    fn report(&self, line: &str) {
        self.report.line(&format!("iperf3 client {line}"));
    }

    fn begins(self: Arc<Self>, test: ServedTest) -> Box<dyn TestWatch> {
        let Some(store) = self.store.clone() else { return Box::new(Unwatched) };
        let (peer, report) = (test.peer, self.report.clone());
        match self.begin(store, test) {
            Ok(under_way) => Box::new(under_way),
            Err(error) => {
                report.line(&format!("the test of iperf3 client {peer} is not kept: {error}"));
                Box::new(Unwatched)
            }
        }
    }
}

/// A test under way.
struct UnderWay {
    tests: Arc<Tests>,
    store: Arc<Store>,
    peer: IpAddr,
    here: HostName,
    trial: Trial,
    run: ServedRun,
    feed: Arc<Mutex<Feed>>,
    watching: Option<Watching>,
}

impl TestWatch for UnderWay {
    fn watch(&mut self, work: Work) {
        let (store, feed, here) = (Arc::clone(&self.store), Arc::clone(&self.feed), self.here.clone());
        let tell = move |progress| locked(&feed).note(&store, &Event::Progress { host: &here, progress: &progress });
        // Without a thread nothing is seen, and the test goes on.
        self.watching = Watching::begin(work, SAMPLING, tell).ok();
    }

    fn seen(&mut self) -> (Observation, Series) {
        let Seen { observation, series } = self.watching.take().map(Watching::end).unwrap_or_default();
        (observation.unwrap_or_default(), series)
    }

    fn ended(self: Box<Self>, timing: Timing, counts: HostCounts) {
        if !self.tests.may_keep() {
            return;
        }
        let Self { tests, store, peer, trial, run, feed, .. } = *self;
        match run.keep(&store, Trial::new(trial.name.clone(), trial.task().clone(), timing), counts) {
            Ok(record) => {
                // The store keeps it as JSON.
                let bytes = serde_json::to_vec(&record).map_or(0, |json| json.len());
                locked(&tests.kept).bytes += bytes;
                // Who follows the feed finds the record in the store now.
                locked(&feed).note(&store, &Event::Concluded { record: &record, failure: None });
            }
            Err(error) => tests.report.line(&format!("the test of iperf3 client {peer} is not kept: {error}")),
        }
    }
}

/// A test of which nothing is kept.
struct Unwatched;

impl TestWatch for Unwatched {
    fn watch(&mut self, _: Work) {}

    fn seen(&mut self) -> (Observation, Series) {
        Default::default()
    }

    fn ended(self: Box<Self>, _: Timing, _: HostCounts) {}
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_tests_fills_no_disk() {
        let now = Instant::now();
        let mut allowance = Allowance { since: now, ..Allowance::default() };
        let taken: Vec<Allowed> = (0..=RECORDS + 1).map(|_| allowance.take(now)).collect();
        assert!(taken[..RECORDS].iter().all(|allowed| *allowed == Allowed::Yes));
        assert_eq!(taken[RECORDS..], [Allowed::NoMore, Allowed::No]);
        assert_eq!(allowance.take(now + DAY), Allowed::Yes);
        allowance.bytes = RECORD_BYTES;
        assert_eq!([allowance.take(now + DAY), allowance.take(now + DAY)], [Allowed::NoMore, Allowed::No]);
        assert_eq!(allowance.take(now + DAY * 2), Allowed::Yes);
    }
}
