//! The loop of a device test: ask the method for the next trial, run it on the tester's agent, keep it, repeat.

use crate::run::begin;
use crate::{DeviceWatch, Outcome, Peers, RunError, frame_trial};
use linerate_method::device::{Device, left_out, spoilt};
use linerate_model::{Caveat, CaveatKind, DevicePlan, DeviceTest, FrameTrial, FrameTrialResult, Plan, Record, Repeats};
use linerate_store::{Store, StoreError};
use tokio::sync::watch;

/// How often a trial that the tester spoilt is run again before it is taken with its caveat.
const SPOILT_RETRIES: u32 = 4;

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
    /// The command as typed, secrets left out.
    pub command: Vec<String>,
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
        let plan =
            Plan { cells: Vec::new(), repeats: Repeats::Times(1), device: Some(self.plan.clone()), ladder: None };
        let mut record = begin(plan, self.command.clone(), self.peers);
        record.caveats.extend(left_out(&self.plan));
        let mut method = Device::new(self.plan.clone(), self.calibration);
        let (mut failure, mut repeated) = (None, 0);
        while let Some(trial) = method.next() {
            on_event(DeviceEvent::TrialBegins { trial: &trial, known: method.progress() });
            match self.sound(&trial, &mut repeated, on_event, &mut cancel).await {
                Ok(result) => {
                    method.record(&result);
                    record.frame_trials.push(result);
                    record.outcome = Some(method.outcome().clone());
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
        if repeated > 0 {
            let text = format!(
                "{repeated} of {} trials were run again because something held up the tester: measure on a quieter machine \
                 to be done sooner",
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

    /// Runs a trial, and again if the tester spoilt it; what spoilt the last one stays with it. Counts the trials that were
    /// run again.
    async fn sound(
        &mut self,
        trial: &FrameTrial,
        repeated: &mut usize,
        on_event: &mut dyn FnMut(DeviceEvent<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Result<FrameTrialResult, RunError> {
        // Plain generating is asked for once: what was spoilt is said, and not sent again.
        let once = matches!(self.plan.test, DeviceTest::Frames { .. });
        let mut retries = if once { 0 } else { SPOILT_RETRIES };
        loop {
            let mut result = self.once(trial, cancel).await?;
            let Some(reason) = spoilt(&result) else { return Ok(result) };
            if retries == 0 {
                result.caveats.push(reason);
                return Ok(result);
            }
            *repeated += usize::from(retries == SPOILT_RETRIES);
            retries -= 1;
            on_event(DeviceEvent::Repeating { reason: &reason });
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
