//! Records on their way to the store: published part by part while the run goes on.
//!
//! A part is in the stream before the next trial's end is published, so that a run outlives its controller. Each part
//! has a name of its own, by which the server drops it if it comes twice.

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use bytes::Bytes;
use linerate_bus::{Bus, BusError};
use linerate_model::{Record, RecordId, RunSummary, TrialResult};
use linerate_runner::{Keep, KeepRun};
use linerate_store::{Ending, IngestPart, StoreError};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Pause before a part is published again.
const PAUSE: Duration = Duration::from_millis(500);

/// A part of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordPart {
    /// The record as its run began, without attempts.
    Begin(Box<Record>),
    /// One attempt.
    Trial {
        /// Name of the record.
        record: RecordId,
        /// Number of the attempt in the record.
        number: u32,
        /// The attempt.
        result: Box<TrialResult>,
        /// Summary of the run with it.
        summary: RunSummary,
    },
    /// The record at the end of its run, without attempts.
    End {
        /// The record.
        record: Box<Record>,
        /// Number of its attempts.
        attempts: u32,
        /// Reason of the end.
        ending: RunEnding,
    },
}

impl RecordPart {
    /// Returns the part as the store takes it.
    pub(crate) fn as_ingested(&self) -> IngestPart<'_> {
        match self {
            Self::Begin(record) => IngestPart::Begin(record),
            Self::Trial { record, number, result, summary } => {
                IngestPart::Trial { record, number: *number, result, summary }
            }
            Self::End { record, attempts, ending } => {
                IngestPart::End { record, attempts: *attempts, ending: (*ending).into() }
            }
        }
    }
}

/// Reason for the end of a run, as in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunEnding {
    /// The run was complete.
    Finished,
    /// It was stopped.
    Interrupted,
    /// A trial failed.
    Failed,
}

impl From<Ending> for RunEnding {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Finished => Self::Finished,
            Ending::Interrupted => Self::Interrupted,
            Ending::Failed => Self::Failed,
        }
    }
}

impl From<RunEnding> for Ending {
    fn from(ending: RunEnding) -> Self {
        match ending {
            RunEnding::Finished => Self::Finished,
            RunEnding::Interrupted => Self::Interrupted,
            RunEnding::Failed => Self::Failed,
        }
    }
}

/// A message that waits to be published.
struct Outgoing {
    subject: String,
    id: String,
    payload: Bytes,
}

/// Publishes parts of records in their order, and repeats each until the server has kept it.
#[derive(Debug)]
pub struct RecordPublisher {
    subject_of: linerate_bus::Subjects,
    queue: mpsc::UnboundedSender<Outgoing>,
    waiting: watch::Sender<usize>,
    refusal: Mutex<Option<String>>,
}

impl RecordPublisher {
    /// Creates a publisher and the task that publishes.
    pub fn new(bus: &Bus) -> (std::sync::Arc<Self>, impl Future<Output = ()> + use<>) {
        let (queue, outgoing) = mpsc::unbounded_channel();
        let publisher = std::sync::Arc::new(Self {
            subject_of: bus.subjects().clone(),
            queue,
            waiting: watch::Sender::new(0),
            refusal: Mutex::default(),
        });
        let task = publish_all(bus.clone(), std::sync::Arc::downgrade(&publisher), outgoing);
        (publisher, task)
    }

    /// Waits until all parts are kept by the server.
    pub async fn flush(&self) {
        // This fails only if the sender is gone, and the sender is part of `self`.
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting == 0).await;
    }

    fn send(&self, record: &RecordId, name: &str, part: &RecordPart) {
        let payload = serde_json::to_vec(part).expect("a record has text keys only");
        let subject = self.subject_of.record(&record.0, name);
        let id = format!("{}.{name}", record.0);
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _ = self.queue.send(Outgoing { subject, id, payload: payload.into() });
    }
}

async fn publish_all(
    bus: Bus,
    publisher: std::sync::Weak<RecordPublisher>,
    mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
) {
    while let Some(message) = outgoing.recv().await {
        while let Err(error) = publish(&bus, &message).await {
            // A full disk or a lost server: the measurement stays here until it is kept.
            if let Some(publisher) = publisher.upgrade() {
                *publisher.refusal.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error.to_string());
            }
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(publisher) = publisher.upgrade() {
            *publisher.refusal.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
            publisher.waiting.send_modify(|waiting| *waiting -= 1);
        }
    }
}

async fn publish(bus: &Bus, message: &Outgoing) -> Result<(), BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("publishing {}", message.subject), error);
    let mut headers = HeaderMap::new();
    headers.insert(NATS_MESSAGE_ID, message.id.as_str());
    let context = bus.jetstream();
    let sent = context.publish_with_headers(message.subject.clone(), headers, message.payload.clone()).await;
    sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error)).map(drop)
}

impl RecordPublisher {
    /// Returns why the server does not keep the oldest part. `None` if all is well.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Goes on with a record of which `attempts` are published.
    pub fn resume<'a>(&'a self, record: &RecordId, attempts: u32) -> Box<dyn KeepRun + 'a> {
        Box::new(PublishedRun { publisher: self, id: record.clone(), attempts })
    }
}

/// A run that is published part by part.
struct PublishedRun<'a> {
    publisher: &'a RecordPublisher,
    id: RecordId,
    attempts: u32,
}

impl Keep for RecordPublisher {
    fn begin<'a>(&'a self, record: &Record) -> Result<Box<dyn KeepRun + 'a>, StoreError> {
        let begun = Record { trials: Vec::new(), ..record.clone() };
        self.send(&record.id, "begin", &RecordPart::Begin(Box::new(begun)));
        Ok(self.resume(&record.id, 0))
    }
}

impl KeepRun for PublishedRun<'_> {
    fn trial(&mut self, result: &TrialResult, summary: &RunSummary) -> Result<(), StoreError> {
        let number = self.attempts;
        let record = self.id.clone();
        let part = RecordPart::Trial { record, number, result: Box::new(result.clone()), summary: summary.clone() };
        self.publisher.send(&self.id, &format!("trial-{number}"), &part);
        self.attempts += 1;
        Ok(())
    }

    fn end(self: Box<Self>, record: &Record, ending: Ending) -> Result<(), StoreError> {
        let ended = Record { trials: Vec::new(), ..record.clone() };
        self.publisher.send(
            &self.id,
            "end",
            &RecordPart::End { record: Box::new(ended), attempts: self.attempts, ending: ending.into() },
        );
        Ok(())
    }
}

/// The published parts of one record.
#[derive(Debug, Default)]
pub struct PublishedRecord {
    /// The record with its attempts so far. `None` before its first attempt.
    pub record: Option<Record>,
    /// Whether its run has ended.
    pub is_over: bool,
}

/// Reads the published parts of a record.
///
/// # Errors
/// The stream cannot be read.
pub async fn published(bus: &Bus, id: &RecordId) -> Result<PublishedRecord, BusError> {
    let mut published = PublishedRecord::default();
    for kept in bus.all_of::<RecordPart>("records", bus.subjects().record(&id.0, "*")).await? {
        match kept.value {
            RecordPart::Begin(record) => published.record = Some(*record),
            RecordPart::Trial { result, .. } => {
                if let Some(record) = &mut published.record {
                    record.trials.push(*result);
                }
            }
            RecordPart::End { .. } => published.is_over = true,
        }
    }
    Ok(published)
}
