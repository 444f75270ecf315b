//! State of a fleet that people change: pause, and meshes to be run at once.

use async_nats::jetstream::kv::Operation;
use linerate_bus::{Bus, BusError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Key of the pause.
const PAUSE: &str = "pause";

/// Key of the status that the scheduler publishes.
const STATUS: &str = "status";

/// Prefix of the keys of meshes that are to be run at once.
const RUN: &str = "run";

/// A pause of the whole fleet: no trial begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Member that paused the fleet.
    pub by: String,
    /// Reason given.
    #[serde(default)]
    pub reason: String,
}

/// State of the schedule, for those who look at it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScheduleStatus {
    /// Name of the scheduler's process.
    pub scheduler: String,
    /// Agents that are present.
    pub present: usize,
    /// Orders that have not ended, the first thousand of them.
    pub outstanding: Vec<OutstandingOrder>,
    /// Number of all orders that have not ended.
    pub outstanding_count: usize,
    /// Time at which the next trial is due, in seconds since 1970.
    pub next_unix_s: Option<u64>,
    /// Time that the last plan took, in nanoseconds.
    pub planning_ns: u64,
    /// Warnings about the fleet file, such as groups without hosts.
    pub warnings: Vec<String>,
    /// Slots that were missed since the term began, by reason.
    pub missed: std::collections::BTreeMap<String, u64>,
    /// Alerts that are raised.
    pub alerts: Vec<String>,
}

/// An order that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutstandingOrder {
    /// Mesh of the order.
    pub mesh: String,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
}

impl OutstandingOrder {
    pub(crate) fn of(order: &linerate_schedule::Order) -> Self {
        Self { mesh: order.mesh.clone(), from: order.from.0.clone(), to: order.to.0.clone() }
    }
}

/// Returns the value of a key. `None` if it has none, or if a later version wrote it.
async fn get<T: for<'de> Deserialize<'de>>(bus: &Bus, key: &str) -> Result<Option<T>, BusError> {
    let entry =
        bus.state().await?.entry(key).await.map_err(|error| BusError::failed(format!("reading {key}"), error))?;
    let entry = entry.filter(|entry| entry.operation == Operation::Put);
    Ok(entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()))
}

async fn put<T: Serialize>(bus: &Bus, key: &str, value: &T) -> Result<(), BusError> {
    let failed = |error: &dyn std::fmt::Display| BusError::failed(format!("writing {key}"), error);
    let value = serde_json::to_vec(value).map_err(|error| failed(&error))?;
    bus.state().await?.put(key, value.into()).await.map_err(|error| failed(&error)).map(drop)
}

/// Pauses the fleet, or ends the pause with `None`. Trials in progress are finished.
///
/// # Errors
/// The bucket cannot be written.
pub async fn set_pause(bus: &Bus, pause: Option<&Pause>) -> Result<(), BusError> {
    match pause {
        Some(pause) => put(bus, PAUSE, pause).await,
        None => {
            let deleted = bus.state().await?.delete(PAUSE).await;
            deleted.map_err(|error| BusError::failed("ending the pause", error))
        }
    }
}

/// Returns the pause of the fleet. `None` if it is not paused.
///
/// # Errors
/// The bucket cannot be read.
pub async fn pause(bus: &Bus) -> Result<Option<Pause>, BusError> {
    get(bus, PAUSE).await
}

/// Asks the scheduler to run all pairs of a mesh at once.
///
/// # Errors
/// The bucket cannot be written.
pub async fn request_run(bus: &Bus, mesh: &str) -> Result<(), BusError> {
    put(bus, &format!("{RUN}.{mesh}"), &Value::Bool(true)).await
}

/// Takes the meshes that are to be run at once.
///
/// # Errors
/// The bucket cannot be read.
pub(crate) async fn take_run_requests<'a>(
    bus: &Bus,
    meshes: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<String>, BusError> {
    let bucket = bus.state().await?;
    let mut requested = Vec::new();
    for mesh in meshes {
        let key = format!("{RUN}.{mesh}");
        let request: Option<Value> = get(bus, &key).await?;
        if request.is_some() {
            bucket.delete(&key).await.map_err(|error| BusError::failed(format!("taking {key}"), error))?;
            requested.push(mesh.to_owned());
        }
    }
    Ok(requested)
}

/// Publishes the status of the schedule.
///
/// # Errors
/// The bucket cannot be written.
pub(crate) async fn put_status(bus: &Bus, status: &ScheduleStatus) -> Result<(), BusError> {
    put(bus, STATUS, status).await
}

/// Returns the status of the schedule. `None` if no scheduler has run yet.
///
/// # Errors
/// The bucket cannot be read.
pub async fn status(bus: &Bus) -> Result<Option<ScheduleStatus>, BusError> {
    get(bus, STATUS).await
}
