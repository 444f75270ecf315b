//! Loads of calls, and the flows that make them.

mod calls;
mod tally;

pub(crate) use calls::{Calls, max_outstanding};
pub use tally::{Edges, Tally};

use crate::client::{Caller, TICK_NS};
use crate::error::RpcError;
use crate::flow_meter::FlowMeter;
use crate::job::Job;
use crate::message::Credential;
use linerate_engine::{Schedule, Stop, Timeline};
use linerate_model::{FlowCounts, NfsOperation, OperationCounts, Received, Sent, Transactions};
use linerate_sys::clock;
use linerate_units::OpRate;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Time after the window in which replies are still taken.
pub(crate) const DRAIN_NS: u64 = 1_000_000_000;

/// A load of calls on one path.
pub trait Load: Send + Sync + std::fmt::Debug {
    /// Returns the address of the server that its flows call.
    fn server(&self) -> SocketAddr;

    /// Makes the first call of a flow, and returns the credential of all later ones. The reply shows that the server
    /// runs and has a thread for this flow.
    ///
    /// # Errors
    /// Fails if the server does not answer, or does not hold the session's key.
    fn greet(&self, caller: &mut Caller) -> Result<Credential, RpcError>;

    /// Makes the calls of flow `index` from the start to the end of the window, and takes their replies. Each flow has
    /// a thread for this.
    ///
    /// # Errors
    /// Fails if the flow cannot go on and its counts are lost.
    fn run(&self, context: &LoadContext, index: usize, caller: &mut Caller) -> Result<Outcome, RpcError>;

    /// Removes the files that the load made on the server. Called when all flows have ended, also after a failure.
    ///
    /// # Errors
    /// Names the files left on the server, and the reason.
    fn finish(&self) -> Result<(), RpcError> {
        Ok(())
    }
}

/// Flow of calls from this host.
#[derive(Debug)]
pub struct Flow {
    /// Index of the end of a path at this host that it belongs to.
    pub end: usize,
    /// The path's index in the trial.
    pub path: u16,
    /// Number among the flows of its path.
    pub number: u16,
    /// Local address.
    pub local: SocketAddr,
    /// Credential of its calls, as issued by the server.
    pub credential: Credential,
    /// Load that makes its calls.
    pub load: Arc<dyn Load>,
}

/// State of a session that all of its flows share.
#[derive(Debug)]
pub struct LoadContext {
    /// Checked assignment of this host.
    pub job: Job,
    /// Start of the load, and its measured window.
    pub timeline: Timeline,
    /// Flows of this host.
    pub flows: Vec<Flow>,
    /// Running counts of each flow, in the order of `flows`. Readers hold no socket.
    pub meters: Arc<[FlowMeter]>,
    /// Ends all flows early.
    pub stop: Stop<RpcError>,
    /// Whether the agent limits the rate. Then no call is made before the rate has earned it.
    pub rate_limited: bool,
}

/// Counts of one flow.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Data of its calls; `None` if they carry none.
    pub sent: Option<Sent>,
    /// Data of their replies; `None` if they carry none.
    pub received: Option<Received>,
    /// Calls answered, with their latency.
    pub transactions: Option<Transactions>,
    /// NFS only: counts by operation.
    pub operations: BTreeMap<NfsOperation, OperationCounts>,
    /// Bytes of the flow, and its TCP counters.
    pub flow: FlowCounts,
    /// Reason for an early end after which the counts are still valid.
    pub broken: Option<String>,
}

impl LoadContext {
    pub(crate) fn new(job: Job, timeline: Timeline, flows: Vec<Flow>) -> Self {
        let meters = flows.iter().map(|_| FlowMeter::default()).collect();
        Self { job, timeline, flows, meters, stop: Stop::default(), rate_limited: false }
    }

    /// Returns when the first of calls at `rate` may be made.
    pub fn first_due(&self, rate: OpRate) -> u64 {
        let start = self.timeline.start();
        if self.rate_limited { Schedule::earned_start(rate, start) } else { start }
    }

    /// Returns `source` as the reason why flow `index` ended early, with its path and the time.
    pub fn cut_short(&self, index: usize, source: RpcError) -> RpcError {
        let when = self.timeline.describe(clock::now());
        RpcError::CutShort { path: self.flows[index].path, when, source: Box::new(source) }
    }
}
