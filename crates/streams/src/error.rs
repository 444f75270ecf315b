//! What can go wrong with streams and transactions, grouped by whose fault it is.

use linerate_engine::{EngineError, FailedBy, FlowsMissing, SocketError, Stopped, failed};
use std::io;
use std::net::SocketAddr;

/// Why flows could not be made, or did not last.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// The request cannot be carried out; the text says what can.
    #[error("{0}")]
    InvalidRequest(String),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// A socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The other end did not answer.
    #[error(
        "path {path}: {server} did not answer the trial's hello within {seconds} s: {reason}; check that {server} can be reached from here"
    )]
    NoAnswer {
        /// The path's index.
        path: u16,
        /// Who should have.
        server: SocketAddr,
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
    /// The session was stopped.
    #[error("the session was stopped")]
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

impl From<Stopped> for StreamError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<StreamError> for EngineError {
    fn from(error: StreamError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<StreamError> for FailedBy {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Stopped => Self::Stop(Stopped),
            other => Self::Task(other.into()),
        }
    }
}
