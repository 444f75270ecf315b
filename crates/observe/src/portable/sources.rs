//! Sources of counters.

use crate::cores::CoreTimes;
use crate::protocols::ProtocolTotals;
use linerate_model::{CoreUse, NetworkCounters, Softnet};
use linerate_sys::core_time::CoreTime;
use linerate_sys::interface::{Link, Qdisc};
use linerate_sys::netlink::Route;
use linerate_sys::processor::core_times;
use linerate_units::Nanos;

/// The sources, and what they counted first.
pub(crate) struct Sources {
    route: Option<Route>,
    first_protocols: ProtocolTotals,
}

impl Sources {
    pub(crate) fn open() -> Self {
        Self { route: Route::open().ok(), first_protocols: ProtocolTotals::default() }
    }

    /// Reads the times of the cores. On Windows deferred procedure calls do the work of soft interrupts.
    pub(crate) fn cores(&mut self) -> Option<CoreTimes> {
        let cores = core_times().ok()?;
        let of_core = |(core, time): (u32, &CoreTime)| CoreUse {
            core,
            user: time.user,
            system: time.kernel,
            irq: time.interrupt,
            softirq: time.deferred,
            steal: Nanos::default(),
            idle: time.idle,
        };
        Some(CoreTimes::new((0..).zip(&cores).map(of_core).collect()))
    }

    pub(crate) fn softnet_grown(&mut self) -> Softnet {
        Softnet::default()
    }

    /// Reads the protocol counters. Returns their growth since this was called first.
    pub(crate) fn protocols_grown(&mut self) -> NetworkCounters {
        let now = ProtocolTotals::read();
        self.first_protocols.complete(&now);
        now.since(&self.first_protocols)
    }

    pub(crate) fn links(&mut self) -> Option<Vec<Link>> {
        self.route.as_mut().and_then(|route| route.links().ok())
    }

    pub(crate) fn qdiscs(&mut self) -> Option<Vec<Qdisc>> {
        None
    }
}
