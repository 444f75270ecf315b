//! Pushes all metrics by remote write.

use super::family::Family;
use super::registry::Metrics;
use super::remote_write::{WriteRequest, requests};
use crate::endpoint::{Delivery, Endpoint, EndpointError, HttpClient};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two pushes.
const EVERY: Duration = Duration::from_secs(30);

/// Receiver of pushed metrics.
#[derive(Debug, Clone)]
pub struct PushTarget {
    /// URL of the receiver, for example `http://prometheus:9090/api/v1/write`.
    pub endpoint: Endpoint,
    /// Time between two pushes.
    pub every: Duration,
    /// Labels added to each series, for example the name of the fleet.
    pub labels: Vec<(String, String)>,
}

impl PushTarget {
    /// Pushes to `endpoint` every 30 s, without further labels.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, every: EVERY, labels: Vec::new() }
    }
}

/// A task that pushes. Dropping it stops the task.
///
/// Each push has the newest values, so a push that fails is not repeated: the next one replaces it.
#[derive(Debug)]
pub struct Push {
    task: JoinHandle<()>,
    last_error: Arc<Mutex<Option<String>>>,
}

impl Push {
    /// Pushes `metrics` from now on.
    ///
    /// # Errors
    /// HTTPS cannot be set up.
    pub fn start(metrics: Arc<Metrics>, target: PushTarget) -> Result<Self, EndpointError> {
        let client = HttpClient::new()?;
        let last_error = Arc::default();
        let task = tokio::spawn(push_repeatedly(client, metrics, target, Arc::clone(&last_error)));
        Ok(Self { task, last_error })
    }

    /// Returns the error of the newest push. Returns `None` if it succeeded.
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn push_repeatedly(
    client: HttpClient,
    metrics: Arc<Metrics>,
    target: PushTarget,
    last_error: Arc<Mutex<Option<String>>>,
) {
    let mut ticks = interval(target.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let result = push(&client, &metrics, &target).await;
        *last_error.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
    }
}

/// Pushes the values of this moment. Stops at the first request that fails.
async fn push(client: &HttpClient, metrics: &Metrics, target: &PushTarget) -> Result<(), String> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ms = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
    let requests = requests(metrics, &target.labels, unix_ms).map_err(|error| error.to_string())?;
    let mut failure = None;
    for WriteRequest { body, samples } in requests {
        if failure.is_none() {
            failure = match client.post(&target.endpoint, headers(), body).await {
                Delivery::Accepted => None,
                Delivery::Unavailable(reason) | Delivery::Refused(reason) => {
                    Some(format!("remote write to {}: {reason}", target.endpoint))
                }
            };
        }
        let outcome = if failure.is_some() { "failed" } else { "delivered" };
        metrics.add(Family::PushedSamples, &[outcome], samples as f64);
    }
    failure.map_or(Ok(()), Err)
}

fn headers() -> HeaderMap {
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf")),
        (CONTENT_ENCODING, HeaderValue::from_static("snappy")),
        (HeaderName::from_static("x-prometheus-remote-write-version"), HeaderValue::from_static("0.1.0")),
    ])
}
