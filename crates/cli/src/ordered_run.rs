//! A run that an order of a fleet asks for: kept by the fleet's stream, and shown by nobody here.

use linerate_fleet::RecordPublisher;
use linerate_model::{Record, RecordId};
use linerate_runner::Resumed;
use std::sync::{Arc, Mutex, PoisonError};

/// A run that an order of a fleet asks for.
#[derive(Debug, Clone)]
pub(crate) struct OrderedRun {
    /// Name of the record.
    pub(crate) id: RecordId,
    /// Whether another controller may have begun the run.
    pub(crate) takes_over: bool,
    /// Record of the attempts so far.
    pub(crate) begun: Option<Record>,
    /// Place that keeps the run.
    pub(crate) publisher: Arc<RecordPublisher>,
    /// Record of the run, once it has ended.
    ended: Arc<Mutex<Option<Record>>>,
}

impl OrderedRun {
    /// A run that has not ended.
    pub(crate) fn new(id: RecordId, takes_over: bool, begun: Option<Record>, publisher: Arc<RecordPublisher>) -> Self {
        Self { id, takes_over, begun, publisher, ended: Arc::default() }
    }

    /// Returns the attempts so far, to go on with. `None` if nothing was kept yet.
    pub(crate) fn resumed(&self) -> Option<Resumed<'_>> {
        let record = self.begun.clone()?;
        let attempts = u32::try_from(record.trials.len()).unwrap_or(u32::MAX);
        let live = self.publisher.resume(&self.id, attempts);
        Some(Resumed { record, live })
    }

    /// Takes the record of the run at its end.
    pub(crate) fn end(&self, record: Record) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }

    /// Returns the record of the run. `None` if it did not come to an end.
    pub(crate) fn record(&self) -> Option<Record> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
