//! The loop: ask the method, run the trial, keep it, repeat.

use crate::clock::Clock;
use crate::clock_exchanges::ClockExchanges;
use crate::event::Event;
use crate::run_keeper::{Keep, KeepRun, RunKeeper};
use crate::session::Sessions;
use crate::{Agents, DeviceWatch, RunError};
use linerate_method::{After, Again, Retry, Step, spoilt};
use linerate_model::{
    AttemptSpan, Caveat, CaveatKind, Host, Message, Password, Plan, Record, RecordId, Sampling, Standing, StudyRun,
    Trial, TrialResult, message,
};
use linerate_store::Ending;
use linerate_units::Nanos;
use std::cell::RefCell;
use tokio::sync::watch;

/// Origin of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Command line as typed, without secrets.
    pub command: Vec<String>,
    /// Place in a study, if the run is part of one.
    pub study: Option<StudyRun>,
    /// Group of the records that one command makes, if it makes several.
    pub group: Option<String>,
}

/// A run to make.
pub struct Run<'a> {
    pub plan: Plan,
    pub origin: Origin,
    /// Time from one sample of a trial to the next.
    pub sampling_period: Nanos,
    pub agents: &'a dyn Agents,
    /// Name of the record, by which another runner can continue the run. `None` draws one.
    pub id: Option<RecordId>,
    /// Whether another runner may have begun the next attempt. Counts of sessions that are done are used then, and other
    /// sessions of the attempt are closed.
    pub takes_over: bool,
    /// Place that keeps attempts as they end.
    pub keep: Option<&'a dyn Keep>,
    /// Password for the file server of a copy or the iperf3 server of a stream. It is never recorded.
    pub password: Option<Password>,
    /// Watch of the load of the device under test.
    pub device: Option<DeviceWatch>,
    /// Monitor of the planted limits between the hosts.
    pub bench: Option<&'a dyn BenchWatch>,
    /// Run to resume. `None` begins a new one.
    pub resumed: Option<Resumed<'a>>,
}

/// Monitor of planted limits between the hosts, such as the path of a lab.
pub trait BenchWatch: Sync {
    /// Describes the limits that were not kept since the previous call. `None` if all were kept.
    fn missed(&self) -> Option<Message>;
}

/// Run that ended early and is resumed.
pub struct Resumed<'a> {
    /// Record of the measurements so far.
    pub record: Record,
    /// The run in the place that keeps it.
    pub live: Box<dyn KeepRun + 'a>,
}

/// Outcome of a run.
#[derive(Debug)]
pub struct Ended {
    /// Record of everything measured, also after a failure.
    pub record: Record,
    /// Reason for an early end, or for not keeping the record.
    pub failure: Option<RunError>,
    /// Whether the record is in the store.
    pub kept: bool,
}

impl Run<'_> {
    /// Runs the plan to its end, to the first failure that ends the run, or until `cancel` turns true.
    ///
    /// A resumed run replays the attempts of its record to the method before it goes on.
    pub async fn execute(mut self, on_event: &mut dyn FnMut(Event<'_>), mut cancel: watch::Receiver<bool>) -> Ended {
        let is_named = self.id.is_some();
        let (mut record, live) = match self.resumed.take() {
            Some(Resumed { record, live }) => (record, Some(live)),
            None => (begin(self.id.take(), self.plan.clone(), self.origin.clone(), self.agents.hosts()), None),
        };
        on_event(Event::Started { record: &record });
        let resumed_at = live.as_ref().map(|_| record.trials.len());
        let mut keep = RunKeeper::new(self.keep, live, &record);
        let mut method = linerate_method::of(&record.plan, &record.hosts);
        let mut retry = Retry::default();
        for result in &record.trials {
            retry.replay(result);
            method.record(result);
        }
        let mut attempt = next_attempt(record.trials.last());

        let mut lasting = Lasting::default();
        let clock = Clock::begin();

        let failure = loop {
            let Step::Run { trial, again } = method.next() else { break None };
            // The request may have come while the previous trial was being finished.
            if *cancel.borrow() {
                break Some(RunError::Interrupted);
            }
            on_event(Event::Begins { trial: &trial, attempt, progress: method.progress() });
            lasting.sampling = sampling(self.sampling_period, method.progress().at_most, record.trials.len());
            lasting.sessions = is_named.then(|| format!("{}-{}", record.id, record.trials.len()));
            let began_unix_ns = clock.now().get();
            let outcome = self.attempt(&trial, attempt, again, &mut lasting, on_event, &mut cancel).await;
            let (mut result, error) = match outcome {
                Ok(result) => (result, None),
                // A trial that the user stopped is not kept: its counts are incomplete.
                Err(RunError::Interrupted) => break Some(RunError::Interrupted),
                Err(error) => {
                    // The attempt has the trial's name already.
                    let reason = error.to_string();
                    let error = RunError::Trial { trial: trial.name.clone(), source: Box::new(error) };
                    (TrialResult::failed(*trial, attempt, reason), Some(error))
                }
            };
            result.span = Some(AttemptSpan { began_unix_ns, ended_unix_ns: clock.now().get() });
            let caveat = spoilt(&result);
            retry.judge(again, attempt, caveat, &mut result);
            if let Standing::Spoilt { reason } = &result.standing {
                on_event(Event::Repeating { reason });
            }
            let after = method.record(&result);
            record.trials.push(result);
            keep.trials(&record, || method.summary());
            if let Some(result) = record.trials.last() {
                on_event(Event::Ended { result });
            }
            if after == After::End {
                break error;
            }
            attempt = next_attempt(record.trials.last());
        };
        method.conclude(&mut record);
        record.caveats.append(&mut lasting.remains);
        if let Some(first) = lasting.missed.first() {
            let missed = lasting.missed.len();
            let all = record.trials.len();
            record.caveats.push(Caveat::new(
                CaveatKind::BenchLimits,
                message!(
                    "caveat-bench-limits",
                    "in {missed} of {all} trials {first}",
                    missed,
                    all,
                    first = first.clone()
                ),
            ));
        }
        if let Some(trials) = resumed_at {
            let text = message!(
                "caveat-resumed",
                "the run was resumed after {trials} attempts: the network may have changed in between",
                trials
            );
            record.caveats.push(Caveat::new(CaveatKind::Interrupted, text));
        }
        if let Some(error) = &failure {
            record.caveats.push(Caveat::new(
                CaveatKind::Interrupted,
                message!("caveat-ended-early", "the run ended early: {error}", error = error.to_string()),
            ));
        }
        let ending = match &failure {
            None => Ending::Finished,
            Some(RunError::Interrupted) => Ending::Interrupted,
            Some(_) => Ending::Failed,
        };
        let failure = match (failure, keep.end(&record, ending)) {
            (Some(error), Some(source)) => Some(RunError::Unkept { why: Box::new(error), source: Box::new(source) }),
            (failure, stored) => failure.or(stored.map(RunError::Store)),
        };
        on_event(Event::Concluded { record: &record, failure: failure.as_ref() });
        Ended { record, failure, kept: self.keep.is_some() }
    }

    /// Makes one attempt. If it ends early, every session is closed before this returns, and a caveat for each thing
    /// that could not be removed is added to `lasting`.
    async fn attempt(
        &mut self,
        trial: &Trial,
        attempt: u32,
        again: Again,
        lasting: &mut Lasting,
        on_event: &mut dyn FnMut(Event<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<TrialResult, RunError> {
        let names = lasting.sessions.take();
        let mut sessions = Sessions::new(trial, self.agents, lasting.sampling, names.clone());
        if std::mem::take(&mut self.takes_over)
            && let Some(result) = sessions.take_over(attempt).await
        {
            return result;
        }
        let on_event = RefCell::new(on_event);
        let Lasting { remains, clocks, missed, .. } = lasting;
        let bench = self.bench;
        let measurement = async {
            clocks.before(trial, self.agents).await;
            if let Some(device) = &mut self.device {
                device.start(trial).await;
            }
            // Discards limits that were missed before this trial.
            let _ = bench.and_then(BenchWatch::missed);
            sessions.run(attempt, self.password.as_ref(), &on_event).await
        };
        let result = tokio::select! {
            biased;
            () = asked_to_stop(cancel) => Err(RunError::Interrupted),
            result = measurement => result,
        };
        let mut result = match result {
            Ok(result) => result,
            Err(error) => {
                self.device.iter_mut().for_each(DeviceWatch::give_up);
                // The hosts may have gone on to the end of the attempt while nobody could follow them.
                if error.is_loss()
                    && names.is_some()
                    && let Some(result) = sessions.take_over(attempt).await
                {
                    return result;
                }
                remains.extend(sessions.close().await);
                return Err(error);
            }
        };
        missed.extend(bench.and_then(BenchWatch::missed));
        // The trial is measured, and is kept also if the user does not wait for the device and the clocks.
        let further = async {
            if let Some(device) = &mut self.device {
                result.device_load = Some(device.stop(&result, again == Again::Decides).await);
            }
            result.clocks = clocks.after(trial, self.agents).await;
        };
        let cancelled = tokio::select! {
            biased;
            () = asked_to_stop(cancel) => true,
            () = further => false,
        };
        if cancelled {
            self.device.iter_mut().for_each(DeviceWatch::give_up);
        }
        Ok(result)
    }
}

/// State that outlasts an attempt.
#[derive(Default)]
struct Lasting {
    /// Caveats for what could not be removed.
    remains: Vec<Caveat>,
    /// Latest clock exchanges; each serves two trials.
    clocks: ClockExchanges,
    /// Limits that the bench did not keep, one message for each trial concerned.
    missed: Vec<Message>,
    /// Sampling of the next trial.
    sampling: Sampling,
    /// Beginning of the names of its sessions. `None` draws one.
    sessions: Option<String>,
}

/// Returns the sampling of the next trial of a run with at most `at_most` trials, of which `done` are done. The points
/// of all trials together are limited, so that a record of 1,000 trials stays under 30 MB.
pub(crate) fn sampling(period: Nanos, at_most: Option<usize>, done: usize) -> Sampling {
    const POINTS: u32 = 40_000;
    const MIN_POINTS: u32 = 40;
    let trials = at_most.unwrap_or_default().max(done + 1);
    let each = POINTS / u32::try_from(trials).unwrap_or(u32::MAX);
    Sampling { period, most_points: each.clamp(MIN_POINTS, Sampling::MOST_POINTS) }
}

/// Returns the number of the attempt after `last`: a spoilt attempt is repeated.
fn next_attempt(last: Option<&TrialResult>) -> u32 {
    last.map_or(0, |result| if matches!(result.standing, Standing::Spoilt { .. }) { result.attempt + 1 } else { 0 })
}

/// Waits until the user stops the run, or forever once nothing can stop it any more.
async fn asked_to_stop(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|cancelled| *cancelled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Makes the record of a run that begins now.
pub(crate) fn begin(id: Option<RecordId>, plan: Plan, origin: Origin, hosts: Vec<Host>) -> Record {
    let Origin { command, study, group } = origin;
    let now = jiff::Timestamp::now();
    let id = id.unwrap_or_else(|| RecordId(format!("{}-{:04x}", now.strftime("%Y%m%dT%H%M%S"), rand::random::<u16>())));
    Record {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        study,
        group,
        started_unix_ns: u64::try_from(now.as_nanosecond()).unwrap_or_default(),
        hosts,
        ..Record::new(id, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_many_trials_keep_fewer_points_of_each() {
        let points = |at_most, done| sampling(Nanos::from_millis(100), at_most, done).most_points;
        assert_eq!(points(Some(3), 0), 1_200);
        assert_eq!(points(Some(100), 7), 400);
        assert_eq!((points(Some(1_000), 0), points(Some(100_000), 0)), (40, 40));
        // A search does not know how many there will be.
        assert_eq!((points(None, 0), points(None, 199), points(Some(10), 199)), (1_200, 200, 200));
    }
}
