//! The loop: ask the method, run the trial, keep it, repeat.

use crate::clock::Clock;
use crate::clock_exchanges::ClockExchanges;
use crate::event::Event;
use crate::keep::Keep;
use crate::session::Sessions;
use crate::{Agents, DeviceWatch, RunError};
use linerate_method::{After, Again, Retry, Step, spoilt};
use linerate_model::{
    AttemptSpan, Caveat, CaveatKind, Host, Message, Password, Plan, Record, RecordId, Sampling, Standing, StudyRun,
    Trial, TrialResult, message,
};
use linerate_store::{Ending, LiveRun, Store};
use linerate_units::Nanos;
use std::cell::RefCell;
use tokio::sync::watch;

/// Who asks for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The command as typed, secrets left out.
    pub command: Vec<String>,
    /// The run of a study that it is; none for what is no part of one.
    pub study: Option<StudyRun>,
    /// The group of records that one command makes together; none where it makes one.
    pub group: Option<String>,
}

/// A run to make.
pub struct Run<'a> {
    /// What to measure.
    pub plan: Plan,
    /// Who asks for it.
    pub origin: Origin,
    /// Time from one sample of a trial to the next.
    pub sampling_period: Nanos,
    /// The agents.
    pub agents: &'a dyn Agents,
    /// Where trials are kept as they end; none keeps nothing.
    pub store: Option<&'a Store>,
    /// For the file server of a copy or the iperf3 server of a stream, where that wants one. No record has it.
    pub password: Option<Password>,
    /// Follows the load of the device under test; none leaves it alone.
    pub device: Option<DeviceWatch>,
    /// What stands between the hosts and can say whether it kept its limits; none says nothing.
    pub bench: Option<&'a dyn BenchWatch>,
    /// The run to go on with; none begins a new one.
    pub resumed: Option<Resumed<'a>>,
}

/// Something between the hosts whose limits were planted, as the path of a lab is.
pub trait BenchWatch: Sync {
    /// Says what limits it did not keep since this was last asked; none if it kept them.
    fn missed(&self) -> Option<Message>;
}

/// A run that ended early and goes on.
pub struct Resumed<'a> {
    /// What was measured until then.
    pub record: Record,
    /// Its row in the store.
    pub live: LiveRun<'a>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// Everything measured, also when the run failed half-way.
    pub record: Record,
    /// Why it ended early, or could not be kept.
    pub failure: Option<RunError>,
}

impl Run<'_> {
    /// Runs the plan to its end, to the first failure that costs the run, or until `cancel` turns true.
    ///
    /// To resume a run is to tell the method the attempts of its record, and to go on.
    pub async fn execute(mut self, on_event: &mut dyn FnMut(Event<'_>), mut cancel: watch::Receiver<bool>) -> Ended {
        let (mut record, live) = match self.resumed.take() {
            Some(Resumed { record, live }) => (record, Some(live)),
            None => (begin(self.plan.clone(), self.origin.clone(), self.agents.hosts()), None),
        };
        on_event(Event::Started { record: &record });
        let resumed_at = live.as_ref().map(|_| record.trials.len());
        let mut keep = Keep::new(self.store, live, &record);
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
            // It may have been asked for as the trial before was wound up.
            if *cancel.borrow() {
                break Some(RunError::Interrupted);
            }
            on_event(Event::Begins { trial: &trial, attempt, progress: method.progress() });
            lasting.sampling = sampling(self.sampling_period, method.progress().at_most, record.trials.len());
            let began_unix_ns = clock.now().get();
            let ran = self.attempt(&trial, attempt, again, &mut lasting, on_event, &mut cancel).await;
            let (mut result, error) = match ran {
                Ok(result) => (result, None),
                // A trial that the user stopped is not kept: it counted nothing whole.
                Err(RunError::Interrupted) => break Some(RunError::Interrupted),
                Err(error) => {
                    // The attempt has the trial's name already.
                    let reason = error.to_string();
                    let named = RunError::Trial { trial: trial.name.clone(), source: Box::new(error) };
                    (TrialResult::failed(*trial, attempt, reason), Some(named))
                }
            };
            result.span = Some(AttemptSpan { began_unix_ns, ended_unix_ns: clock.now().get() });
            let doubt = spoilt(&result);
            retry.judge(again, attempt, doubt, &mut result);
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
            let (missed, all) = (lasting.missed.len(), record.trials.len());
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
            (Some(error), Some(source)) => Some(RunError::Unkept { why: Box::new(error), source }),
            (failure, stored) => failure.or(stored.map(RunError::Store)),
        };
        on_event(Event::Concluded { record: &record, failure: failure.as_ref() });
        Ended { record, failure }
    }

    /// Makes one attempt. Whatever ends it early, every session is closed before this returns; what could not be removed then is
    /// added to `lasting`.
    async fn attempt(
        &mut self,
        trial: &Trial,
        attempt: u32,
        again: Again,
        lasting: &mut Lasting,
        on_event: &mut dyn FnMut(Event<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<TrialResult, RunError> {
        let mut sessions = Sessions::new(trial, self.agents, lasting.sampling);
        let on_event = RefCell::new(on_event);
        let Lasting { remains, clocks, missed, .. } = lasting;
        let bench = self.bench;
        let watched = async {
            clocks.before(trial, self.agents).await;
            if let Some(device) = &mut self.device {
                device.start(trial).await;
            }
            // What was missed before has no part in this trial.
            let _ = bench.and_then(BenchWatch::missed);
            sessions.run(attempt, self.password.as_ref(), &on_event).await
        };
        let result = tokio::select! {
            biased;
            () = asked_to_stop(cancel) => Err(RunError::Interrupted),
            result = watched => result,
        };
        let mut result = match result {
            Ok(result) => result,
            Err(error) => {
                self.device.iter_mut().for_each(DeviceWatch::give_up);
                remains.extend(sessions.close().await);
                return Err(error);
            }
        };
        missed.extend(bench.and_then(BenchWatch::missed));
        // The trial is measured, and is kept also where the user does not wait for what is asked besides.
        let further = async {
            if let Some(device) = &mut self.device {
                result.device_load = Some(device.stop(&result, again == Again::Decides).await);
            }
            result.clocks = clocks.after(trial, self.agents).await;
        };
        let is_left_out = tokio::select! {
            biased;
            () = asked_to_stop(cancel) => true,
            () = further => false,
        };
        if is_left_out {
            self.device.iter_mut().for_each(DeviceWatch::give_up);
        }
        Ok(result)
    }
}

/// What outlasts an attempt.
#[derive(Default)]
struct Lasting {
    /// What could not be removed.
    remains: Vec<Caveat>,
    /// The latest exchanges of times, which serve two trials.
    clocks: ClockExchanges,
    /// Of each trial in which the bench did not keep its limits, how.
    missed: Vec<Message>,
    /// How the hosts sample the next one.
    sampling: Sampling,
}

/// How hosts sample a trial of a run of so many trials, as far as is known, of which some are done. The points of all trials
/// together are limited, so that a record of 1,000 trials stays under 30 MB.
pub(crate) fn sampling(period: Nanos, at_most: Option<usize>, done: usize) -> Sampling {
    const POINTS: u32 = 40_000;
    const FEWEST: u32 = 40;
    let trials = at_most.unwrap_or_default().max(done + 1);
    let each = POINTS / u32::try_from(trials).unwrap_or(u32::MAX);
    Sampling { period, most_points: each.clamp(FEWEST, Sampling::MOST_POINTS) }
}

/// Which attempt at its trial comes after `last`: one that was spoilt is repeated.
fn next_attempt(last: Option<&TrialResult>) -> u32 {
    last.map_or(0, |result| if matches!(result.standing, Standing::Spoilt { .. }) { result.attempt + 1 } else { 0 })
}

/// Ends when the user stops the run; never if nobody can any more.
async fn asked_to_stop(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A record of a run that begins now.
pub(crate) fn begin(plan: Plan, origin: Origin, hosts: Vec<Host>) -> Record {
    let Origin { command, study, group } = origin;
    let now = jiff::Timestamp::now();
    let id = format!("{}-{:04x}", now.strftime("%Y%m%dT%H%M%S"), rand::random::<u16>());
    Record {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        study,
        group,
        started_unix_ns: u64::try_from(now.as_nanosecond()).unwrap_or_default(),
        hosts,
        ..Record::new(RecordId(id), plan)
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
