//! What can go wrong with a half, grouped by whose fault it is.

use linerate_engine::{FlowsMissing, SocketError, failed};
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
    /// A socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
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
    #[error(transparent)]
    FlowsMissing(#[from] FlowsMissing),
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
    /// `what` failed with the error that follows; where that is a limit of this host, its remedy is told.
    pub(crate) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let failed = failed(what);
        move |source| Self::Socket(failed(source))
    }

    /// Connecting to `peer` failed with `source`: an error if that is this host's fault, `source` again if the peer's.
    pub(crate) fn connecting(peer: SocketAddr, source: io::Error) -> Result<Self, io::Error> {
        SocketError::connecting(peer, source).map(Self::Socket)
    }
}
