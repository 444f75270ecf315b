//! A half's task with its options checked: what cannot work is said before anything is opened.

use crate::error::RpcError;
use linerate_model::{
    EndSpec, HalfSpec, IpVersion, RpcSpec, SocketOptions, Timing, Transport, TrialId, TrialKey, Workload,
};
use linerate_pace::Timeline;

/// What this half is to do.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: TrialId,
    pub(crate) key: TrialKey,
    pub(crate) workload: Workload,
    pub(crate) timing: Timing,
    pub(crate) ends: Vec<EndSpec>,
}

impl Job {
    /// Checks everything that can be checked without a peer.
    pub(crate) fn check(spec: &HalfSpec) -> Result<Self, RpcError> {
        match &spec.workload {
            Workload::Rpc(rpc) => {
                check_load(rpc.outstanding, spec)?;
                check_unit(rpc)?;
            }
            Workload::Nfs(nfs) => {
                check_load(nfs.outstanding, spec)?;
                crate::nfs::check(nfs)?;
            }
            Workload::Stream(_) | Workload::Transact(_) => {
                return Err(asked("streams and transactions have an engine of their own"));
            }
        }
        linerate_sockets::check_half(spec)?;
        Ok(Self {
            id: spec.id.clone(),
            key: spec.key,
            workload: spec.workload.clone(),
            timing: spec.timing,
            ends: spec.ends.clone(),
        })
    }

    /// The sockets' options.
    pub(crate) fn socket(&self) -> &SocketOptions {
        self.workload.socket()
    }

    /// TCP or UDP.
    pub(crate) fn transport(&self) -> Transport {
        self.workload.transport()
    }

    /// IPv6.
    pub(crate) fn v6(&self) -> bool {
        self.workload.ip() == IpVersion::V6
    }

    /// The times of a half that starts at `start`. Calls are timed one by one, so nothing has to drain before the window.
    pub(crate) fn timeline(&self, start: u64) -> Timeline {
        let open = start + self.timing.warmup.get();
        Timeline { start, warm_until: open, open, close: open + self.timing.measure.get() }
    }
}

fn asked(text: impl Into<String>) -> RpcError {
    RpcError::Asked(text.into())
}

fn check_load(outstanding: u16, spec: &HalfSpec) -> Result<(), RpcError> {
    linerate_sockets::check_flows(spec.workload.flows())?;
    if outstanding == 0 {
        return Err(asked("0 calls under way: choose 1 or more"));
    }
    linerate_sockets::check_rate(spec.workload.requests_per_s(), "calls", "call as fast as replies come")?;
    Ok(())
}

fn check_unit(spec: &RpcSpec) -> Result<(), RpcError> {
    let (over, most) = match spec.transport {
        Transport::Tcp => ("TCP", RpcSpec::TCP_MAXIMUM),
        Transport::Udp => ("UDP", RpcSpec::UDP_MAXIMUM),
    };
    if spec.unit_bytes.get() > most {
        return Err(asked(format!("a unit of {} bytes over {over}: choose at most {most}", spec.unit_bytes.get())));
    }
    Ok(())
}
