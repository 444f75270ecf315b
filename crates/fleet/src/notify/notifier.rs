//! The tasks that send alerts.

use super::alertmanager::{self, AlertmanagerOutbox};
use super::links::PageLinks;
use super::outbox::{Outbox, Outgoing};
use super::webhook::WebhookOutbox;
use crate::endpoint::{Delivery, Endpoint, EndpointError, HttpClient};
use crate::metrics::{Family, Metrics};
use linerate_schedule::{Alert, AlertKind};
use rand::RngExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// First time between two attempts; it doubles with each.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Longest time between two attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// Format of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// JSON of linerate, one request for each alert.
    Webhook,
    /// API version 2 of Alertmanager. The URL is that of the server, without `/api/v2/alerts`.
    Alertmanager,
}

/// Receiver of alerts.
#[derive(Debug, Clone)]
pub struct Target {
    /// Name in metrics and errors, for example `webhook-1`.
    pub name: String,
    /// Format of its requests.
    pub kind: TargetKind,
    /// Where to send.
    pub endpoint: Endpoint,
}

/// Sends alerts to all targets. Dropping it stops at once; [`Notifier::finish`] sends the rest first.
pub struct Notifier {
    metrics: Arc<Metrics>,
    /// Kinds of the alerts that fire, by id.
    firing: Mutex<HashMap<String, AlertKind>>,
    targets: Vec<Running>,
    closing: watch::Sender<bool>,
}

struct Running {
    queue: Arc<Queue>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Outbox of a target, shared with its task.
struct Queue {
    target: String,
    started: Instant,
    outbox: Mutex<Box<dyn Outbox>>,
    changed: Notify,
    last_error: Mutex<Option<String>>,
    metrics: Arc<Metrics>,
}

impl Notifier {
    /// Starts a task for each target.
    ///
    /// # Errors
    /// HTTPS cannot be set up.
    pub fn start(
        fleet: &str,
        links: Option<&PageLinks>,
        targets: Vec<Target>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, EndpointError> {
        let client = HttpClient::new()?;
        let closing = watch::Sender::new(false);
        let mut running = Vec::new();
        for target in targets {
            let (fleet, links) = (fleet.to_owned(), links.cloned());
            let (outbox, endpoint): (Box<dyn Outbox>, Endpoint) = match target.kind {
                TargetKind::Webhook => (Box::new(WebhookOutbox::new(fleet, links)), target.endpoint),
                TargetKind::Alertmanager => {
                    (Box::new(AlertmanagerOutbox::new(fleet, links)), target.endpoint.below(alertmanager::PATH))
                }
            };
            // A counter must exist before it first grows: `increase()` cannot see a series appear.
            for outcome in ["delivered", "retried", "refused", "dropped"] {
                metrics.add(Family::Notifications, &[&target.name, outcome], 0.0);
            }
            let queue = Arc::new(Queue {
                target: target.name,
                started: Instant::now(),
                outbox: Mutex::new(outbox),
                changed: Notify::new(),
                last_error: Mutex::default(),
                metrics: Arc::clone(&metrics),
            });
            let task = tokio::spawn(send_all(client.clone(), endpoint, Arc::clone(&queue), closing.subscribe()));
            running.push(Running { queue, task });
        }
        Ok(Self { metrics, firing: Mutex::default(), targets: running, closing })
    }

    /// Sends an alert that was raised, changed or resolved. Returns at once.
    pub fn send(&self, alert: &Alert) {
        self.count(alert);
        for target in &self.targets {
            target.queue.put(alert.clone());
        }
    }

    /// Returns the errors of the newest requests, one for each target that they failed at.
    pub fn last_errors(&self) -> Vec<String> {
        let errors = self.targets.iter().filter_map(|target| target.queue.last_error().clone());
        errors.collect()
    }

    /// Sends what waits, for at most `limit`. Returns how many alerts were not delivered to a target.
    pub async fn finish(mut self, limit: Duration) -> usize {
        self.closing.send_replace(true);
        let ends = async {
            for target in &mut self.targets {
                // A task that panicked has nothing to wait for.
                let _ = (&mut target.task).await;
            }
        };
        // The count below shows who was late.
        let _ = timeout(limit, ends).await;
        self.targets.iter().map(|target| target.queue.outbox().waiting()).sum()
    }

    fn count(&self, alert: &Alert) {
        let mut firing = self.firing.lock().unwrap_or_else(PoisonError::into_inner);
        if alert.resolved_unix_s.is_some() {
            firing.remove(&alert.id);
        } else if firing.insert(alert.id.clone(), alert.kind).is_none() {
            self.metrics.add(Family::AlertsRaised, &[alert.kind.name()], 1.0);
        }
        let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
        for kind in firing.values() {
            *counts.entry(kind.name()).or_default() += 1.0;
        }
        let series = counts.into_iter().map(|(kind, count)| (kind.to_owned(), count));
        self.metrics.replace(Family::AlertsFiring, series);
    }
}

impl Queue {
    fn outbox(&self) -> MutexGuard<'_, Box<dyn Outbox>> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_error(&self) -> MutexGuard<'_, Option<String>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn put(&self, alert: Alert) {
        let mut outbox = self.outbox();
        let dropped = outbox.put(alert, self.now());
        self.count("dropped", dropped);
        self.show_waiting(outbox.waiting());
        drop(outbox);
        self.changed.notify_one();
    }

    fn settle(&self, sent: &[Alert], delivery: &Delivery) {
        let mut outbox = self.outbox();
        outbox.settle(sent, delivery, self.now());
        self.show_waiting(outbox.waiting());
        drop(outbox);
        let (outcome, error) = match delivery {
            Delivery::Accepted => ("delivered", None),
            Delivery::Unavailable(reason) => ("retried", Some(reason)),
            Delivery::Refused(reason) => ("refused", Some(reason)),
        };
        self.count(outcome, sent.len());
        *self.last_error() = error.map(|reason| format!("alerts to {}: {reason}", self.target));
    }

    fn count(&self, outcome: &str, alerts: usize) {
        if alerts > 0 {
            self.metrics.add(Family::Notifications, &[&self.target, outcome], alerts as f64);
        }
    }

    fn show_waiting(&self, waiting: usize) {
        self.metrics.set(Family::NotificationQueue, &[&self.target], waiting as f64);
    }
}

/// Sends what is due until the notifier closes and nothing is due any more.
async fn send_all(client: HttpClient, endpoint: Endpoint, queue: Arc<Queue>, mut closing: watch::Receiver<bool>) {
    let mut retry = FIRST_RETRY;
    loop {
        let request = queue.outbox().next(queue.now(), unix_s());
        let Some(Outgoing { body, alerts }) = request else {
            if *closing.borrow() {
                return;
            }
            let due = queue.outbox().due();
            let wake = async {
                match due {
                    Some(due) => sleep_until(queue.started + due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = queue.changed.notified() => {}
                () = wake => {}
                // The sender lives as long as the task.
                _ = closing.changed() => {}
            }
            continue;
        };
        let delivery = client.post(&endpoint, headers(), body).await;
        queue.settle(&alerts, &delivery);
        if matches!(delivery, Delivery::Unavailable(_)) {
            // Controllers that lost a target together must not come back together.
            let share: f64 = rand::rng().random_range(0.5..1.0);
            sleep(retry.mul_f64(share)).await;
            retry = (retry * 2).min(LONGEST_RETRY);
        } else {
            retry = FIRST_RETRY;
        }
    }
}

fn headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
