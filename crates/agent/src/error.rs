//! What can go wrong between a client and an agent, told apart by what its reader has to do.

use std::path::PathBuf;

/// An agent that could not be started or reached, or did not do as asked. Messages name the agent by its address.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Nobody answers.
    #[error(
        "no agent answers at {address}: {reason}; is one running there? Start one on that host with `linerate agent \
         --listen ADDRESS:PORT`, and check that no firewall is between and that its `--allow-peer`, if any, lists this \
         host"
    )]
    Unreachable {
        /// Where the agent should be.
        address: String,
        /// What the connection attempt met.
        reason: String,
    },
    /// Something answers, but it is no agent.
    #[error("what answers at {address} is not a linerate agent: {reason}; check the port in the join line")]
    NotAnAgent {
        /// Where the agent should be.
        address: String,
        /// What it said.
        reason: String,
    },
    /// The agent shows another certificate than the join line says.
    #[error(
        "the agent at {address} shows another certificate than the join line says: it was started anew with a new \
         identity (copy the join line it prints now), or someone stands in between"
    )]
    WrongFingerprint {
        /// The agent.
        address: String,
    },
    /// The agent does not accept the token.
    #[error("the agent at {address} does not accept the token: copy the join line it prints now")]
    WrongToken {
        /// The agent.
        address: String,
    },
    /// The agent speaks another version of the protocol.
    #[error("the agent at {address} cannot work with this linerate: {message}")]
    WrongProtocol {
        /// The agent.
        address: String,
        /// Both versions and the remedy.
        message: String,
    },
    /// The agent's limits forbid what was asked.
    #[error("the agent at {address} refuses: {message}")]
    Refused {
        /// The agent.
        address: String,
        /// Which limit, and how to raise it.
        message: String,
    },
    /// The agent did not understand the request, or the trial is not in the state for it.
    #[error("the agent at {address} cannot do that: {message}")]
    Rejected {
        /// The agent.
        address: String,
        /// Why.
        message: String,
    },
    /// The trial failed on the agent.
    #[error("the trial failed at {address}: {message}")]
    TrialFailed {
        /// The agent.
        address: String,
        /// What failed there.
        message: String,
    },
    /// An agent that had answered before is gone.
    #[error("lost the agent at {address} while it was to {task}: {reason}; it was stopped, or the network to it broke")]
    Lost {
        /// The agent.
        address: String,
        /// What it was asked for.
        task: &'static str,
        /// What the connection met.
        reason: String,
    },
    /// The agent cannot serve on its listener.
    #[error("cannot serve the agent's API: {call}: {source}")]
    Serve {
        /// The failing call.
        call: &'static str,
        /// Why.
        source: std::io::Error,
    },
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
    /// A file that holds the agent's secrets can be read by others.
    #[error("{} can be read by others (mode {mode:o}), and it holds a secret: `chmod 600` it, or delete it to get a new one", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
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
