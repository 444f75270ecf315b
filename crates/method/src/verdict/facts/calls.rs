//! What is known of calls to a server, of RPC and NFS: how long they took, and how much of that the server had them.

use super::server_load::ServerLoad;
use crate::statistics::median;
use crate::transfer::transfers;
use linerate_model::{Measurement, NfsClass, Task, TrialResult};

/// With more than half of a call's time in the server, no other part has more.
pub(crate) const MOSTLY_IN_SERVER: f64 = 0.5;
/// A call that takes so many round trips spends its time elsewhere.
pub(crate) const MANY_ROUND_TRIPS: f64 = 10.0;

/// Calls to a server: means over all runs, medians where runs differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calls {
    /// They are NFS operations.
    pub(crate) nfs: bool,
    /// How long one took for its caller, seconds; in an open loop from when it was due.
    pub(crate) response: f64,
    /// How long the server had it by its own account, seconds; none where it keeps none.
    pub(crate) service: Option<f64>,
    /// How many were in flight at a time, those not counted that waited at their caller for others to return.
    pub(crate) under_way: f64,
    /// Answered per second.
    pub(crate) per_s: f64,
    /// The path's shortest round trip, seconds; none over UDP.
    pub(crate) round_trip: Option<f64>,
    /// What an agent on the server counted meanwhile.
    pub(crate) server: Option<ServerLoad>,
    /// NFS: how long operations of each class took, seconds.
    pub(crate) classes: Vec<(NfsClass, f64)>,
}

impl Calls {
    /// The calls of `result`; none if it is of another kind.
    pub(crate) fn of(result: &Measurement, runs: &[&TrialResult]) -> Option<Self> {
        let workload = runs.first()?.trial.task();
        let slots = workload.outstanding()?;
        let latency = result.latency()?;
        let (response, per_s) = (latency.mean / 1e9, result.requests()?.transactions_per_s.median);
        let paths = runs.first()?.trial.paths().len() as f64;
        let ends = runs.iter().flat_map(|run| transfers(run));
        let trips = ends.flat_map(|transfer| transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref()));
        let trips = trips.map(|tcp| tcp.min_rtt.get() as f64 / 1e9).filter(|trip| *trip > 0.0);
        Some(Self {
            nfs: matches!(workload, Task::Nfs(_)),
            response,
            service: result.service().map(|service| service.mean / 1e9),
            // Little's law.
            under_way: (per_s * response).min(f64::from(slots) * paths),
            per_s,
            round_trip: median(trips.collect()),
            server: ServerLoad::of(runs),
            classes: result
                .nfs()
                .map(|nfs| nfs.classes.iter().map(|(class, figures)| (*class, figures.mean_ms / 1e3)).collect())
                .unwrap_or_default(),
        })
    }

    /// The share of a call's time that the shortest round trip and the server explain; none where one of them is unknown. The rest is
    /// spent in a queue, on a slow line, or at the caller.
    pub(crate) fn explained(&self) -> Option<f64> {
        Some(((self.round_trip? + self.service?) / self.response).min(1.0))
    }

    /// An end has others to work on while one call is with the other end: if it waits for a core, it has more to do than it can.
    pub(crate) fn overlap(&self) -> bool {
        self.under_way >= 2.0
    }

    /// Of the calls in flight, the share that the server had, by Little's law; none where the server keeps no account.
    pub(crate) fn in_server(&self) -> Option<f64> {
        let held = self.per_s * self.service?;
        (self.under_way > 0.0).then(|| (held / self.under_way).min(1.0))
    }
}
