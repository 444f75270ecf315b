//! What the display shows: a run as far as it is known. It reads no clock and no terminal.

use linerate_method::{Progress, replay};
use linerate_model::{
    EndState, HostName, IntervalReport, Loss, Preparation, Record, Repeats, StreamEvent, TaskKind, Transport,
    TrialResult, TrialState,
};
use linerate_report::overview::{Line, lines};
use linerate_report::{Language, LiveRate, live, said};
use linerate_units::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// Points kept of the run; no terminal is as wide.
const POINTS: usize = 1_000;

/// A run as far as it is known.
#[derive(Debug)]
pub(super) struct State {
    /// The hosts, the plan, and the attempts that have ended.
    record: Record,
    pub(super) language: Language,
    /// The attempt that runs, or that ran last.
    pub(super) trial: Option<TrialSoFar>,
    /// How far the run was when that attempt began.
    pub(super) progress: Progress,
    /// The course of the run, the newest last.
    pub(super) points: VecDeque<Point>,
    /// A line for each result, as its runs so far have it.
    pub(super) results: Vec<Line>,
    /// Share of a core that the busiest of the test's threads uses on each host, percent, in the order of the record.
    pub(super) hosts: Vec<(HostName, Option<u8>)>,
    /// Something that the user should know now; empty where there is nothing.
    pub(super) notice: String,
    /// The user has stopped the run.
    pub(super) stopping: bool,
}

/// What an attempt has done so far.
#[derive(Debug, Clone)]
pub(super) struct TrialSoFar {
    /// The trial's name.
    pub(super) name: String,
    /// What is measured.
    pub(super) task: TaskKind,
    /// TCP or UDP; none for frames and copies.
    pub(super) transport: Option<Transport>,
    /// Which run of this trial it is; the first is 1.
    pub(super) repeat: u32,
    /// The latest interval; none before the load began.
    pub(super) latest: Option<IntervalReport>,
    /// Segments or calls sent again.
    pub(super) retransmits: u64,
    /// Datagrams missing at the receivers.
    pub(super) lost: u64,
    /// Bits (or operations) done after the warm-up, and how long that took.
    measured: (f64, Nanos),
    /// Length of the measured window; none where the task ends by itself.
    length: Option<Nanos>,
}

/// One interval in the course of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Point {
    /// Bits or operations per second; none between two attempts.
    pub(super) rate: Option<f64>,
    /// p99 of response times; TCP streams: smoothed round-trip time.
    pub(super) latency: Option<Nanos>,
    /// It is warm-up.
    pub(super) warmup: bool,
}

impl State {
    /// The state of a run that begins or goes on. Results are in `language`.
    pub(super) fn new(record: Record, language: Language) -> Self {
        let hosts = record.hosts.iter().map(|host| (host.name.clone(), None)).collect();
        let mut state = Self {
            record,
            language,
            trial: None,
            progress: Progress::default(),
            points: VecDeque::new(),
            results: Vec::new(),
            hosts,
            notice: String::new(),
            stopping: false,
        };
        if !state.record.trials.is_empty() {
            state.sum_up();
        }
        state
    }

    /// Takes how far the run is when an attempt has begun, whose measured window is as long as `length`.
    pub(super) fn schedule(&mut self, progress: Progress, length: Option<Nanos>) {
        self.progress = progress;
        if let Some(trial) = &mut self.trial {
            trial.length = length;
        }
    }

    /// Takes an event of the run.
    pub(super) fn take(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Trial { name, task, transport, state: TrialState::Begins, .. } => {
                self.begin(name, *task, *transport);
            }
            StreamEvent::Trial { name, state, reason, .. } => {
                let reason = reason.as_deref().unwrap_or_default();
                match state {
                    TrialState::Spoilt => {
                        self.notice = said!(
                            self.language,
                            "tui-spoilt",
                            "{name} is measured again: {reason}",
                            name = name,
                            reason = reason
                        );
                    }
                    TrialState::Failed => {
                        self.notice =
                            said!(self.language, "tui-failed", "{name} failed: {reason}", name = name, reason = reason);
                    }
                    TrialState::Begins | TrialState::Counted => {}
                }
            }
            StreamEvent::Interval(report) => self.interval(report),
            StreamEvent::End { state: EndState::Finished, .. } => {
                self.notice = said!(self.language, "tui-ended", "the run has ended");
            }
            StreamEvent::End { .. } => self.notice = said!(self.language, "tui-ended-early", "the run ended early"),
            // The record has the hosts, and its results are summed up after each attempt.
            StreamEvent::Start { .. }
            | StreamEvent::Host { .. }
            | StreamEvent::Result { .. }
            | StreamEvent::Verdict { .. }
            | StreamEvent::Outcome { .. } => {}
        }
    }

    /// Takes an attempt that has ended, and sums up the run so far.
    pub(super) fn ended(&mut self, result: TrialResult) {
        self.record.trials.push(result);
        self.sum_up();
    }

    /// Says what a host makes before the load begins.
    pub(super) fn preparing(&mut self, host: &HostName, doing: Option<Preparation>) {
        self.notice = doing.map(|doing| format!("{host}: {}", self.language.text(doing.text()))).unwrap_or_default();
    }

    /// The share of the run that is done, from 0 to 1; none where its length is not known.
    pub(super) fn share_done(&self) -> Option<f64> {
        let at_most = self.progress.at_most?.max(1);
        let within = self.trial.as_ref().map_or(0.0, TrialSoFar::share_done);
        Some(((self.progress.done as f64 + within) / at_most as f64).min(1.0))
    }

    /// How often each trial is run; none where that depends on the results.
    pub(super) fn repeats(&self) -> Option<u32> {
        match self.record.plan.repeats() {
            Some(Repeats::Times(times)) => Some(times),
            _ => None,
        }
    }

    /// Datagrams lost in the runs of the current trial that have ended, by place; none before the first has, and where nothing can be
    /// lost.
    pub(super) fn loss_before(&self) -> Option<Loss> {
        self.record.result(&self.trial.as_ref()?.name)?.loss().copied()
    }

    fn begin(&mut self, name: &str, task: TaskKind, transport: Option<Transport>) {
        if self.points.back().is_some_and(|last| last.rate.is_some()) {
            self.add(Point::default());
        }
        let before = self.record.counted().filter(|result| result.trial.name == name).count();
        self.trial = Some(TrialSoFar {
            name: name.to_owned(),
            task,
            transport,
            repeat: u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1),
            latest: None,
            retransmits: 0,
            lost: 0,
            measured: (0.0, Nanos::default()),
            length: None,
        });
    }

    fn interval(&mut self, report: &IntervalReport) {
        // What was said before the load began is past.
        self.notice.clear();
        let Some(trial) = &mut self.trial else { return };
        trial.take(report);
        let rate = Some(trial.rate(report)).filter(|rate| !report.is_unknown(*rate));
        let point = Point { rate, latency: report.p99.or(report.srtt), warmup: report.warmup };
        self.add(point);
        let busy: BTreeMap<&HostName, Option<u8>> =
            report.hosts.iter().map(|load| (&load.host, load.busiest_thread)).collect();
        for (host, thread) in &mut self.hosts {
            *thread = busy.get(host).copied().flatten().or(*thread);
        }
    }

    fn add(&mut self, point: Point) {
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    fn sum_up(&mut self) {
        replay(&mut self.record);
        self.results = lines(self.language, &self.record);
    }
}

impl TrialSoFar {
    /// Mean rate since the warm-up ended; none before.
    pub(super) fn mean(&self) -> Option<f64> {
        let (done, time) = self.measured;
        (!time.is_zero()).then(|| done / time.as_secs_f64())
    }

    /// Whether the figures of this attempt count bytes; operations else.
    pub(super) fn counts_bytes(&self) -> bool {
        matches!(live(self.task).rate, LiveRate::Payload | LiveRate::Files)
    }

    /// The rate of an interval.
    pub(super) fn rate(&self, report: &IntervalReport) -> f64 {
        if self.counts_bytes() { report.payload_bps() } else { report.operations_per_s }
    }

    fn take(&mut self, report: &IntervalReport) {
        self.retransmits += report.retransmits;
        self.lost += report.lost;
        if !report.warmup && !report.is_unknown(self.rate(report)) {
            let seconds = (report.to - report.from).as_secs_f64();
            let done = if self.counts_bytes() { report.payload_bps() * seconds } else { report.operations as f64 };
            self.measured.0 += done;
            self.measured.1 = self.measured.1 + (report.to - report.from);
        }
        self.latest = Some(report.clone());
    }

    fn share_done(&self) -> f64 {
        let Some(length) = self.length.filter(|length| !length.is_zero()) else { return 0.0 };
        (self.measured.1.as_secs_f64() / length.as_secs_f64()).min(1.0)
    }
}
