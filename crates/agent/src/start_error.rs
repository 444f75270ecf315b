//! Why an agent could not be started.

use linerate_sys::private::Exposure;
use std::path::PathBuf;

/// An agent that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The agent cannot serve on its listener.
    #[error("cannot serve the agent's API: {call}: {source}")]
    Serve {
        /// The failing call.
        call: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// Sessions cannot listen at the agent's port.
    #[error("sessions cannot listen at the agent's port: {0}")]
    Port(#[from] linerate_engine::SocketError),
    /// The agent cannot serve its fleet.
    #[error(transparent)]
    Fleet(#[from] linerate_bus::BusError),
    /// Another process serves the fleet with the same credentials.
    #[error(
        "an agent serves the fleet with the credentials of {agent} already (on {host}, process {instance}): stop that one, or \
         if its files were copied, enrol this host with a name of its own (`linerate fleet enrol CODE --name NAME`)"
    )]
    Cloned {
        /// Name of the agent.
        agent: String,
        /// Random name of the other process.
        instance: String,
        /// Host of the other process.
        host: String,
    },
    /// The agent cannot give up what it does not need.
    #[error("the agent cannot confine itself: {0}")]
    Confinement(linerate_sys::Error),
    /// The agent's certificate or key cannot be made or used.
    #[error("the agent's identity cannot be used: {0}")]
    Identity(String),
    /// A file that holds the agent's secrets cannot be read or written.
    #[error("{call} on {}: {source}", path.display())]
    File {
        /// The failing call.
        call: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that holds the agent's secrets belongs to another user, and the agent gives up what would let it read that.
    #[error(
        "the agent may not read {}: {source}; run it as the owner of that folder, or give the folder to the agent's user \
         (`chown -R`)", path.display()
    )]
    OfAnotherUser {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that holds the agent's secrets can be read by others.
    #[error("{} can be read by others ({exposure}), and it holds a secret: `{}`", path.display(), exposure.remedy(path))]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Access of other users.
        exposure: Exposure,
    },
    /// A file that holds the agent's secrets holds something else.
    #[error("{} does not hold {expected}: {problem}; delete it to get a new one", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}
