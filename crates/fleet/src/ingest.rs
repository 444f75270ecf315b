//! Stores the parts of records as they are published. A part is acknowledged after it is on disk, so that it is stored at
//! least once; the store keeps each part once.

use crate::metrics::{Family, Metrics};
use crate::record_parts::RecordPart;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt as _;
use linerate_bus::{Bus, BusError, Member};
use linerate_engine::Report;
use linerate_store::{FleetHost, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Name of the consumer that all ingests share.
const CONSUMER: &str = "store";

/// Parts that are stored at a time.
const BATCH: usize = 256;

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
    mut stop: watch::Receiver<bool>,
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
    let mut hosts_at = tokio::time::Instant::now();
    loop {
        if hosts_at <= tokio::time::Instant::now() {
            if let Err(error) = store_hosts(&bus, &store).await {
                report.line(&format!("the hosts of the fleet are not stored: {error}"));
            }
            hosts_at = tokio::time::Instant::now() + HOSTS;
        }
        let batch = tokio::select! {
            batch = next_batch(&consumer) => batch,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        match batch {
            Ok(messages) => store_batch(&store, messages, &metrics, &report).await,
            Err(error) => {
                report.line(&format!("no records can be read: {error}"));
                tokio::time::sleep(PAUSE).await;
            }
        }
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
    /// The store cannot be written now.
    Failed(StoreError),
}

async fn store_batch(store: &Arc<Store>, messages: Vec<Message>, metrics: &Metrics, report: &Report) {
    let payloads: Vec<_> = messages.iter().map(|message| message.payload.clone()).collect();
    let outcomes = tokio::task::spawn_blocking({
        let store = Arc::clone(store);
        move || payloads.iter().map(|payload| store_part(&store, payload)).collect::<Vec<_>>()
    })
    .await
    .unwrap_or_default();
    let mut refusal = None;
    for (message, outcome) in messages.iter().zip(outcomes) {
        let counted = match &outcome {
            Stored::Yes => "stored",
            Stored::Duplicate => "duplicate",
            Stored::TooEarly | Stored::Unreadable(_) | Stored::Failed(_) => "failed",
        };
        metrics.add(Family::Records, &[counted], 1.0);
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
        tokio::time::sleep(PAUSE).await;
    }
}

fn store_part(store: &Store, payload: &[u8]) -> Stored {
    let part = match serde_json::from_slice(payload) {
        Ok(part) => part,
        Err(error) => return Stored::Unreadable(error.to_string()),
    };
    let result = match part {
        RecordPart::Begin(record) => store.ingest_begin(&record),
        RecordPart::Trial { record, number, result, summary } => store.ingest_trial(&record, number, &result, &summary),
        RecordPart::End { record, attempts, ending } => store.ingest_end(&record, attempts, ending.into()),
    };
    match result {
        Ok(true) => Stored::Yes,
        Ok(false) => Stored::Duplicate,
        Err(StoreError::Unknown { .. } | StoreError::TrialOutOfOrder { .. }) => Stored::TooEarly,
        Err(error) => Stored::Failed(error),
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
