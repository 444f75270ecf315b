//! The loop of a device test: ask the method for the next trial, run it on the tester's agent, keep it, repeat.

use crate::run::begin;
use crate::{Asked, DeviceWatch, Outcome, Peers, RunError, frame_trial};
use linerate_method::device::{Device, SPOILT_RETRIES, left_out, spoilt};
use linerate_model::{Caveat, CaveatKind, DevicePlan, FrameTrial, FrameTrialResult, Plan, Record, Repeats};
use linerate_store::{Store, StoreError};
use tokio::sync::watch;

/// What happens while a device is tested.
#[derive(Debug)]
pub enum DeviceEvent<'a> {
    /// A trial begins; `known` says how far the test is.
    TrialBegins {
        /// The trial.
        trial: &'a FrameTrial,
        /// The size being measured and the bounds so far.
        known: String,
    },
    /// A trial was spoilt by the tester and is run again.
    Repeating {
        /// Why.
        reason: &'a Caveat,
    },
}

/// A device test to make.
pub struct DeviceRun<'a> {
    /// What to measure.
    pub plan: DevicePlan,
    /// What it is asked by.
    pub asked: Asked,
    /// The agents.
    pub peers: &'a Peers,
    /// Where the record is kept, brought up to date after each trial; none keeps nothing.
    pub store: Option<&'a Store>,
    /// The tester's ceiling between the same ports.
    pub calibration: Option<&'a Record>,
    /// Follows the device's own load; none leaves it alone.
    pub load: Option<DeviceWatch>,
}

impl DeviceRun<'_> {
    /// Runs the test to its end, to the first failure, or until `cancel` turns true.
    pub async fn execute(
        mut self,
        on_event: &mut dyn FnMut(DeviceEvent<'_>),
        mut cancel: watch::Receiver<bool>,
    ) -> Outcome {
        let plan = Plan {
            cells: Vec::new(),
            repeats: Repeats::Times(1),
            device: Some(self.plan.clone()),
            ladder: None,
            curve: None,
            copy: None,
        };
        let mut record = begin(plan, self.asked.clone(), self.peers);
        record.caveats.extend(left_out(&self.plan));
        let mut method = Device::new(self.plan.clone(), self.calibration);
        let mut patience = Patience { retries: SPOILT_RETRIES, repeated: 0 };
        let mut failure = None;
        while let Some(trial) = method.next() {
            on_event(DeviceEvent::TrialBegins { trial: &trial, known: method.progress() });
            match self.sound(&trial, method.retries(), &mut patience, on_event, &mut cancel).await {
                Ok(result) => {
                    method.record(&result);
                    record.frame_trials.push(result);
                    record.outcome = Some(method.outcome().clone().into());
                    let first = record.frame_trials.len() == 1;
                    failure = failure.or(self.keep(|store| {
                        if first {
                            store.begin(&record)?
                        }
                        store.finish(&record, false)
                    }));
                }
                Err(error) => {
                    record.caveats.push(Caveat::new(CaveatKind::Interrupted, format!("the run ended early: {error}")));
                    failure = Some(error);
                    break;
                }
            }
        }
        if patience.repeated > 0 {
            let text = format!(
                "{} of {} trials were run again because something held up the tester: measure on a quieter machine to be \
                 done sooner",
                patience.repeated,
                record.frame_trials.len()
            );
            record.caveats.push(Caveat::new(CaveatKind::Repeated, text));
        }
        if !record.frame_trials.is_empty() {
            let complete = failure.is_none();
            failure = failure.or(self.keep(|store| store.finish(&record, complete)));
        }
        Outcome { record, failure }
    }

    /// Runs a trial, and up to `most` times again if the tester spoilt it; what spoilt the last one stays with it.
    async fn sound(
        &mut self,
        trial: &FrameTrial,
        most: u32,
        patience: &mut Patience,
        on_event: &mut dyn FnMut(DeviceEvent<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<FrameTrialResult, RunError> {
        let searches = (1..self.plan.final_time.get()).contains(&trial.time.get());
        let most = if searches { most.min(patience.retries) } else { most };
        let mut again = 0;
        loop {
            let mut result = self.once(trial, cancel).await?;
            let reason = spoilt(&result);
            if let Some(reason) = &reason
                && again < most
            {
                again += 1;
                on_event(DeviceEvent::Repeating { reason });
                continue;
            }
            patience.note(again, reason.is_none());
            result.caveats.extend(reason);
            return Ok(result);
        }
    }

    async fn once(
        &mut self,
        trial: &FrameTrial,
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<FrameTrialResult, RunError> {
        let (host, peers, load) = (&self.plan.host, self.peers, &mut self.load);
        let decides = trial.time >= self.plan.final_time;
        let watched = async {
            if let Some(load) = load {
                load.start(trial).await;
            }
            let mut result = frame_trial::run(trial, host, peers).await?;
            if let Some(load) = load {
                result.device_load = Some(load.stop(&result, decides).await);
            }
            Ok(result)
        };
        tokio::select! {
            result = watched => result,
            Ok(_) = cancel.wait_for(|asked| *asked) => Err(RunError::Interrupted),
        }
    }

    /// Does something to the store, if there is one. A store that fails is not used again, and the run goes on.
    fn keep(&mut self, action: impl FnOnce(&Store) -> Result<(), StoreError>) -> Option<RunError> {
        let error = action(self.store?).err()?;
        self.store = None;
        Some(error.into())
    }
}

/// How often spoilt trials are run again.
#[derive(Debug)]
struct Patience {
    /// Those of a search, which decide nothing, at most so often.
    retries: u32,
    /// Trials that were run again so far.
    repeated: usize,
}

impl Patience {
    /// Notes that a trial was run `again` so often, and whether it was sound in the end.
    fn note(&mut self, again: u32, sound: bool) {
        self.repeated += usize::from(again > 0);
        self.retries = if sound { SPOILT_RETRIES } else { (self.retries / 2).max(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_tries_less_what_does_not_help_until_it_helps() {
        let mut patience = Patience { retries: SPOILT_RETRIES, repeated: 0 };
        let mut often = |again, sound| {
            patience.note(again, sound);
            (patience.retries, patience.repeated)
        };
        assert_eq!(
            [often(0, true), often(4, false), often(2, false), often(1, false)],
            [(4, 0), (2, 1), (1, 2), (1, 3)]
        );
        assert_eq!(often(1, true), (4, 4));
    }
}
