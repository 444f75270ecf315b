//! Errors of the engine.

use linerate_engine::{SocketError, Stopped, WorkError};
use std::net::IpAddr;

/// Why a path could not be probed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// The agent stopped the work.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A socket failed, or the request cannot be carried out.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// No packet can be sent to the far end.
    #[error(
        "no packet leaves for {address}: {reason}; check the route (`ip route get {address}`) and the host's firewall"
    )]
    NoRoute {
        /// Far end.
        address: IpAddr,
        /// Error of the kernel.
        reason: std::io::Error,
    },
}

impl From<linerate_sys::Error> for ProbeError {
    fn from(error: linerate_sys::Error) -> Self {
        SocketError::from(error).into()
    }
}

impl WorkError for ProbeError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}
