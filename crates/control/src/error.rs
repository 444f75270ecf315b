//! What can go wrong between a client and an agent, told apart by what its reader has to do.

use crate::PROTOCOL;

/// An agent that could not be reached, or did not do as asked. Messages name the agent by its address.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// Nobody answers.
    #[error("no agent answers at {address}: {reason}")]
    Unreachable {
        /// Where the agent should be.
        address: String,
        /// The attempts, their results, and the remedy.
        reason: String,
    },
    /// Something answers, but it is no agent.
    #[error("what answers at {address} is not a linerate agent: {reason}; check the port in the agent URL")]
    NotAnAgent {
        /// Where the agent should be.
        address: String,
        /// What it said.
        reason: String,
    },
    /// What answers did not prove that it has the pairing code.
    #[error(
        "what answers at {address} did not prove that it has the pairing code: someone may stand in between; copy the agent \
         URL that `linerate serve` prints instead"
    )]
    PairingNotProved {
        /// Where the agent should be.
        address: String,
    },
    /// The agent shows another certificate than the agent URL says.
    #[error(
        "the agent at {address} shows another certificate than the agent URL says: it was started anew with a new \
         identity (copy the agent URL it prints now), or someone stands in between"
    )]
    WrongFingerprint {
        /// The agent.
        address: String,
    },
    /// The agent does not accept the token.
    #[error("the agent at {address} does not accept the agent URL: {message}")]
    WrongToken {
        /// The agent.
        address: String,
        /// Why, and what to do about it.
        message: String,
    },
    /// The agent speaks another version of the protocol.
    #[error(
        "the agent at {address} speaks protocol {theirs}, this linerate ({}) speaks protocol {PROTOCOL}; install the same \
         version of linerate on both hosts",
        env!("CARGO_PKG_VERSION")
    )]
    WrongProtocol {
        /// The agent.
        address: String,
        /// The version that it speaks.
        theirs: String,
    },
    /// The agent's limits forbid what was asked.
    #[error("the agent at {address} refuses: {message}")]
    Refused {
        /// The agent.
        address: String,
        /// Which limit, and how to raise it.
        message: String,
    },
    /// The agent did not understand the request, or the session is at another stage.
    #[error("the agent at {address} cannot do that: {message}")]
    Rejected {
        /// The agent.
        address: String,
        /// Why.
        message: String,
    },
    /// The session or the host failed at it.
    #[error("failed at {address}: {message}")]
    Failed {
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
}
