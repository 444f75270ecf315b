//! Errors between a client and an agent, one variant per remedy.

use crate::{PROTOCOL, neighbours};

/// Failure to reach an agent, or of a request to it. Messages name the agent by its address.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// No agent answers.
    #[error("no agent answers at {address}: {reason}")]
    Unreachable {
        /// Expected address of the agent.
        address: String,
        /// The attempts, their results, and the remedy.
        reason: String,
    },
    /// The answering program is not an agent.
    #[error("what answers at {address} is not a linerate agent: {reason}; check the port in the agent URL")]
    NotAnAgent {
        /// Expected address of the agent.
        address: String,
        /// Description of its answer.
        reason: String,
    },
    /// The answering program did not prove that it has the pairing code.
    #[error(
        "what answers at {address} did not prove that it has the pairing code: someone may stand in between; copy the agent \
         URL that `linerate serve` prints instead"
    )]
    PairingNotProved {
        /// Expected address of the agent.
        address: String,
    },
    /// The agent's certificate differs from that of the agent URL.
    #[error(
        "the agent at {address} shows another certificate than the agent URL says: it was started anew with a new \
         identity (copy the agent URL it prints now), or someone stands in between"
    )]
    WrongFingerprint {
        /// Address of the agent.
        address: String,
    },
    /// The agent does not accept the token.
    #[error("the agent at {address} does not accept the agent URL: {message}")]
    WrongToken {
        /// Address of the agent.
        address: String,
        /// Cause and remedy.
        message: String,
    },
    /// The agent speaks another version of the protocol.
    #[error(
        "the agent at {address} speaks protocol {theirs}, this linerate ({}) speaks protocol {PROTOCOL} and works with {} to {}; \
         install the same version of linerate on both hosts",
        env!("CARGO_PKG_VERSION"),
        neighbours().0,
        neighbours().1
    )]
    WrongProtocol {
        /// Address of the agent.
        address: String,
        /// Version of the agent's protocol.
        theirs: String,
    },
    /// The agent's limits forbid the request.
    #[error("the agent at {address} refuses: {message}")]
    Refused {
        /// Address of the agent.
        address: String,
        /// Limit, and how to raise it.
        message: String,
    },
    /// The agent did not understand the request, or the session is at another stage.
    #[error("the agent at {address} cannot do that: {message}")]
    Rejected {
        /// Address of the agent.
        address: String,
        /// Cause.
        message: String,
    },
    /// The session or the host failed at it.
    #[error("failed at {address}: {message}")]
    Failed {
        /// Address of the agent.
        address: String,
        /// Description of the failure.
        message: String,
    },
    /// An agent that had answered before is gone.
    #[error("lost the agent at {address} while it was to {task}: {reason}; it was stopped, or the network to it broke")]
    Lost {
        /// Address of the agent.
        address: String,
        /// Requested task.
        task: &'static str,
        /// Failure of the connection.
        reason: String,
    },
}
