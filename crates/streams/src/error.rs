//! What can go wrong with a half, grouped by whose fault it is.

use std::io;
use std::net::SocketAddr;

/// Why a half could not be prepared, connected, run or finished.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// What was asked for cannot be done; the text says what can.
    #[error("{0}")]
    Asked(String),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// A socket operation failed.
    #[error("{what}: {source}")]
    Socket {
        /// The operation and its object.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// The other end did not answer.
    #[error(
        "path {path}: {listener} did not answer the trial's hello within {seconds} s: {reason}; check that {listener} can be reached from here"
    )]
    NoAnswer {
        /// The path's index.
        path: u16,
        /// Who should have.
        listener: SocketAddr,
        /// How long it was given.
        seconds: u64,
        /// What was seen instead.
        reason: String,
    },
    /// A trial was started before all its flows had arrived.
    #[error(
        "path {path}: {arrived} of {expected} flows had connected when the trial started; check that the opener reached this host"
    )]
    FlowsMissing {
        /// The path's index.
        path: u16,
        /// Flows that had arrived.
        arrived: usize,
        /// Flows the trial needs.
        expected: usize,
    },
    /// The other end went away before the window closed.
    #[error("path {path}: {peer} went away {when}: {what}; the trial's count is lost")]
    PeerGone {
        /// The path's index.
        path: u16,
        /// Who.
        peer: SocketAddr,
        /// When, as in `1.2 s into the window`.
        when: String,
        /// What was seen, and how much had been moved.
        what: String,
    },
    /// The half was stopped before it was done.
    #[error("the trial was stopped before it was done")]
    Stopped,
}

impl StreamError {
    /// `what` failed with `source`.
    pub(crate) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Socket { what, source }
    }
}
