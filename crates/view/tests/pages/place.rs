//! A store of a test's own and the pages over it.

use crate::http::{Answer, Events, exchange};
use linerate_model::{
    Confidence, Counts, Detail, EndCounts, Host, HostLoad, IntervalReport, Limit, Path, PathCounts, PathLimit, Plan,
    Received, Record, RecordId, Repeats, RunSummary, STREAM_SCHEMA, Sent, Standing, StreamEvent, StreamTask, Task,
    TaskKind, Timing, Transport, Trial, TrialResult, TrialState,
};
use linerate_report::Language;
use linerate_store::{Ending, FeedWriter, Store, StoreLocation};
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, Nanos};
use linerate_view::{Key, TrustedProxy, View};
use std::net::{SocketAddr, TcpListener};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct TestView {
    pub(crate) store: Store,
    pub(crate) address: SocketAddr,
    view: View,
    runtime: Runtime,
    _folder: TempDir,
}

impl TestView {
    pub(crate) fn new() -> Self {
        Self::speaking(Language::English)
    }

    pub(crate) fn speaking(language: Language) -> Self {
        Self::behind(language, None)
    }

    /// Serves pages to users that a proxy has logged in.
    pub(crate) fn behind(language: Language, proxy: Option<TrustedProxy>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let location = StoreLocation::file(folder.path().join("results.db"));
        Self::over(&location, folder, language, proxy)
    }

    /// Serves the pages of the store at `location`.
    pub(crate) fn over(
        location: &StoreLocation,
        folder: TempDir,
        language: Language,
        proxy: Option<TrustedProxy>,
    ) -> Self {
        let open = || Store::open(location).expect("opens");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let view =
            runtime.block_on(View::start(listener, open(), Key::generate(), language, proxy)).expect("it serves");
        assert!(view.address().starts_with(&format!("http://{address}/")));
        Self { store: open(), address, view, runtime, _folder: folder }
    }

    /// The address of a page below the key.
    pub(crate) fn url(&self, page: &str) -> String {
        format!("{}{page}", self.view.address())
    }

    pub(crate) fn key(&self) -> String {
        self.view.address().trim_end_matches('/').rsplit('/').next().expect("a key").to_owned()
    }

    pub(crate) fn keep(&self, record: &Record) {
        let mut live = self.store.begin(record).expect("begin");
        let summary = RunSummary::of(&record.results);
        record.trials.iter().for_each(|trial| live.trial(trial, &summary).expect("trial"));
        live.end(record, Ending::Finished).expect("end");
    }

    pub(crate) fn get(&self, page: &str) -> Answer {
        self.ask("GET", page)
    }

    pub(crate) fn ask(&self, method: &str, page: &str) -> Answer {
        let path = format!("/{}/{page}", self.key());
        self.request(method, &path)
    }

    pub(crate) fn get_path(&self, path: &str) -> Answer {
        self.request("GET", path)
    }

    fn request(&self, method: &str, path: &str) -> Answer {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        Answer::read(&self.send(&request))
    }

    pub(crate) fn send(&self, request: &str) -> String {
        exchange(self.address, request)
    }

    pub(crate) fn events(&self, id: &str) -> Events {
        Events::open(self.address, &format!("/{}/events?id={id}", self.key()))
    }

    /// The events of the list.
    pub(crate) fn list_events(&self) -> Events {
        Events::open(self.address, &format!("/{}/events", self.key()))
    }

    /// Begins a run that is told of by its feed, and its first trial.
    pub(crate) fn tell(&self, id: &str) -> FeedWriter {
        let record = RecordId(id.into());
        let mut feed = self.store.feed(&record);
        feed.tell(StreamEvent::Start {
            schema: STREAM_SCHEMA.into(),
            record: record.clone(),
            version: "0.1.0".into(),
            command: ["linerate", "stream", "alpha", "beta"].map(str::to_owned).into(),
            started_unix_ns: 1,
        });
        feed.tell(attempt(0, TrialState::Begins));
        wait_until("the feed is there", || self.store.feed_of(&record));
        feed
    }

    pub(crate) fn end(self) {
        self.runtime.block_on(self.view.shutdown());
    }
}

/// An attempt of a run that begins or has ended.
pub(crate) fn attempt(number: u32, state: TrialState) -> StreamEvent {
    let (name, task, transport) = ("tcp".into(), TaskKind::Stream, Some(Transport::Tcp));
    StreamEvent::Trial { name, task, transport, number, attempt: 0, state, reason: None }
}

/// A second of an attempt that received so many bits.
pub(crate) fn interval(number: u32, second: u64, received_bps: f64) -> StreamEvent {
    StreamEvent::Interval(IntervalReport {
        number,
        from: Nanos::from_secs(second),
        to: Nanos::from_secs(second + 1),
        warmup: second == 0,
        received_bps,
        retransmits: 3,
        srtt: Some(Nanos::from_millis(7)),
        hosts: vec![HostLoad { host: "alpha".into(), busiest_thread: Some(63) }],
        ..IntervalReport::default()
    })
}

fn cell() -> Trial {
    cell_between(["alpha", "beta"])
}

fn cell_between([from, to]: [&str; 2]) -> Trial {
    let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(131_072));
    let task = StreamTask { paths: vec![Path::between(from, to)], ..plain };
    Trial::new("tcp", Task::Stream(task), Timing::of(Nanos::from_millis(100), Nanos::from_secs(1)))
}

/// A trial that reached so many bits a second.
pub(crate) fn trial(payload_bps: u64) -> TrialResult {
    let (window, payload_bytes) = (Nanos::from_secs(1), payload_bps / 8);
    let sent = Sent { window, payload_bytes, ..Sent::default() };
    let received = Received { window, payload_bytes, ..Received::default() };
    let path = PathCounts {
        client: EndCounts { sent: Some(sent), ..EndCounts::default() },
        server: EndCounts { received: Some(received), ..EndCounts::default() },
        forward_loss: None,
        backward_loss: None,
    };
    TrialResult {
        standing: Standing::Counted,
        started_unix_ns: 1,
        counts: vec![Counts::Flows(vec![path])],
        ..TrialResult::failed(cell(), 0, "")
    }
}

/// A record without results.
pub(crate) fn record(id: &str, started_unix_ns: u64, command: &str) -> Record {
    Record {
        version: "0.1.0".into(),
        command: command.split_whitespace().map(str::to_owned).collect(),
        study: None,
        started_unix_ns,
        ..Record::new(RecordId(id.into()), Plan::sweep(vec![cell()], Repeats::Times(3)))
    }
}

/// A host of a name under an operating system.
pub(crate) fn host(name: &str, system: &str) -> Host {
    Host {
        name: name.into(),
        version: "0.1.0".into(),
        protocol: 1,
        system: system.into(),
        cpu_model: "Example CPU".into(),
        cores: 2,
        core_groups: Vec::new(),
        memory_bytes: 8 << 30,
        boot_id: name.into(),
        congestion_controls: vec!["cubic".into()],
        nics: Vec::new(),
        data_addresses: Vec::new(),
        capabilities: Vec::new(),
    }
}

/// The same record with what its link carries, which its figure is a share of.
pub(crate) fn of_link(mut record: Record, line_bps: u64) -> Record {
    for result in &mut record.results {
        let reached = result.main.median;
        let Detail::Stream(stream) = &mut result.detail else { panic!("a stream") };
        let (line_bps, share) = (BitRate::per_second(line_bps), reached / line_bps as f64);
        stream.flow.limit = Some(PathLimit { line_bps, mtu: 1500, payload_bps: line_bps, share, half_duplex: false });
        result.verdict.limit = if share > 0.9 { Limit::Wire } else { Limit::Shaper };
        result.verdict.confidence = Confidence::High;
    }
    record
}

/// A record of one TCP stream between two hosts over a link of 1 Gbit/s.
pub(crate) fn pair_record(id: &str, started_unix_ns: u64, hosts: [&str; 2], payload_bps: u64) -> Record {
    let [from, to] = hosts;
    let cell = cell_between(hosts);
    let mut record = record(id, started_unix_ns, &format!("linerate stream {from} {to}"));
    record.plan = Plan::sweep(vec![cell.clone()], Repeats::Times(1));
    record.trials = vec![TrialResult { trial: cell, ..trial(payload_bps) }];
    linerate_method::replay(&mut record);
    of_link(record, 1_000_000_000)
}

/// A record of one TCP stream that reached `payload_bps` in its runs.
pub(crate) fn stream_record(id: &str, started_unix_ns: u64, payload_bps: &[u64]) -> Record {
    let mut record = record(id, started_unix_ns, "linerate stream alpha beta");
    record.trials = payload_bps.iter().map(|payload| trial(*payload)).collect();
    linerate_method::replay(&mut record);
    record
}
