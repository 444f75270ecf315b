//! This host's ports for raw frames, and their neighbours, for whom the agent allows it.

use crate::Limits;
use linerate_control::{ApiError, ErrorKind, Resolve};
use linerate_frames::FrameError;
use linerate_model::{Mac, PortInfo};
use std::time::Duration;

/// How long a neighbour may take to answer.
const NEIGHBOUR: Duration = Duration::from_secs(3);

/// What is known of the interfaces.
///
/// # Errors
/// The agent allows no raw frames, or there is no such interface.
pub(crate) async fn ports(limits: &Limits, interfaces: Vec<String>) -> Result<Vec<PortInfo>, ApiError> {
    check_leave(limits)?;
    blocking(move || interfaces.iter().map(|interface| linerate_frames::port(interface)).collect()).await
}

/// Asks a neighbour for its Ethernet address.
///
/// # Errors
/// The agent allows no raw frames, or the neighbour does not answer.
pub(crate) async fn resolve(limits: &Limits, ask: Resolve) -> Result<Mac, ApiError> {
    check_leave(limits)?;
    blocking(move || linerate_frames::resolve(&ask.interface, (ask.mac, ask.own), ask.target, NEIGHBOUR)).await
}

/// Whether raw frames may be sent from this host's interfaces.
///
/// # Errors
/// They may not; the message says what would allow them.
pub(crate) fn check_leave(limits: &Limits) -> Result<(), ApiError> {
    if limits.frames {
        return Ok(());
    }
    let message = "this agent sends no raw frames; start it with `linerate agent --allow-frames`, on a network that may be flooded";
    Err(ApiError::new(ErrorKind::Limit, message))
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, FrameError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done.map_err(|error| ApiError::new(ErrorKind::Failed, error.to_string())),
        Err(error) => Err(ApiError::new(ErrorKind::Failed, format!("the request was cut short: {error}"))),
    }
}
