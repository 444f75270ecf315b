//! What can go wrong with a test of an iperf3 server.

use linerate_engine::{EngineError, FailedBy, SocketError, Stopped, failed};
use std::io;
use std::net::SocketAddr;

/// Why a test came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Iperf3Error {
    /// The request cannot be carried out; the text says what can.
    #[error("{0}")]
    InvalidRequest(String),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// A socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The server could not be reached.
    #[error("iperf3 server {server}: {reason}; check that `iperf3 -s` runs there and that it can be reached from here")]
    Unreachable {
        /// Who.
        server: SocketAddr,
        /// What was seen.
        reason: String,
    },
    /// It serves another client.
    #[error("iperf3 server {0} is busy with another test, and it takes one at a time; try again when that is over")]
    Busy(SocketAddr),
    /// It wants a login, and none was given.
    #[error(
        "iperf3 server {0} serves only users who log in: give --username and --rsa-public-key-path, and the password in IPERF3_PASSWORD"
    )]
    LoginWanted(SocketAddr),
    /// It refused a login. It does not say why.
    #[error(
        "iperf3 server {server} refused the login of `{user}`: check the user name and the password, that the public key belongs to the \
         private key of the server, and that the clocks of both hosts differ by less than 10 s"
    )]
    LoginRefused {
        /// Who refused it.
        server: SocketAddr,
        /// Whose login it was.
        user: String,
    },
    /// It closed the connection after a login, as iperf3 3.21 does where it refuses one.
    #[error(
        "iperf3 server {server} refused the login of `{user}` or went away: it closed the control connection, as iperf3 3.21 does where it \
         refuses a login. Check the user name and the password, that the public key belongs to the private key of the server, and that \
         the clocks of both hosts differ by less than 10 s"
    )]
    ClosedAfterLogin {
        /// Who closed it.
        server: SocketAddr,
        /// Whose login it was.
        user: String,
    },
    /// It closed the connection when it was asked for a test, as iperf3 3.21 does where a login is missing.
    #[error(
        "iperf3 server {0} closed the control connection when it was asked for a test (its own output may say why). If it serves only \
         users who log in, give --username and --rsa-public-key-path, and the password in IPERF3_PASSWORD"
    )]
    ClosedWhenAsked(SocketAddr),
    /// It refused the test, or gave up.
    #[error("iperf3 server {server} ended the test while {doing}: {reason}")]
    Refused {
        /// Who.
        server: SocketAddr,
        /// What it was to do.
        doing: &'static str,
        /// Its reason.
        reason: String,
    },
    /// What answers does not speak the protocol.
    #[error("what answers at {server} does not speak iperf3's protocol: while {doing}, {reason}; check the port")]
    Foreign {
        /// Who.
        server: SocketAddr,
        /// What it was to do.
        doing: &'static str,
        /// What it did instead.
        reason: String,
    },
    /// It closed the control connection.
    #[error(
        "iperf3 server {server} closed the control connection while {doing} (its own output may say why); the trial's count is lost"
    )]
    Closed {
        /// Who.
        server: SocketAddr,
        /// What it was to do.
        doing: &'static str,
    },
    /// It fell silent, or went away while the connections of data were opened.
    #[error("iperf3 server {server} {reason} while {doing}; the trial's count is lost")]
    Gone {
        /// Who.
        server: SocketAddr,
        /// What it was to do.
        doing: &'static str,
        /// What was seen.
        reason: String,
    },
    /// It broke a connection.
    #[error("iperf3 server {server} broke the control connection while {doing} ({source}); the trial's count is lost")]
    Broken {
        /// Who.
        server: SocketAddr,
        /// What it was to do.
        doing: &'static str,
        /// How.
        source: io::Error,
    },
    /// The flows of data failed.
    #[error("{0}")]
    Flows(EngineError),
    /// The session was stopped.
    #[error("the session was stopped")]
    Stopped,
}

impl Iperf3Error {
    /// `what` failed with the error that follows; where that is a limit of this host, its remedy is told.
    pub(crate) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let failed = failed(what);
        move |source| Self::Socket(failed(source))
    }
}

impl From<Stopped> for Iperf3Error {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<FailedBy> for Iperf3Error {
    fn from(failed: FailedBy) -> Self {
        match failed {
            FailedBy::Task(error) => Self::Flows(error),
            FailedBy::Stop(_) => Self::Stopped,
        }
    }
}

impl From<Iperf3Error> for EngineError {
    fn from(error: Iperf3Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<Iperf3Error> for FailedBy {
    fn from(error: Iperf3Error) -> Self {
        match error {
            Iperf3Error::Stopped => Self::Stop(Stopped),
            other => Self::Task(other.into()),
        }
    }
}
