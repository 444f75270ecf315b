//! A run under way: what its feed told so far.

use linerate_model::{IntervalReport, StreamEvent, TrialState};
use linerate_report::{LiveAttempt, LiveTrial};
use linerate_store::Feed;

/// Intervals kept of an attempt. Where there are more, neighbours are merged.
const MOST_INTERVALS: usize = 600;
/// Attempts at a trial that are kept, the one that runs included.
const MOST_ATTEMPTS: usize = 8;

/// A run that is followed by its feed.
#[derive(Debug)]
pub(crate) struct UnderWay {
    feed: Feed,
    pub(crate) command: Vec<String>,
    pub(crate) started_unix_ns: u64,
    /// The trial that runs, or ran last; none before the first.
    pub(crate) trial: Option<TrialUnderWay>,
}

/// A trial that runs, with its repeats so far.
#[derive(Debug)]
pub(crate) struct TrialUnderWay {
    /// Attempts of the run before the last of the trial's.
    number: u32,
    pub(crate) told: LiveTrial,
}

impl UnderWay {
    /// The run of a feed.
    pub(crate) fn new(feed: Feed) -> Self {
        let mut run = Self { feed, command: Vec::new(), started_unix_ns: 0, trial: None };
        run.look();
        run
    }

    /// Returns whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.feed.has_ended()
    }

    /// Takes what was told since the last look. Returns whether an attempt has begun or ended.
    pub(crate) fn look(&mut self) -> bool {
        let events = self.feed.news();
        let attempted = events.iter().any(|event| matches!(event, StreamEvent::Trial { .. }));
        events.into_iter().for_each(|event| self.take(event));
        attempted
    }

    fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Start { command, started_unix_ns, .. } => {
                (self.command, self.started_unix_ns) = (command, started_unix_ns);
            }
            StreamEvent::Trial { name, task, transport, number, state, reason, .. } => {
                let known = self.trial.take().filter(|known| known.told.name == name);
                let goes_on = known.as_ref().is_some_and(|known| known.number == number);
                let mut attempts = known.map(|known| known.told.attempts).unwrap_or_default();
                // Otherwise it has ended, or a feed that began again tells of it again.
                let intervals = if goes_on { attempts.pop().map(|attempt| attempt.intervals) } else { None };
                let run = attempts.last().map_or(1, |last| last.run + u32::from(last.state != TrialState::Spoilt));
                attempts.push(LiveAttempt { run, state, reason, intervals: intervals.unwrap_or_default() });
                if attempts.len() > MOST_ATTEMPTS {
                    attempts.remove(0);
                }
                self.trial = Some(TrialUnderWay { number, told: LiveTrial { name, task, transport, attempts } });
            }
            StreamEvent::Interval(interval) => {
                let trial = self.trial.as_mut().filter(|trial| trial.number == interval.number);
                if let Some(LiveAttempt { intervals, .. }) = trial.and_then(|trial| trial.told.attempts.last_mut()) {
                    intervals.push(interval);
                    if intervals.len() > MOST_INTERVALS {
                        *intervals = intervals.chunks(2).map(merged).collect();
                    }
                }
            }
            StreamEvent::Host { .. }
            | StreamEvent::Result { .. }
            | StreamEvent::Verdict { .. }
            | StreamEvent::Outcome { .. }
            | StreamEvent::End { .. } => {}
        }
    }
}

/// Neighbouring intervals as one. Of response times the worse counts, as their distributions are not told.
fn merged(intervals: &[IntervalReport]) -> IntervalReport {
    let [one, other] = intervals else { return intervals.first().cloned().unwrap_or_default() };
    let length = |interval: &IntervalReport| (interval.to - interval.from).as_secs_f64();
    let mean = |of: fn(&IntervalReport) -> f64| {
        let (first, second) = (length(one), length(other));
        (of(one) * first + of(other) * second) / (first + second).max(f64::MIN_POSITIVE)
    };
    IntervalReport {
        from: one.from,
        warmup: one.warmup || other.warmup,
        received_bytes: one.received_bytes + other.received_bytes,
        sent_bytes: one.sent_bytes + other.sent_bytes,
        received_bps: mean(|interval| interval.received_bps),
        sent_bps: mean(|interval| interval.sent_bps),
        operations: one.operations + other.operations,
        operations_per_s: mean(|interval| interval.operations_per_s),
        retransmits: one.retransmits + other.retransmits,
        lost: one.lost + other.lost,
        srtt: one.srtt.max(other.srtt),
        p50: one.p50.max(other.p50),
        p99: one.p99.max(other.p99),
        ..other.clone()
    }
}
