//! Failures of the connection to NATS, each with its remedy.

use std::path::PathBuf;

/// A failure of NATS or of what it needs.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// No server answers.
    #[error(
        "no NATS server answers at {servers}: {reason}; check the address, the firewall, and that nats-server runs there"
    )]
    Unreachable {
        /// Addresses that were tried.
        servers: String,
        /// The last attempt.
        reason: String,
    },
    /// The server refuses the credentials.
    #[error(
        "the NATS server at {servers} refuses these credentials of {user}: they were revoked or have expired, or belong to another fleet; {remedy}"
    )]
    Refused {
        /// Addresses of the server.
        servers: String,
        /// The user.
        user: String,
        /// Advice.
        remedy: &'static str,
    },
    /// The server has no JetStream.
    #[error(
        "the NATS server at {servers} has no JetStream, which a fleet needs: {reason}; start it with the configuration that `linerate fleet create` wrote, or add `jetstream {{}}` to yours"
    )]
    NoJetStream {
        /// Addresses of the server.
        servers: String,
        /// Its answer.
        reason: String,
    },
    /// A request to the server failed.
    #[error("NATS: {task}: {reason}")]
    Failed {
        /// Task of the server.
        task: String,
        /// Its answer.
        reason: String,
    },
    /// There are no credentials.
    #[error("this host belongs to no fleet: {} is missing; join one with `linerate fleet enrol CODE`, or create one with `linerate fleet create NAME`", path.display())]
    NoCredentials {
        /// Expected file.
        path: PathBuf,
    },
    /// The credentials cannot be used.
    #[error("{}: {reason}; enrol this host again with a new invitation", path.display())]
    BadCredentials {
        /// The file.
        path: PathBuf,
        /// Its fault.
        reason: String,
    },
    /// A key cannot be used.
    #[error("{0}")]
    Key(String),
}

impl BusError {
    /// Returns the failure of `task`.
    pub fn failed(task: impl Into<String>, error: impl std::fmt::Display) -> Self {
        Self::Failed { task: task.into(), reason: error.to_string() }
    }
}
