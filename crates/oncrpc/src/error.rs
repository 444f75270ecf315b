//! Errors of calls, servers and loads.

use crate::message::Refused;
use linerate_engine::{FlowsMissing, SocketError, Stopped, WorkError, failed};
use std::io;
use std::net::SocketAddr;

/// Why a call, a server or a load failed.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The request cannot be carried out; the text says what can.
    #[error("{0}")]
    InvalidRequest(String),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// A socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The server did not answer.
    #[error("{server} did not answer {what} within {seconds} s: {reason}; check that it can be reached from here")]
    NoAnswer { server: SocketAddr, what: String, seconds: u64, reason: String },
    /// The server answered that it will not.
    #[error("{server} refused {what}: {reason}")]
    Refused {
        server: SocketAddr,
        what: String,
        /// Why.
        reason: String,
    },
    /// The peer sent what is not ONC RPC.
    #[error("{peer} does not speak ONC RPC rightly: {what}")]
    Malformed { peer: SocketAddr, what: String },
    /// The peer ended the connection, or its port is closed.
    #[error("{peer} went away: {what}")]
    Gone { peer: SocketAddr, what: String },
    /// A file set could not be made or removed in time.
    #[error("{server}: {what} takes too long, {done} of {count} calls are done; ask for fewer or smaller files")]
    TooLong {
        server: SocketAddr,
        what: String,
        /// Calls answered.
        done: usize,
        /// Calls it takes, as far as was known.
        count: usize,
    },
    /// A file set could not be made, nor what there was of it be removed.
    #[error("{source}; {remains}")]
    Remains {
        /// Names of the remaining files and the remedy.
        remains: String,
        /// Why it was not made.
        source: Box<RpcError>,
    },
    /// A trial was started before all its flows had arrived.
    #[error(transparent)]
    FlowsMissing(#[from] FlowsMissing),
    /// A flow failed before the window closed.
    #[error("path {path}: {source}, {when}; the trial's count is lost")]
    CutShort {
        /// The path's index.
        path: u16,
        /// When, as in `1.2 s into the window`.
        when: String,
        /// Why.
        source: Box<RpcError>,
    },
    /// The session was stopped.
    #[error("the session was stopped")]
    Stopped,
}

impl RpcError {
    /// Returns a conversion from the I/O error of `what`. It adds the remedy if a limit of this host is the cause.
    pub fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let failed = failed(what);
        move |source| Self::Socket(failed(source))
    }

    /// The server answered `what` with a refusal.
    pub fn refused(server: SocketAddr, what: impl Into<String>, why: Refused) -> Self {
        Self::Refused { server, what: what.into(), reason: why.to_string() }
    }
}

impl From<Stopped> for RpcError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl WorkError for RpcError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    fn split_remains(self) -> (Self, Vec<String>) {
        match self {
            Self::Remains { remains, source } => {
                let (error, mut all) = source.split_remains();
                all.push(remains);
                (error, all)
            }
            error => (error, Vec::new()),
        }
    }
}
