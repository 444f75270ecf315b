//! Keeps a run while it is in progress.

use linerate_model::{Record, RunSummary, TrialResult};
use linerate_store::{Ending, LiveRun, Store, StoreError};

/// A place that keeps runs, attempt by attempt.
pub trait Keep: Sync {
    /// Begins to keep a run. Attempts that `record` has already are not kept.
    ///
    /// # Errors
    /// The place cannot be written.
    fn begin<'a>(&'a self, record: &Record) -> Result<Box<dyn KeepRun + 'a>, StoreError>;
}

/// A run that is being kept.
pub trait KeepRun {
    /// Keeps the next attempt, and the summary of the run with it.
    ///
    /// # Errors
    /// The attempt could not be kept.
    fn trial(&mut self, result: &TrialResult, summary: &RunSummary) -> Result<(), StoreError>;

    /// Ends the run.
    ///
    /// # Errors
    /// The end could not be kept.
    fn end(self: Box<Self>, record: &Record, ending: Ending) -> Result<(), StoreError>;
}

impl Keep for Store {
    fn begin<'a>(&'a self, record: &Record) -> Result<Box<dyn KeepRun + 'a>, StoreError> {
        Ok(Box::new(Self::begin(self, record)?))
    }
}

impl KeepRun for LiveRun<'_> {
    fn trial(&mut self, result: &TrialResult, summary: &RunSummary) -> Result<(), StoreError> {
        Self::trial(self, result, summary)
    }

    fn end(self: Box<Self>, record: &Record, ending: Ending) -> Result<(), StoreError> {
        Self::end(*self, record, ending)
    }
}

/// Kept part of a run. A place that fails is not used again, and the run goes on: the measurements can still be shown.
pub(crate) struct RunKeeper<'a> {
    place: Option<&'a dyn Keep>,
    live: Option<Box<dyn KeepRun + 'a>>,
    /// Number of the record's attempts that are kept.
    kept: usize,
    failure: Option<StoreError>,
}

impl<'a> RunKeeper<'a> {
    /// Keeps a run in `place`; `None` keeps nothing. A resumed run has begun already.
    pub(crate) fn new(place: Option<&'a dyn Keep>, live: Option<Box<dyn KeepRun + 'a>>, record: &Record) -> Self {
        let kept = if live.is_some() { record.trials.len() } else { 0 };
        Self { place, live, kept, failure: None }
    }

    /// Keeps the attempts of `record` that are not kept yet, with a summary of the run. A run begins with its first
    /// attempt that counted something; a run without one leaves nothing.
    pub(crate) fn trials(&mut self, record: &Record, summary: impl FnOnce() -> RunSummary) {
        let Some(place) = self.place else { return };
        if self.live.is_none() && record.trials.iter().all(|result| result.failure().is_some()) {
            return;
        }
        if let Err(error) = self.write(place, record, &summary()) {
            self.failure = Some(error);
            self.place = None;
            self.live = None;
        }
    }

    fn write(&mut self, place: &'a dyn Keep, record: &Record, summary: &RunSummary) -> Result<(), StoreError> {
        let live = match &mut self.live {
            Some(live) => live,
            empty => empty.insert(place.begin(record)?),
        };
        while let Some(result) = record.trials.get(self.kept) {
            live.trial(result, summary)?;
            self.kept += 1;
        }
        Ok(())
    }

    /// Ends the run. Returns the error if it could not be kept.
    pub(crate) fn end(mut self, record: &Record, ending: Ending) -> Option<StoreError> {
        let result = self.live.take().map(|live| live.end(record, ending));
        self.failure.or(result.and_then(Result::err))
    }
}
