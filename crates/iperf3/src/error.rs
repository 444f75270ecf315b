//! Errors of tests with an iperf3 server.

use linerate_engine::{EngineError, FailedBy, SocketError, Stopped, WorkError};
use std::io;
use std::net::SocketAddr;

/// Cause of a failed test.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Iperf3Error {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// The request cannot be carried out, or a socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The server could not be reached.
    #[error("iperf3 server {server}: {reason}; check that `iperf3 -s` runs there and that it can be reached from here")]
    Unreachable {
        server: SocketAddr,
        /// Observation.
        reason: String,
    },
    /// The server serves another client.
    #[error("iperf3 server {0} is busy with another test, and it takes one at a time; try again when that is over")]
    Busy(SocketAddr),
    /// The server requires a login, and the task has no login.
    #[error(
        "iperf3 server {0} serves only users who log in: give --username and --rsa-public-key-path, and the password in IPERF3_PASSWORD"
    )]
    LoginWanted(SocketAddr),
    /// The server refused a login without a reason.
    #[error(
        "iperf3 server {server} refused the login of `{user}`: check the user name and the password, that the public key belongs to the \
         private key of the server, and that the clocks of both hosts differ by less than 10 s"
    )]
    LoginRefused {
        server: SocketAddr,
        /// User name of the login.
        user: String,
    },
    /// The server closed the connection after a login, as iperf3 3.21 does when it refuses one.
    #[error(
        "iperf3 server {server} refused the login of `{user}` or went away: it closed the control connection, as iperf3 3.21 does where it \
         refuses a login. Check the user name and the password, that the public key belongs to the private key of the server, and that \
         the clocks of both hosts differ by less than 10 s"
    )]
    ClosedAfterLogin {
        server: SocketAddr,
        /// User name of the login.
        user: String,
    },
    /// The server closed the connection when it was asked for a test, as iperf3 3.21 does if a login is missing.
    #[error(
        "iperf3 server {0} closed the control connection when it was asked for a test (its own output may say why). If it serves only \
         users who log in, give --username and --rsa-public-key-path, and the password in IPERF3_PASSWORD"
    )]
    ClosedWhenAsked(SocketAddr),
    /// The server refused the test, or gave up.
    #[error("iperf3 server {server} ended the test while {doing}: {reason}")]
    Refused {
        server: SocketAddr,
        /// Step of the test.
        doing: &'static str,
        /// Reason of the server.
        reason: String,
    },
    /// The server does not speak the protocol.
    #[error("what answers at {server} does not speak iperf3's protocol: while {doing}, {reason}; check the port")]
    Foreign {
        server: SocketAddr,
        /// Step of the test.
        doing: &'static str,
        /// Violation of the protocol.
        reason: String,
    },
    /// The server closed the control connection.
    #[error(
        "iperf3 server {server} closed the control connection while {doing} (its own output may say why); the trial's count is lost"
    )]
    Closed {
        server: SocketAddr,
        /// Step of the test.
        doing: &'static str,
    },
    /// The server fell silent, or went away while the data connections were opened.
    #[error("iperf3 server {server} {reason} while {doing}; the trial's count is lost")]
    Gone {
        server: SocketAddr,
        /// Step of the test.
        doing: &'static str,
        /// Observation.
        reason: String,
    },
    /// The control connection failed.
    #[error("iperf3 server {server} broke the control connection while {doing} ({source}); the trial's count is lost")]
    Broken {
        server: SocketAddr,
        /// Step of the test.
        doing: &'static str,
        /// Error of the connection.
        source: io::Error,
    },
    /// The data flows failed.
    #[error("{0}")]
    Flows(EngineError),
    /// The session was stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl WorkError for Iperf3Error {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

impl From<FailedBy> for Iperf3Error {
    fn from(failed: FailedBy) -> Self {
        match failed {
            FailedBy::Task(error) => Self::Flows(error),
            FailedBy::Stop(stopped) => Self::Stopped(stopped),
        }
    }
}
