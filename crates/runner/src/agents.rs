//! The agents of a run as the runner sees them: the seam between the loop and the network.

use crate::RunError;
use futures_util::future::BoxFuture;
use linerate_control::AgentError;
use linerate_method::Addresses;
use linerate_model::{Assignment, ClockExchange, Host, HostCounts, HostName, Order, SessionId, Stage};
use linerate_units::Nanos;
use std::net::SocketAddr;

/// The agents of a run, by the names that the plan uses.
pub trait Agents: Addresses + Send + Sync {
    /// Returns the descriptions of their hosts by the agents.
    fn hosts(&self) -> Vec<Host>;

    /// Returns the address at which `connector` reaches an endpoint that `listener` reported, without its zone: a zone
    /// is valid on its own host only.
    fn endpoint(&self, listening: SocketAddr, _listener: &HostName, _connector: &HostName) -> SocketAddr {
        SocketAddr::new(listening.ip(), listening.port())
    }

    /// Returns the round-trip time of an agent's API; zero for an unknown host.
    fn round_trip(&self, host: &HostName) -> Nanos;

    /// Exchanges times with `host` once.
    ///
    /// # Errors
    /// No agent is known for the host, or it was lost.
    fn clock<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, Result<ClockExchange, RunError>>;

    /// Opens a session at `host`.
    ///
    /// # Errors
    /// No agent is known for the host, or it refuses the assignment.
    fn open<'a>(
        &'a self,
        host: &'a HostName,
        assignment: &'a Assignment,
    ) -> BoxFuture<'a, Result<Box<dyn OpenSession>, RunError>>;

    /// Returns the counts of a session that another runner led to its end. `None` if `host` has no such counts.
    fn kept_counts<'a>(&'a self, host: &'a HostName, id: &'a SessionId) -> BoxFuture<'a, Option<HostCounts>>;

    /// Ends a session that another runner opened at `host`, if there is one.
    fn close<'a>(&'a self, host: &'a HostName, id: &'a SessionId) -> BoxFuture<'a, ()>;
}

/// A session at one agent. Dropping it stops the session there.
pub trait OpenSession: Send {
    /// Waits for the next stage.
    ///
    /// # Errors
    /// The agent was lost.
    fn stage(&mut self) -> BoxFuture<'_, Result<Stage, AgentError>>;

    /// Checks that the agent answers now. Stages wait longer for an agent that may come back.
    ///
    /// # Errors
    /// The agent does not answer.
    fn check(&self) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Orders the next step.
    ///
    /// # Errors
    /// The agent was lost, or the session is not at the stage for it.
    fn order<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<(), AgentError>>;

    /// Fetches the counts of a session that is done.
    ///
    /// # Errors
    /// The agent was lost, or has no counts.
    fn counts(&self) -> BoxFuture<'_, Result<HostCounts, AgentError>>;

    /// Ends the session in any stage, waits until its resources are released, and returns what could not be removed.
    ///
    /// # Errors
    /// The agent was lost.
    fn close(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>>;
}
