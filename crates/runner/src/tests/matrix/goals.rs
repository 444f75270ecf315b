//! The kinds of runs.

use super::super::plans;
use linerate_method::simulation::Network;
use linerate_model::{CopyOnError, DeviceTest, Plan};

/// A kind of run.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    pub(super) name: &'static str,
    pub(super) plan: Plan,
    pub(super) hosts: &'static [&'static str],
    /// It meets one event in so many: runs of many trials take long.
    pub(super) one_in: usize,
    /// Every event happens at every host, and not at each in turn.
    pub(super) every_host: bool,
    pub(super) network: Network,
    /// Its trial that is disturbed waits for all to have sent.
    pub(super) drains: bool,
    /// Its windows open when they are ordered to.
    pub(super) steady: bool,
    /// A trial that failed is left out, and the others are run.
    pub(super) goes_on: bool,
    /// A trial that was spoilt is run again.
    pub(super) repeats: bool,
}

impl Goal {
    fn new(name: &'static str, plan: Plan) -> Self {
        let (hosts, network) = (&["a", "b"], plans::network());
        Self {
            name,
            plan,
            hosts,
            one_in: 1,
            every_host: false,
            network,
            drains: false,
            steady: false,
            goes_on: false,
            repeats: true,
        }
    }
}

pub(super) fn all() -> Vec<Goal> {
    let frames = |goal| Goal { drains: true, ..goal };
    let two_sources = plans::copy(&["a", "c"], CopyOnError::Stop, 2);
    vec![
        Goal { every_host: true, ..Goal::new("TCP streams", plans::sweep(1)) },
        Goal { steady: true, ..Goal::new("streams until they are steady", plans::when_steady(plans::sweep(1))) },
        Goal::new("UDP streams", plans::udp()),
        Goal::new("latency under load", plans::loaded_latency()),
        Goal::new("transactions", plans::transact()),
        Goal::new("RPC calls", plans::rpc()),
        Goal::new("NFS operations", plans::nfs()),
        frames(Goal { repeats: false, every_host: true, ..Goal::new("raw frames", plans::frames()) }),
        Goal::new("copies", plans::copy(&["a"], CopyOnError::Stop, 2)),
        Goal { hosts: &["a", "c", "b"], ..Goal::new("copies from two hosts", two_sources) },
        Goal { one_in: 3, ..Goal::new("response time against load", plans::curve()) },
        frames(Goal::new("device throughput", plans::device(DeviceTest::Throughput))),
        frames(Goal::new("device loss", plans::device(DeviceTest::Loss { step_percent: 25 }))),
        frames(Goal::new("device recovery", plans::device(DeviceTest::Recovery { repeats: 2 }))),
        Goal { one_in: 3, goes_on: true, ..Goal::new("ladder", plans::ladder(1)) },
    ]
}
