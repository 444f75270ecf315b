//! Stores the parts of records as they are published. A part is acknowledged after it is on disk, so that it is stored at
//! least once; the store keeps each part once.

use crate::metrics::{Family, Metrics};
use crate::record_parts::RecordPart;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use linerate_bus::{Bus, BusError, Member};
use linerate_engine::Report;
use linerate_store::{FleetHost, IngestPart, PartOutcome, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Name of the consumer that all ingests share.
const CONSUMER: &str = "store";

/// Parts that are stored at a time.
const BATCH: usize = 512;

/// Longest wait for a batch to fill.
const WAIT: Duration = Duration::from_millis(250);

/// Time in which a part must be stored before it is delivered again.
const ACK_WAIT: Duration = Duration::from_secs(60);

/// Pause after the store refused a part.
const PAUSE: Duration = Duration::from_secs(2);

/// Time from one update of the fleet's hosts to the next.
const HOSTS: Duration = Duration::from_secs(30);

/// Stores the parts of records until `stop` turns true.
///
/// # Errors
/// The streams of the fleet are missing.
pub async fn ingest(
    bus: Bus,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    report: Report,
    stop: watch::Receiver<bool>,
) -> Result<(), BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed("reading records", error);
    let config = pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: 10_000,
        ..pull::Config::default()
    };
    let stream = bus.stream("records").await?;
    let consumer = stream.get_or_create_consumer(CONSUMER, config).await.map_err(|error| failed(&error))?;
    // The next batch is read while one is stored.
    let (queue, batches) = mpsc::channel(1);
    let reading = read_batches(&consumer, queue, &report, stop);
    let storing = store_batches(&bus, &store, batches, &metrics, &report);
    tokio::join!(reading, storing);
    Ok(())
}

/// A message and the part in it, or the reason why it cannot be read.
type Arrived = (Message, Result<RecordPart, String>);

/// Reads batches until `stop` turns true.
async fn read_batches(
    consumer: &PullConsumer,
    queue: mpsc::Sender<Vec<Arrived>>,
    report: &Report,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let batch = tokio::select! {
            batch = next_batch(consumer) => batch,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        match batch {
            Ok(messages) => {
                let decoding = tokio::task::spawn_blocking(move || messages.into_iter().map(decode).collect());
                // One that cannot be passed on is delivered again.
                let Ok(batch) = decoding.await else { continue };
                if queue.send(batch).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                report.line(&format!("no records can be read: {error}"));
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn decode(message: Message) -> Arrived {
    let part = serde_json::from_slice(&message.payload).map_err(|error| error.to_string());
    (message, part)
}

/// Stores batches and the hosts of the fleet until no more batches are read.
async fn store_batches(
    bus: &Bus,
    store: &Arc<Store>,
    mut batches: mpsc::Receiver<Vec<Arrived>>,
    metrics: &Metrics,
    report: &Report,
) {
    let mut hosts_at = tokio::time::Instant::now();
    loop {
        if hosts_at <= tokio::time::Instant::now() {
            if let Err(error) = store_hosts(bus, store).await {
                report.line(&format!("the hosts of the fleet are not stored: {error}"));
            }
            hosts_at = tokio::time::Instant::now() + HOSTS;
        }
        let Some(batch) = batches.recv().await else { return };
        store_batch(store, batch, metrics, report).await;
    }
}

async fn next_batch(consumer: &PullConsumer) -> Result<Vec<Message>, BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed("reading records", error);
    let batch = consumer.fetch().max_messages(BATCH).expires(WAIT * 20).messages().await;
    let mut batch = batch.map_err(|error| failed(&error))?;
    let mut messages = Vec::new();
    if let Some(message) = batch.next().await {
        messages.push(message.map_err(|error| failed(&error))?);
        // The first part of a quiet fleet does not wait for others.
        while let Ok(Some(next)) = tokio::time::timeout(WAIT, batch.next()).await {
            messages.push(next.map_err(|error| failed(&error))?);
            if messages.len() >= BATCH {
                break;
            }
        }
    }
    Ok(messages)
}

/// Result of storing one part.
enum Stored {
    Yes,
    /// It was stored before.
    Duplicate,
    /// The part cannot be read, or is of another version.
    Unreadable(String),
    /// An earlier part of the record is missing; it may be on its way.
    TooEarly,
    /// The store cannot be written now, or refuses the part.
    Failed(String),
}

async fn store_batch(store: &Arc<Store>, batch: Vec<Arrived>, metrics: &Metrics, report: &Report) {
    if batch.is_empty() {
        return;
    }
    let (messages, parts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    let outcomes = tokio::task::spawn_blocking({
        let store = Arc::clone(store);
        move || store_arrived(&store, &parts)
    })
    .await
    .unwrap_or_default();
    let mut refusal = None;
    let mut is_refused = true;
    for (message, outcome) in messages.iter().zip(outcomes) {
        let counted = match &outcome {
            Stored::Yes => "stored",
            Stored::Duplicate => "duplicate",
            Stored::TooEarly | Stored::Unreadable(_) | Stored::Failed(_) => "failed",
        };
        metrics.add(Family::Records, &[counted], 1.0);
        is_refused &= matches!(outcome, Stored::Failed(_));
        let acknowledged = match outcome {
            Stored::Yes | Stored::Duplicate => message.ack().await,
            Stored::TooEarly => message.ack_with(AckKind::Nak(Some(PAUSE))).await,
            Stored::Unreadable(error) => {
                report.line(&format!("{} cannot be stored and is left out: {error}", message.subject));
                message.ack_with(AckKind::Term).await
            }
            Stored::Failed(error) => {
                refusal = Some(error);
                message.ack_with(AckKind::Nak(Some(PAUSE))).await
            }
        };
        // One that is not acknowledged is delivered again, and stored once.
        drop(acknowledged);
    }
    if let Some(error) = refusal {
        report.line(&format!("records wait in NATS: {error}"));
    }
    // A store that took other parts needs no time to recover.
    if is_refused {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Stores the parts that can be read.
fn store_arrived(store: &Store, arrived: &[Result<RecordPart, String>]) -> Vec<Stored> {
    let parts: Vec<_> = arrived.iter().flatten().map(RecordPart::as_ingested).collect();
    let mut stored = store_parts(store, &parts).into_iter();
    let mut outcomes = Vec::with_capacity(arrived.len());
    for part in arrived {
        outcomes.push(match part {
            Ok(_) => stored.next().unwrap_or(Stored::TooEarly),
            Err(error) => Stored::Unreadable(error.clone()),
        });
    }
    outcomes
}

/// Stores parts in one transaction. If the database refuses one of them, the others are stored without it.
fn store_parts(store: &Store, parts: &[IngestPart<'_>]) -> Vec<Stored> {
    match store.ingest_parts(parts) {
        Ok(outcomes) => outcomes.into_iter().map(Stored::from).collect(),
        Err(StoreError::Database { .. }) if parts.len() > 1 => {
            let (first, second) = parts.split_at(parts.len() / 2);
            let mut stored = store_parts(store, first);
            stored.extend(store_parts(store, second));
            stored
        }
        Err(error) => parts.iter().map(|_| Stored::Failed(error.to_string())).collect(),
    }
}

impl From<PartOutcome> for Stored {
    fn from(outcome: PartOutcome) -> Self {
        match outcome {
            PartOutcome::Stored => Self::Yes,
            PartOutcome::Duplicate => Self::Duplicate,
            PartOutcome::TooEarly => Self::TooEarly,
        }
    }
}

/// Stores the agents of the fleet with their labels, by which pages group results.
async fn store_hosts(bus: &Bus, store: &Arc<Store>) -> Result<(), String> {
    let members = bus.members().await.map_err(|error| error.to_string())?;
    let presences = bus.presences().await.map_err(|error| error.to_string())?;
    let seen: std::collections::BTreeMap<_, _> =
        presences.into_iter().map(|presence| (presence.value.name, presence.published_unix_ns)).collect();
    let host = |member: Member| FleetHost {
        seen_unix_ns: seen.get(&member.name).copied().unwrap_or_default(),
        name: member.name.to_string(),
        labels: member.labels,
    };
    let hosts: Vec<FleetHost> = members.into_iter().map(host).collect();
    let store = Arc::clone(store);
    let stored = tokio::task::spawn_blocking(move || store.put_hosts(&hosts)).await;
    stored.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Plan, Record, RecordId, Repeats};
    use linerate_testsuite::server_test;
    use linerate_testsuite::servers::Postgres;

    fn begin(id: String) -> Result<RecordPart, String> {
        Ok(RecordPart::Begin(Box::new(Record::new(RecordId(id), Plan::sweep(Vec::new(), Repeats::Times(1))))))
    }

    #[server_test(Program("pg_ctlcluster|postgres"))]
    fn parts_that_are_refused_or_unreadable_do_not_stop_the_others() {
        let server = Postgres::start_with_thread();
        let url = server.create_database("fleet");
        let store = Store::open(&url.parse().expect("a URL")).expect("opens");
        // No index of PostgreSQL takes a name as long as this one. Random digits are not compressed.
        let long: String = (0..1_000).map(|_| format!("{:016x}", rand::random::<u64>())).collect();
        let mut parts: Vec<_> = (0..20).map(|number| begin(format!("run-{number}"))).collect();
        parts.insert(7, begin(long));
        parts.insert(13, Err("no JSON".to_owned()));
        let stored = store_arrived(&store, &parts);
        for (number, stored) in stored.iter().enumerate() {
            match number {
                7 => assert!(matches!(stored, Stored::Failed(_)), "{number}"),
                13 => assert!(matches!(stored, Stored::Unreadable(_)), "{number}"),
                _ => assert!(matches!(stored, Stored::Yes), "{number}"),
            }
        }
        assert_eq!(server.sql("fleet", "SELECT count(*) FROM run"), "20");
        let again = store_arrived(&store, &parts[8..12]);
        assert!(again.iter().all(|stored| matches!(stored, Stored::Duplicate)));
    }
}
