//! Events published while a run is in progress: the runner's [`Event`] turned into [`StreamEvent`].

use crate::{Event, Intervals, RunError};
use linerate_model::{
    EndState, HostName, Outcome, Record, STREAM_SCHEMA, SessionProgress, Standing, StreamEvent, Trial, TrialResult,
    TrialState,
};
use linerate_units::Nanos;

/// Turns the events of a run into published ones.
#[derive(Debug, Clone)]
pub struct Telling {
    /// Length of an interval. `None` leaves intervals out.
    every: Option<Nanos>,
    /// Number of attempts that have begun, including the earlier ones of a resumed run.
    begun: u32,
    /// Intervals of the running attempt.
    intervals: Option<Intervals>,
}

impl Telling {
    /// Publishes intervals of length `every`; `None` publishes no intervals.
    pub fn new(every: Option<Nanos>) -> Self {
        Self { every, begun: 0, intervals: None }
    }

    /// Takes an event. Returns the events to publish, in order.
    pub fn take(&mut self, event: &Event<'_>) -> Vec<StreamEvent> {
        match event {
            Event::Started { record } => self.start(record),
            Event::Begins { trial, attempt, .. } => vec![self.begin(trial, *attempt)],
            Event::Progress { host, progress } => self.progress(host, progress),
            Event::Ended { result } => self.end_attempt(result),
            Event::Concluded { record, failure } => self.conclude(record, *failure),
            // The end of the attempt reports why it is repeated.
            Event::Preparing { .. } | Event::Starts { .. } | Event::Repeating { .. } => Vec::new(),
        }
    }

    fn start(&mut self, record: &Record) -> Vec<StreamEvent> {
        self.begun = u32::try_from(record.trials.len()).unwrap_or(u32::MAX);
        let start = StreamEvent::Start {
            schema: STREAM_SCHEMA.to_owned(),
            record: record.id.clone(),
            version: record.version.clone(),
            command: record.command.clone(),
            started_unix_ns: record.started_unix_ns,
        };
        let hosts = record.hosts.iter().map(|host| StreamEvent::Host { host: Box::new(host.clone()) });
        std::iter::once(start).chain(hosts).collect()
    }

    fn begin(&mut self, trial: &Trial, attempt: u32) -> StreamEvent {
        self.intervals = self.every.map(|every| Intervals::new(every, self.begun, trial.load().task.hosts()));
        self.begun += 1;
        self.trial(trial, attempt, TrialState::Begins, None)
    }

    fn progress(&mut self, host: &HostName, progress: &SessionProgress) -> Vec<StreamEvent> {
        let interval = self.intervals.as_mut().and_then(|intervals| intervals.take(host, progress));
        interval.map(StreamEvent::Interval).into_iter().collect()
    }

    fn end_attempt(&mut self, result: &TrialResult) -> Vec<StreamEvent> {
        let (state, reason) = match &result.standing {
            Standing::Counted => (TrialState::Counted, None),
            Standing::Spoilt { reason } => (TrialState::Spoilt, Some(reason.text.text.clone())),
            Standing::Failed { reason } => (TrialState::Failed, Some(reason.clone())),
        };
        let end = self.trial(&result.trial, result.attempt, state, reason);
        self.last_interval().into_iter().chain([end]).collect()
    }

    fn conclude(&mut self, record: &Record, failure: Option<&RunError>) -> Vec<StreamEvent> {
        let mut events: Vec<StreamEvent> = self.last_interval().into_iter().collect();
        for result in &record.results {
            let verdict =
                StreamEvent::Verdict { result: result.name.clone(), verdict: Box::new(result.verdict.clone()) };
            events.extend([StreamEvent::Result { result: Box::new(result.clone()) }, verdict]);
        }
        if record.outcome != Outcome::Sweep {
            events.push(StreamEvent::Outcome { outcome: Box::new(record.outcome.clone()) });
        }
        let cause = match failure {
            Some(RunError::Unkept { why, .. }) => Some(&**why),
            failure => failure,
        };
        let state = match cause {
            // The run was measured to its end, and could not be kept.
            None | Some(RunError::Store(_)) => EndState::Finished,
            Some(RunError::Interrupted) => EndState::Interrupted,
            Some(_) => EndState::Failed,
        };
        events.push(StreamEvent::End { state, reason: failure.map(ToString::to_string) });
        events
    }

    /// Returns the unfinished interval at the end of the attempt.
    fn last_interval(&mut self) -> Option<StreamEvent> {
        self.intervals.take()?.rest().map(StreamEvent::Interval)
    }

    /// Makes the event for a change of state of the attempt that began last.
    fn trial(&self, trial: &Trial, attempt: u32, state: TrialState, reason: Option<String>) -> StreamEvent {
        StreamEvent::Trial {
            name: trial.name.clone(),
            task: trial.task().kind(),
            transport: trial.net().map(|net| net.transport),
            number: self.begun.saturating_sub(1),
            attempt,
            state,
            reason,
        }
    }
}
