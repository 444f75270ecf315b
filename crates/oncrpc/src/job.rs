//! A half's task with its options checked: what cannot work is said before anything is opened.

use crate::error::RpcError;
use crate::protocol::Protocol;
use linerate_model::{EndSpec, HalfSpec, IpVersion, SocketOptions, Timing, Transport, TrialId, TrialKey, Workload};
use linerate_pace::Timeline;

/// What this half is to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// The trial's name.
    pub id: TrialId,
    /// What its callers show its servers.
    pub key: TrialKey,
    /// Its load.
    pub workload: Workload,
    /// Its warm-up and window.
    pub timing: Timing,
    /// The ends of paths at this host.
    pub ends: Vec<EndSpec>,
}

impl Job {
    /// Checks everything that can be checked without a peer.
    ///
    /// # Errors
    /// [`RpcError::Asked`] says what to ask for instead.
    pub fn check(spec: &HalfSpec, protocol: &dyn Protocol) -> Result<Self, RpcError> {
        let outstanding = match &spec.workload {
            Workload::Rpc(rpc) => rpc.outstanding,
            Workload::Nfs(nfs) => nfs.outstanding,
            Workload::Stream(_) | Workload::Transact(_) => {
                return Err(asked("streams and transactions have an engine of their own"));
            }
        };
        check_load(outstanding, spec)?;
        protocol.check(&spec.workload)?;
        linerate_engine::check_half(spec)?;
        Ok(Self {
            id: spec.id.clone(),
            key: spec.key,
            workload: spec.workload.clone(),
            timing: spec.timing,
            ends: spec.ends.clone(),
        })
    }

    /// The sockets' options.
    pub fn socket(&self) -> &SocketOptions {
        self.workload.socket()
    }

    /// TCP or UDP.
    pub fn transport(&self) -> Transport {
        self.workload.transport()
    }

    /// IPv6.
    pub fn v6(&self) -> bool {
        self.workload.ip() == IpVersion::V6
    }

    /// The times of a half that starts at `start`. Calls are timed one by one, so nothing has to drain before the window.
    pub fn timeline(&self, start: u64) -> Timeline {
        let open = start + self.timing.warmup.get();
        Timeline { start, warm_until: open, open, close: open + self.timing.measure.get() }
    }
}

fn asked(text: impl Into<String>) -> RpcError {
    RpcError::Asked(text.into())
}

fn check_load(outstanding: u16, spec: &HalfSpec) -> Result<(), RpcError> {
    linerate_engine::check_flows(spec.workload.flows())?;
    if outstanding == 0 {
        return Err(asked("0 calls under way: choose 1 or more"));
    }
    linerate_engine::check_rate(spec.workload.requests_per_s(), "calls", "call as fast as replies come")?;
    Ok(())
}
