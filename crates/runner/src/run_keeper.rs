//! Stores a run while it is in progress.

use linerate_model::{Record, RunSummary};
use linerate_store::{Ending, LiveRun, Store, StoreError};

/// Stored part of a run. A store that fails is not used again, and the run goes on: the measurements can still be
/// shown.
pub(crate) struct RunKeeper<'a> {
    store: Option<&'a Store>,
    live: Option<LiveRun<'a>>,
    /// Number of the record's attempts that are stored.
    stored: usize,
    failure: Option<StoreError>,
}

impl<'a> RunKeeper<'a> {
    /// Keeps a run in `store`; `None` keeps nothing. A resumed run has its row already.
    pub(crate) fn new(store: Option<&'a Store>, live: Option<LiveRun<'a>>, record: &Record) -> Self {
        let stored = if live.is_some() { record.trials.len() } else { 0 };
        Self { store, live, stored, failure: None }
    }

    /// Stores the attempts of `record` that are not stored yet, with a summary of the run. A run's row is written with
    /// its first attempt that counted something; a run without one leaves no row.
    pub(crate) fn trials(&mut self, record: &Record, summary: impl FnOnce() -> RunSummary) {
        let Some(store) = self.store else { return };
        if self.live.is_none() && record.trials.iter().all(|result| result.failure().is_some()) {
            return;
        }
        if let Err(error) = self.write(store, record, &summary()) {
            self.failure = Some(error);
            self.store = None;
            self.live = None;
        }
    }

    fn write(&mut self, store: &'a Store, record: &Record, summary: &RunSummary) -> Result<(), StoreError> {
        let live = match &mut self.live {
            Some(live) => live,
            empty => empty.insert(store.begin(record)?),
        };
        while let Some(result) = record.trials.get(self.stored) {
            live.trial(result, summary)?;
            self.stored += 1;
        }
        Ok(())
    }

    /// Ends the run's row. Returns the error if the run could not be kept.
    pub(crate) fn end(mut self, record: &Record, ending: Ending) -> Option<StoreError> {
        let result = self.live.take().map(|live| live.end(record, ending));
        self.failure.or(result.and_then(Result::err))
    }
}
