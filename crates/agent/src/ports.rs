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
/// The agent does not allow raw frames there, or there is no such interface.
pub(crate) async fn ports(limits: &Limits, interfaces: Vec<String>) -> Result<Vec<PortInfo>, ApiError> {
    check_allowed(limits, interfaces.iter())?;
    blocking(move || interfaces.iter().map(|interface| linerate_frames::port(interface)).collect()).await
}

/// Asks a neighbour for its Ethernet address.
///
/// # Errors
/// The agent does not allow raw frames there, or the neighbour does not answer.
pub(crate) async fn resolve(limits: &Limits, ask: Resolve) -> Result<Mac, ApiError> {
    check_allowed(limits, std::iter::once(&ask.interface))?;
    blocking(move || linerate_frames::resolve(&ask.interface, (ask.mac, ask.own), ask.target, NEIGHBOUR)).await
}

/// Checks that raw frames may be sent from each of `interfaces`.
///
/// # Errors
/// One of them is not allowed; the message says what would allow it.
pub(crate) fn check_allowed<'a>(
    limits: &Limits,
    mut interfaces: impl Iterator<Item = &'a String>,
) -> Result<(), ApiError> {
    let refused = |message: String| Err(ApiError::new(ErrorKind::Limit, message));
    if limits.frames.is_none() {
        return refused(String::from(
            "this agent sends no raw frames; start it with `linerate agent --allow-frames INTERFACE`, on a network that may be \
             flooded",
        ));
    }
    match interfaces.find(|interface| !limits.frames.allow(interface)) {
        Some(interface) => refused(format!(
            "this agent sends no raw frames from `{interface}`; name it in `linerate agent --allow-frames` if its network may \
             be flooded"
        )),
        None => Ok(()),
    }
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, FrameError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done.map_err(|error| ApiError::new(ErrorKind::Failed, error.to_string())),
        Err(error) => Err(ApiError::new(ErrorKind::Failed, format!("the request was cut short: {error}"))),
    }
}
