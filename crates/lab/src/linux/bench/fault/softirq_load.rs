//! Soft-interrupt load: the host receives on one core, and a filter takes time there for each frame (bpf/spend.bpf.c).
//!
//! The filter is the interface's own and goes with it; no process holds it.

use super::{HostInterface, Kind};
use crate::linux::bench::Bench;
use crate::linux::load_failure::{incomplete, object_failed, program_failed};
use crate::linux::{receiving, written};
use aya::programs::SchedClassifier;
use aya::{EbpfLoader, include_bytes_aligned};
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::netlink::Route;
use linerate_sys::shaping::Way;
use linerate_units::Nanos;
use serde::Deserialize;
use std::os::fd::AsFd as _;

/// The compiled program.
const OBJECT: &[u8] = include_bytes_aligned!("../../../../bpf/spend.bpf.o");
/// Name in errors.
const WHAT: &str = "the slow filter";
/// The longest time that the program spends on a frame: it reads a clock, and the verifier must see it end.
const COST_MAXIMUM: Nanos = Nanos::new(100_000);

/// The host's soft interrupts take longer for each frame that comes in, all on the last core of the machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftirqLoad {
    /// The host.
    pub at: HostName,
    /// The time that the filter takes for each frame.
    #[serde(deserialize_with = "written::text")]
    pub cost: Nanos,
}

impl Kind for SoftirqLoad {
    fn name(&self) -> &'static str {
        "softirq-load"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, _bench: &Bench) -> Result<(), String> {
        if !(1..=COST_MAXIMUM.get()).contains(&self.cost.get()) {
            return Err(format!("cost: the time for a frame is above 0 and at most {COST_MAXIMUM}"));
        }
        Ok(())
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        receiving::steer_to_last_core(interface.namespace, interface.name)?;
        interface.namespace.enter(|| {
            let mut route = Route::open()?;
            let link = route.index_of(interface.name)?;
            let mut object = EbpfLoader::new()
                .override_global("frame_ns", &self.cost.get(), true)
                .load(OBJECT)
                .map_err(object_failed(WHAT))?;
            let program = object.program_mut("slow_filter").ok_or_else(|| incomplete("slow_filter"))?;
            let classifier: &mut SchedClassifier = program.try_into().map_err(program_failed(WHAT))?;
            classifier.load().map_err(program_failed(WHAT))?;
            let program = classifier.fd().map_err(program_failed(WHAT))?;
            route.filter_by(link, Way::In, program.as_fd())
        })?
    }
}
