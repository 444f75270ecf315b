//! What can go wrong with streams and transactions, grouped by whose fault it is.

use linerate_engine::{FlowsMissing, SocketError, Stopped, WorkError};

use std::net::SocketAddr;

/// Why flows could not be made, or did not last.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// The request cannot be carried out, or a socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The other end did not answer.
    #[error(
        "path {path}: {server} did not answer the trial's hello within {seconds} s: {reason}; check that {server} can be reached from here"
    )]
    NoAnswer {
        /// The path's index.
        path: u16,
        server: SocketAddr,
        /// Time limit for the answer.
        seconds: u64,
        /// Observation in place of an answer.
        reason: String,
    },
    /// A trial was started before all its flows had arrived.
    #[error(transparent)]
    FlowsMissing(#[from] FlowsMissing),
    /// The other end went away before the window closed.
    #[error("path {path}: {peer} went away {when}: {what}; the trial's count is lost")]
    PeerGone {
        /// The path's index.
        path: u16,
        peer: SocketAddr,
        /// Time of the loss, as in `1.2 s into the window`.
        when: String,
        /// Observation, and the amount of data that had been moved.
        what: String,
    },
    /// The session was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl WorkError for StreamError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}
