//! The loop: ask the method, run the trial, keep it, repeat.

use crate::{Peers, RunError, trial};
use linerate_method::{Step, counterproofs, curve, ladder, measurements, method, spoilt};
use linerate_model::{
    Caveat, CaveatKind, CopyTree, Findings, FrameTrial, HostName, Measurement, Plan, Progress, Record, RecordId,
    StudyRun, TrialResult, TrialSpec,
};
use linerate_store::{Store, StoreError};
use tokio::sync::watch;

/// How often a trial that the tester spoilt is run again before it is taken with its caveat.
const SPOILT_RETRIES: u32 = 2;

/// What happens while a run goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// A trial begins: `done` of at most `total` are behind.
    TrialBegins {
        /// The trial.
        spec: &'a TrialSpec,
        /// Trials done.
        done: usize,
        /// Trials there will be at the most.
        total: usize,
    },
    /// A trial of raw frames begins, after the others.
    FramesBegin {
        /// The trial.
        trial: &'a FrameTrial,
    },
    /// A copy begins, after the others.
    CopyBegins {
        /// The tree.
        tree: &'a CopyTree,
    },
    /// A host's progress in the running trial.
    Progress {
        /// The host.
        host: &'a HostName,
        /// How far it is.
        progress: &'a Progress,
    },
    /// A trial was spoilt by the tester and is run again.
    Repeating {
        /// Why.
        reason: &'a Caveat,
    },
    /// A trial ended and is kept.
    TrialEnded {
        /// What it counted.
        result: &'a TrialResult,
    },
}

/// What a run is asked by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// The command as typed, secrets left out.
    pub command: Vec<String>,
    /// The run of a study that it is; none for what is no part of one.
    pub study: Option<StudyRun>,
}

/// A run to make.
pub struct Run<'a> {
    /// What to measure.
    pub plan: Plan,
    /// What it is asked by.
    pub asked: Asked,
    /// The agents.
    pub peers: &'a Peers,
    /// Where trials are kept as they end; none keeps nothing.
    pub store: Option<&'a Store>,
    /// The same plan's record with the device bypassed: the tester's ceiling.
    pub calibration: Option<&'a Record>,
    /// Put each verdict to the test: measure again with one thing changed.
    pub prove: bool,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Everything measured, also when the run failed half-way.
    pub record: Record,
    /// Why it ended early, or could not be kept.
    pub failure: Option<RunError>,
}

impl Run<'_> {
    /// Runs the plan to its end, to the first failure, or until `cancel` turns true.
    pub async fn execute(mut self, on_event: &mut dyn FnMut(Event<'_>), mut cancel: watch::Receiver<bool>) -> Outcome {
        let mut record = begin(self.plan.clone(), self.asked.clone(), self.peers);
        let mut failure = self.sweep(&mut record, on_event, &mut cancel).await;
        record.results = self.results(&record);
        if self.prove && failure.is_none() {
            failure = self.put_to_the_test(&mut record, on_event, &mut cancel).await;
            record.results = self.results(&record);
        }
        failure = failure.map(|error| match error {
            RunError::Store(_) => error,
            other => interrupted(&mut record, other),
        });
        if failure.is_none()
            && let Err(error) = crate::ladder::rest(&mut record, self.peers, &mut cancel, on_event).await
        {
            failure = Some(interrupted(&mut record, error));
        }
        record.ladder = ladder::found(&record);
        record.outcome = curve::found(&record).map(Findings::from);
        if !record.trials.is_empty() {
            let complete = failure.is_none();
            failure = failure.or(self.keep(|store| store.finish(&record, complete)));
        }
        Outcome { record, failure }
    }

    /// Runs what the record's plan asks for and has not been run yet, to its end or to the first failure.
    async fn sweep(
        &mut self,
        record: &mut Record,
        on_event: &mut dyn FnMut(Event<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Option<RunError> {
        let mut failure = None;
        let mut method = method(&record.plan);
        record.trials.iter().for_each(|trial| method.record(trial));
        while let Step::Run(spec) = method.next() {
            let (done, total) = method.progress();
            // A method may choose loads as it goes; each is a cell like those that were planned.
            if record.plan.cells.iter().all(|known| known.name != spec.name) {
                record.plan.cells.push((*spec).clone());
            }
            on_event(Event::TrialBegins { spec: &spec, done, total });
            match run_sound(&spec, self.peers, cancel, on_event).await {
                Ok(result) => {
                    method.record(&result);
                    // A run that never measured anything leaves no record.
                    if record.trials.is_empty() {
                        failure = failure.or(self.keep(|store| store.begin(record)));
                    }
                    failure = failure.or(self.keep(|store| store.trial(&record.id, &result)));
                    on_event(Event::TrialEnded { result: &result });
                    record.trials.push(result);
                }
                Err(error) => return Some(error),
            }
        }
        failure
    }

    /// Measures again what tests the verdicts. A test that cannot be made (datagrams may be barred where TCP is not) is left out with
    /// a word: what was asked for has been measured.
    async fn put_to_the_test(
        &mut self,
        record: &mut Record,
        on_event: &mut dyn FnMut(Event<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Option<RunError> {
        let mut failure = None;
        for test in counterproofs(record) {
            let name = test.name.clone();
            record.plan.cells.push(test);
            match self.sweep(record, on_event, cancel).await {
                Some(RunError::Agent { host, source }) => {
                    record.plan.cells.retain(|cell| cell.name != name);
                    record.trials.retain(|trial| trial.spec.name != name);
                    let text = format!("a verdict was not put to this test: {name}: {host}: {source}");
                    record.caveats.push(Caveat::new(CaveatKind::NotMeasured, text));
                }
                Some(RunError::Store(error)) => failure = Some(RunError::Store(error)),
                Some(error) => return Some(error),
                None => {}
            }
        }
        failure
    }

    fn results(&self, record: &Record) -> Vec<Measurement> {
        measurements(&record.plan, &record.hosts, &record.trials, self.calibration)
    }

    /// Does something to the store, if there is one. A store that fails is not used again, and the run goes on: what is
    /// measured can still be shown.
    fn keep(&mut self, action: impl FnOnce(&Store) -> Result<(), StoreError>) -> Option<RunError> {
        let error = action(self.store?).err()?;
        self.store = None;
        Some(error.into())
    }
}

/// Notes why a run ended early.
fn interrupted(record: &mut Record, error: RunError) -> RunError {
    record.caveats.push(Caveat::new(CaveatKind::Interrupted, format!("the run ended early: {error}")));
    error
}

/// A record of a run that begins now.
pub(crate) fn begin(plan: Plan, Asked { command, study }: Asked, peers: &Peers) -> Record {
    let now = jiff::Timestamp::now();
    let id = format!("{}-{:04x}", now.strftime("%Y%m%dT%H%M%S"), rand::random::<u16>());
    Record {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        study,
        started_unix_ns: u64::try_from(now.as_nanosecond()).unwrap_or_default(),
        hosts: peers.hosts(),
        ..Record::new(RecordId(id), plan)
    }
}

/// Runs a trial, and again if the tester spoilt it.
async fn run_sound(
    spec: &TrialSpec,
    peers: &Peers,
    cancel: &mut watch::Receiver<bool>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<TrialResult, RunError> {
    for _ in 0..SPOILT_RETRIES {
        let result =
            trial::run(spec, peers, cancel, &mut |host, progress| on_event(Event::Progress { host, progress })).await?;
        let Some(reason) = spoilt(&result) else { return Ok(result) };
        on_event(Event::Repeating { reason: &reason });
    }
    trial::run(spec, peers, cancel, &mut |host, progress| on_event(Event::Progress { host, progress })).await
}
