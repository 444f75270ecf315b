//! Tells the programs that follow a run, as `linerate view` does, how it goes.

use linerate_runner::{Event, Telling};
use linerate_store::{FeedWriter, Store};
use linerate_units::Nanos;

/// Length of an interval: hosts tell their progress every 200 ms.
const INTERVAL: Nanos = Nanos::from_millis(400);

/// The feed of one run. It ends when this is dropped.
pub(crate) struct Feed {
    telling: Telling,
    /// None before the run has a name.
    writer: Option<FeedWriter>,
}

impl Feed {
    /// A feed that begins with the run.
    pub(crate) fn new() -> Self {
        Self { telling: Telling::new(Some(INTERVAL)), writer: None }
    }

    /// Tells of an event of a run that is kept in `store`.
    pub(crate) fn note(&mut self, store: &Store, event: &Event<'_>) {
        if let Event::Started { record } = event {
            self.writer = Some(store.feed(&record.id));
        }
        if let Some(writer) = &mut self.writer {
            self.telling.take(event).into_iter().for_each(|told| writer.tell(told));
        }
    }
}
