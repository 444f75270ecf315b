//! Keeps a run in the store as it goes on.

use linerate_model::{Record, RunSummary};
use linerate_store::{Ending, LiveRun, Store, StoreError};

/// Where a run is kept. A store that fails is not used again, and the run goes on: what is measured can still be shown.
pub(crate) struct Keep<'a> {
    store: Option<&'a Store>,
    live: Option<LiveRun<'a>>,
    /// How many of the record's attempts are stored.
    stored: usize,
    failure: Option<StoreError>,
}

impl<'a> Keep<'a> {
    /// Keeps a run in `store`; none keeps nothing. A run that is resumed has its row already.
    pub(crate) fn new(store: Option<&'a Store>, live: Option<LiveRun<'a>>, record: &Record) -> Self {
        let stored = if live.is_some() { record.trials.len() } else { 0 };
        Self { store, live, stored, failure: None }
    }

    /// Stores the attempts of `record` that are not stored yet. A run's row comes with its first attempt that counted something: a
    /// run that never did leaves none. `summary` says what the run amounts to with them.
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
            none => none.insert(store.begin(record)?),
        };
        while let Some(result) = record.trials.get(self.stored) {
            live.trial(result, summary)?;
            self.stored += 1;
        }
        Ok(())
    }

    /// Ends the run's row. Returns why the run could not be kept; none if it was.
    pub(crate) fn end(mut self, record: &Record, ending: Ending) -> Option<StoreError> {
        let ended = self.live.take().map(|live| live.end(record, ending));
        self.failure.or(ended.and_then(Result::err))
    }
}
