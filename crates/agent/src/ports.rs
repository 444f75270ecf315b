//! This host's ports for raw frames, and their neighbours. Whoever calls has checked that both are allowed.

use linerate_control::{ApiError, ErrorKind, Resolve};
use linerate_frames::FrameError;
use linerate_model::{Mac, PortInfo};
use std::time::Duration;

/// Time in which a neighbour has to answer.
const NEIGHBOUR: Duration = Duration::from_secs(3);

/// Describes the interfaces.
///
/// # Errors
/// There is no such interface.
pub(crate) async fn ports(interfaces: Vec<String>) -> Result<Vec<PortInfo>, ApiError> {
    blocking(move || interfaces.iter().map(|interface| linerate_frames::port(interface)).collect()).await
}

/// Asks a neighbour for its Ethernet address.
///
/// # Errors
/// The neighbour does not answer.
pub(crate) async fn resolve(ask: Resolve) -> Result<Mac, ApiError> {
    blocking(move || linerate_frames::resolve(&ask.interface, (ask.mac, ask.own), ask.target, NEIGHBOUR)).await
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, FrameError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done.map_err(|error| ApiError::new(ErrorKind::Failed, error.to_string())),
        Err(error) => Err(ApiError::new(ErrorKind::Failed, format!("the request was cut short: {error}"))),
    }
}
