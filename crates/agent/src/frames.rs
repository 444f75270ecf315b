//! Raw frames: one trial at a time, from the ports of this host, for whom the agent allows it.

use crate::api_error::{ApiError, ErrorKind};
use crate::frame_half::HalfUnderWay;
use crate::serve::Shared;
use linerate_frames::FrameError;
use linerate_model::{FrameTrial, FrameTrialResult, Mac, PortInfo};
use linerate_observe::Watch;
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a neighbour may take to answer.
const NEIGHBOUR: Duration = Duration::from_secs(3);

/// Who is asked for the address of a neighbour, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolve {
    /// The port that asks.
    pub interface: String,
    /// The port's address.
    pub mac: Mac,
    /// The IP address that asks.
    pub own: IpAddr,
    /// The neighbour, as a rule a router.
    pub target: IpAddr,
}

/// The one trial with raw frames that may run.
#[derive(Debug, Default)]
pub(crate) struct FrameTrials {
    busy: AtomicBool,
    /// The half that this host has, or last had, of a trial with others.
    half: Mutex<Option<Arc<HalfUnderWay>>>,
}

impl FrameTrials {
    /// The half of the trial that has `tag`.
    pub(crate) fn half(&self, tag: &str) -> Result<Arc<HalfUnderWay>, ApiError> {
        self.last_half().clone().filter(|half| tag.parse() == Ok(half.tag())).ok_or_else(|| {
            let why = format!("there is no half of a trial tagged `{tag}` here: ask for it first, and stay connected");
            ApiError::new(ErrorKind::NotFound, why)
        })
    }

    pub(crate) fn last_half(&self) -> MutexGuard<'_, Option<Arc<HalfUnderWay>>> {
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the trial when the request that asked for it is gone.
pub(crate) struct StopOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The one slot for trials with raw frames. Dropped when the trial's thread has let go of its ports.
pub(crate) struct Slot(Arc<Shared>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.frames.busy.store(false, Ordering::Release);
    }
}

/// What is known of the ports.
pub(crate) async fn ports(shared: &Shared, interfaces: Vec<String>) -> Result<Vec<PortInfo>, ApiError> {
    allowed(shared)?;
    blocking(move || interfaces.iter().map(|interface| linerate_frames::port(interface)).collect()).await
}

/// Asks a neighbour for its Ethernet address.
pub(crate) async fn resolve(shared: &Shared, ask: Resolve) -> Result<Mac, ApiError> {
    allowed(shared)?;
    blocking(move || linerate_frames::resolve(&ask.interface, (ask.mac, ask.own), ask.target, NEIGHBOUR)).await
}

/// Runs a trial to its end, or until the caller goes away.
pub(crate) async fn run(shared: &Arc<Shared>, trial: FrameTrial) -> Result<FrameTrialResult, ApiError> {
    let slot = admit(shared, &trial)?;
    let stop = Arc::new(AtomicBool::new(false));
    let _stop = StopOnDrop(Arc::clone(&stop));
    blocking(move || {
        let _slot = slot;
        let mut seen = Watch::open(&[]);
        let counts = linerate_frames::run(&trial, &stop, &|_, _| ())?;
        seen.close();
        Ok(FrameTrialResult {
            trial,
            engine: counts.engine,
            started_unix_ns: counts.started_unix_ns,
            streams: counts.streams,
            observation: seen.finish(),
            other_hosts: BTreeMap::new(),
            device_load: None,
            caveats: counts.caveats,
        })
    })
    .await
}

/// Takes the slot for trials with raw frames, if this one is allowed and no other holds it.
pub(crate) fn admit(shared: &Arc<Shared>, trial: &FrameTrial) -> Result<Slot, ApiError> {
    allowed(shared)?;
    let length = trial.time + trial.settle;
    if length > shared.limits.max_time {
        return Err(ApiError::new(
            ErrorKind::Limit,
            format!("the trial takes {length}, this agent allows {}; ask for less", shared.limits.max_time),
        ));
    }
    if shared.frames.busy.swap(true, Ordering::AcqRel) {
        return Err(ApiError::new(ErrorKind::Conflict, "a trial with raw frames is under way; wait for it to end"));
    }
    Ok(Slot(Arc::clone(shared)))
}

fn allowed(shared: &Shared) -> Result<(), ApiError> {
    if shared.limits.frames {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::Limit,
        "this agent sends no raw frames; start it with `linerate agent --allow-frames`, on a network that may be flooded",
    ))
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, FrameError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done.map_err(|error| ApiError::new(ErrorKind::TrialFailed, error.to_string())),
        Err(error) => Err(ApiError::new(ErrorKind::TrialFailed, format!("the trial was cut short: {error}"))),
    }
}

/// How long a caller waits for a trial's result.
pub(crate) fn longest(trial: &FrameTrial) -> Duration {
    Duration::from(trial.time + trial.settle + Nanos::from_secs(20))
}
