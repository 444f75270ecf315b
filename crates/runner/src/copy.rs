//! The loop of a copy: run it through the agents as often as asked, keep each, say what they amount to.

use crate::copy_trial;
use crate::run::begin;
use crate::{Asked, Outcome, Peers, RunError};
use linerate_method::copy;
use linerate_model::{Caveat, CaveatKind, CopyPlan, CopyProgress, HostName, Password, Plan, Record, Repeats};
use linerate_store::{Store, StoreError};
use tokio::sync::watch;

/// What happens while copies go on.
#[derive(Debug)]
pub enum CopyEvent<'a> {
    /// A copy begins: `done` of `total` are behind.
    Begins {
        /// Copies done.
        done: u32,
        /// Copies there will be.
        total: u32,
    },
    /// A host makes itself ready.
    Preparing {
        /// The host.
        host: &'a HostName,
        /// What it does.
        doing: &'a str,
    },
    /// All hosts are ready; so much there is to copy, at all destinations together.
    Starts {
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// How far all destinations are together.
    Progress(CopyProgress),
}

/// A copy to make.
pub struct CopyRun<'a> {
    /// What to copy.
    pub plan: CopyPlan,
    /// For the file server in it, where that wants one. No record has it.
    pub password: Option<Password>,
    /// How often.
    pub repeats: u32,
    /// What it is asked by.
    pub asked: Asked,
    /// Put the verdict to the test: copy again without the storage that it hangs on.
    pub prove: bool,
    /// The agents.
    pub peers: &'a Peers,
    /// Where the record is kept, brought up to date after each copy; none keeps nothing.
    pub store: Option<&'a Store>,
}

impl CopyRun<'_> {
    /// Copies as often as asked, to the first failure, or until `cancel` turns true.
    pub async fn execute(
        mut self,
        on_event: &mut dyn FnMut(CopyEvent<'_>),
        mut cancel: watch::Receiver<bool>,
    ) -> Outcome {
        let plan = Plan {
            cells: Vec::new(),
            repeats: Repeats::Times(self.repeats),
            device: None,
            ladder: None,
            curve: None,
            copy: Some(self.plan.clone()),
        };
        let mut record = begin(plan, self.asked.clone(), self.peers);
        let plan = self.plan.clone();
        let mut failure = self.copies(&plan, &mut record, on_event, &mut cancel).await;
        let test = record.copy().filter(|_| self.prove && failure.is_none());
        if let Some(test) = test.and_then(|(plan, found)| copy::counterproof(plan, found)) {
            let plan = test.plan.clone();
            record.copy_tests.push(test);
            failure = self.copies(&plan, &mut record, on_event, &mut cancel).await;
        }
        if !record.copy_trials.is_empty() {
            let complete = failure.is_none();
            failure = failure.or(self.keep(|store| store.finish(&record, complete)));
        }
        Outcome { record, failure }
    }

    /// Copies as `plan` has it, which is that of the record's last test, if there is one, and else of the record itself.
    async fn copies(
        &mut self,
        plan: &CopyPlan,
        record: &mut Record,
        on_event: &mut dyn FnMut(CopyEvent<'_>),
        cancel: &mut watch::Receiver<bool>,
    ) -> Option<RunError> {
        let mut failure = None;
        for done in 0..self.repeats {
            on_event(CopyEvent::Begins { done, total: self.repeats });
            let copied = tokio::select! {
                copied = copy_trial::run(plan, self.password.as_ref(), self.peers, on_event) => copied,
                Ok(_) = cancel.wait_for(|asked| *asked) => Err(RunError::Interrupted),
            };
            match copied {
                Ok(trial) => {
                    match record.copy_tests.last_mut() {
                        Some(test) => test.trials.push(trial),
                        None => record.copy_trials.push(trial),
                    }
                    record.outcome = copy::outcome(record).map(Into::into);
                    record.caveats = copy::doubts(&self.plan, &record.hosts, &record.copy_trials);
                    let first = record.copy_trials.len() == 1 && record.copy_tests.is_empty();
                    failure = failure.or(self.keep(|store| {
                        if first {
                            store.begin(record)?;
                        }
                        store.finish(record, false)
                    }));
                }
                Err(error) => {
                    record.caveats.push(Caveat::new(CaveatKind::Interrupted, format!("the run ended early: {error}")));
                    return Some(error);
                }
            }
        }
        failure
    }

    /// Does something to the store, if there is one. A store that fails is not used again, and the run goes on.
    fn keep(&mut self, action: impl FnOnce(&Store) -> Result<(), StoreError>) -> Option<RunError> {
        let error = action(self.store?).err()?;
        self.store = None;
        Some(error.into())
    }
}
