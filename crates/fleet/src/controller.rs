//! A controller takes orders and runs their trials through the agents.
//!
//! Any number of controllers share the orders. An order that its controller does not finish is delivered to another one,
//! which continues the run under the same name.

use crate::lease::{LeaseView, watch_lease};
use crate::orders::{OrderOutcome, PairEnd, PublishedOrder};
use crate::record_parts::{RecordPublisher, published};
use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{AckKind, Message};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use linerate_bus::{Bus, BusError};
use linerate_engine::Report;
use linerate_model::{Record, RecordId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Name of the consumer that all controllers share.
const CONSUMER: &str = "controllers";

/// Time without a sign of the controller after which an order is delivered to another one.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// Time from one sign to the next.
const SIGN: Duration = Duration::from_secs(8);

/// Pause before an order is delivered again that cannot begin yet.
const LATER: Duration = Duration::from_secs(1);

/// Deliveries of an order after which it is given up: whatever it does ends its controllers. An order that waits for a
/// scheduler is delivered every second.
const MOST_DELIVERIES: i64 = 200;

/// Time that another controller has to continue an order whose slip has passed: it may have been begun in time.
const GRACE_S: u64 = 3 * ACK_WAIT.as_secs();

/// Trials of one controller at a time.
const MOST_TRIALS: usize = 64;

/// A run that an order asks for.
pub struct OrderedRun<'a> {
    /// The order.
    pub order: &'a linerate_schedule::Order,
    /// Name of the record.
    pub id: &'a RecordId,
    /// Fence of the sessions.
    pub fence: u64,
    /// Whether another controller may have begun the run.
    pub takes_over: bool,
    /// Record of the attempts so far.
    pub begun: Option<Record>,
    /// Place that keeps the run.
    pub publisher: Arc<RecordPublisher>,
}

/// Runs commands of linerate between agents of the fleet.
pub trait Measure {
    /// Runs the test of an order to its end and returns the record.
    ///
    /// # Errors
    /// Nothing was measured; the text says why.
    fn measure<'a>(&'a self, run: OrderedRun<'a>) -> LocalBoxFuture<'a, Result<Record, String>>;
}

/// Takes orders and runs them until `stop` turns true. Trials in progress are then finished.
///
/// # Errors
/// The streams of the fleet are missing.
pub async fn control(
    bus: Bus,
    measure: &dyn Measure,
    report: Report,
    mut stop: watch::Receiver<bool>,
) -> Result<(), BusError> {
    let (publisher, publishing) = RecordPublisher::new(&bus);
    let publishing = tokio::spawn(publishing);
    let (lease, lease_view) = watch::channel(None);
    let watching = tokio::spawn(watch_lease(bus.clone(), lease));
    let worker = Controller { bus, measure, publisher, lease: lease_view, report };
    let mut trials = FuturesUnordered::new();
    let mut orders = worker.orders().await?;
    loop {
        tokio::select! {
            Some(()) = trials.next(), if !trials.is_empty() => {}
            message = orders.next(), if trials.len() < MOST_TRIALS => match message {
                Some(Ok(message)) => trials.push(worker.carry_out(message)),
                // The stream ends with the connection; it is opened again.
                Some(Err(_)) | None => {
                    tokio::time::sleep(LATER).await;
                    if let Ok(opened) = worker.orders().await {
                        orders = opened;
                    }
                }
            },
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    while trials.next().await.is_some() {}
    drop(trials);
    worker.publisher.flush().await;
    watching.abort();
    drop(worker);
    let _ = publishing.await;
    Ok(())
}

struct Controller<'a> {
    bus: Bus,
    measure: &'a dyn Measure,
    publisher: Arc<RecordPublisher>,
    lease: watch::Receiver<Option<LeaseView>>,
    report: Report,
}

/// Whether an order may begin.
enum Admission {
    /// With this fence.
    Begin(u64),
    /// Not yet.
    Later,
    /// Never: the term of its scheduler had ended.
    Stale,
    /// Never: its time has passed.
    TooLate,
}

impl Controller<'_> {
    async fn orders(&self) -> Result<pull::Stream, BusError> {
        let failed = |error: &dyn std::fmt::Display| BusError::failed("taking orders", error);
        let config = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: 100_000,
            ..pull::Config::default()
        };
        let stream = self.bus.stream("orders").await?;
        let consumer = stream.get_or_create_consumer(CONSUMER, config).await.map_err(|error| failed(&error))?;
        let messages = consumer.stream().max_messages_per_batch(MOST_TRIALS).messages().await;
        messages.map_err(|error| failed(&error))
    }

    /// Carries out one order, or leaves it to a later delivery.
    async fn carry_out(&self, message: Message) {
        if let Err(error) = self.try_to_carry_out(&message).await {
            self.report.line(&format!("order {}: {error}", message.subject));
            let _ = message.ack_with(AckKind::Nak(Some(LATER))).await;
        }
    }

    async fn try_to_carry_out(&self, message: &Message) -> Result<(), BusError> {
        let failed = |error: &dyn std::fmt::Display| BusError::failed("taking an order", error);
        let info = message.info().map_err(|error| failed(&error))?;
        let Ok(published_order) = serde_json::from_slice::<PublishedOrder>(&message.payload) else {
            self.report.line(&format!("order {}: it cannot be read, and is dropped", message.subject));
            return self.remove(message).await;
        };
        let PublishedOrder { order, record: id, fence } = published_order;
        let fence = match self.admission(&order, fence, info.stream_sequence, info.delivered > 1) {
            Admission::Begin(fence) => fence,
            Admission::Later => {
                return message.ack_with(AckKind::Nak(Some(LATER))).await.map_err(|error| failed(&error));
            }
            Admission::Stale => {
                self.report.line(&format!("order {}: its scheduler had lost the lease, and it is dropped", order.id));
                return self.remove(message).await;
            }
            Admission::TooLate => {
                let reason = "no controller was free in time".to_owned();
                let end = PairEnd::without_record(order, OrderOutcome::Missed { reason });
                return self.finish(message, &id, end).await;
            }
        };
        if info.delivered > MOST_DELIVERIES {
            let reason = format!("given up after {MOST_DELIVERIES} attempts of controllers that did not finish it");
            let end = PairEnd::without_record(order, OrderOutcome::Failed { reason });
            return self.finish(message, &id, end).await;
        }
        let takes_over = info.delivered > 1;
        let begun = if takes_over { published(&self.bus, &id).await? } else { Default::default() };
        let run = OrderedRun {
            order: &order,
            id: &id,
            fence,
            takes_over,
            begun: begun.record,
            publisher: Arc::clone(&self.publisher),
        };
        let measured = self.with_signs(message, self.measure.measure(run)).await;
        self.with_signs(message, self.publisher.flush()).await;
        let end = match measured {
            Ok(record) => PairEnd::of_record(order, &record),
            Err(reason) => PairEnd::without_record(order, OrderOutcome::Failed { reason }),
        };
        self.finish(message, &id, end).await
    }

    fn admission(&self, order: &linerate_schedule::Order, fence: u64, sequence: u64, again: bool) -> Admission {
        let Some(view) = *self.lease.borrow() else { return Admission::Later };
        if !view.is_alive() || fence > view.fence {
            return Admission::Later;
        }
        if fence < view.fence {
            // The new scheduler holds the orders that it found.
            match view.found_orders {
                None => return Admission::Later,
                Some(last) if sequence > last => return Admission::Stale,
                Some(_) => {}
            }
        }
        let grace_s = if again { GRACE_S } else { 0 };
        let is_late = view.clock.unix_s() > order.not_after_unix_s + grace_s;
        if is_late { Admission::TooLate } else { Admission::Begin(view.fence) }
    }

    /// Waits for `work` and lets the server know meanwhile that the order is being carried out.
    async fn with_signs<T>(&self, message: &Message, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                () = tokio::time::sleep(SIGN) => drop(message.ack_with(AckKind::Progress).await),
            }
        }
    }

    /// Publishes the end of an order and takes it off the stream.
    async fn finish(&self, message: &Message, id: &RecordId, end: PairEnd) -> Result<(), BusError> {
        let failed = |error: &dyn std::fmt::Display| BusError::failed("publishing the end of an order", error);
        let subject = self.bus.subjects().pair(&end.order.mesh, &end.order.from.0, &end.order.to.0);
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, format!("{}.pair", id.0).as_str());
        let payload = serde_json::to_vec(&end).map_err(|error| failed(&error))?;
        let sent = self.bus.jetstream().publish_with_headers(subject, headers, payload.into()).await;
        sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error))?;
        self.remove(message).await
    }

    /// Removes an order from the stream, which has those that have not ended.
    async fn remove(&self, message: &Message) -> Result<(), BusError> {
        let failed = |error: &dyn std::fmt::Display| BusError::failed("removing an order", error);
        let sequence = message.info().map_err(|error| failed(&error))?.stream_sequence;
        let stream = self.bus.stream("orders").await?;
        // An order that was removed before, by a controller that did not get to acknowledge it, is gone.
        let removed = stream.delete_message(sequence).await;
        if let Err(error) = removed
            && stream.get_raw_message(sequence).await.is_ok()
        {
            return Err(failed(&error));
        }
        message.double_ack().await.map_err(|error| failed(&error))
    }
}

impl PairEnd {
    fn without_record(order: linerate_schedule::Order, outcome: OrderOutcome) -> Self {
        Self { order, outcome, record: None, headline: None, verdict: None, bytes: 0 }
    }

    fn of_record(order: linerate_schedule::Order, record: &Record) -> Self {
        let summary = linerate_model::RunSummary::of(&record.results);
        let failure = record.trials.iter().find_map(|result| result.failure());
        let outcome = match failure {
            Some(reason) if summary.headline.is_none() => OrderOutcome::Failed { reason: reason.to_owned() },
            _ => OrderOutcome::Measured,
        };
        Self {
            bytes: order.bytes.get(),
            order,
            outcome,
            record: Some(record.id.clone()),
            headline: summary.headline,
            verdict: summary.verdict,
        }
    }
}
