//! What flows of calls are made for: one kind of load for each task.

mod calls;
mod tally;

pub(crate) use calls::{Calls, most_under_way};
pub use tally::{Edges, Tally};

use crate::client::{Caller, TICK_NS};
use crate::error::RpcError;
use crate::flow::{Outcome, Shared};
use crate::message::Credential;
use std::net::SocketAddr;

/// After the window, replies are waited for so long.
pub(crate) const DRAIN_NS: u64 = 1_000_000_000;

/// A load of calls on one path.
pub trait Load: Send + Sync + std::fmt::Debug {
    /// Returns whom its flows call.
    fn server(&self) -> SocketAddr;

    /// Makes the call that every flow begins with, and returns what its other calls are to show. The reply tells that the
    /// server is there, and that a thread of it tends this flow.
    ///
    /// # Errors
    /// The server does not answer, or is not the one that is meant.
    fn greet(&self, caller: &mut Caller) -> Result<Credential, RpcError>;

    /// Makes the calls of flow `index` from the start to the end of the window, and takes their replies. Runs on a thread of
    /// its own.
    ///
    /// # Errors
    /// Fails if the flow cannot go on and its counts are lost.
    fn run(&self, shared: &Shared, index: usize, caller: &mut Caller) -> Result<Outcome, RpcError>;

    /// Removes what the load made on the server. Called when all flows have ended, also after a failure.
    ///
    /// # Errors
    /// Says what is left on the server, and why.
    fn finish(&self) -> Result<(), RpcError> {
        Ok(())
    }
}
