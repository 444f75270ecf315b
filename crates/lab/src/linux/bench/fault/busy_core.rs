//! Busy core: another process takes a core's time.

use super::{HostInterface, Kind, check_share};
use crate::LabError;
use crate::linux::bench::{Bench, TESTER};
use crate::linux::child_processes::ChildProcesses;
use crate::linux::receiving::{self, last_core};
use crate::linux::written;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_units::Ratio;
use serde::Deserialize;

/// Another process takes a share of the core on which the host receives, or on which the tester sends.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusyCore {
    /// The host.
    pub at: HostName,
    /// The share of the core's time.
    #[serde(deserialize_with = "written::text")]
    pub ratio: Ratio,
}

impl Kind for BusyCore {
    fn name(&self) -> &'static str {
        "busy-core"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, _bench: &Bench) -> Result<(), String> {
        check_share(self.ratio)
    }

    fn in_stack(&self) -> bool {
        false
    }

    fn in_tester(&self) -> bool {
        true
    }

    /// The kernel thread that receives needs an interface with a receive queue of its own.
    fn frame_by_frame(&self) -> bool {
        true
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        receiving::move_to_last_core(interface.namespace, &[interface.name.to_owned()], false)
    }

    fn plant_in_process(&self, children: &mut ChildProcesses, _agent: u32) -> Result<(), LabError> {
        // The tester sends on the first core, and goes first there; a host with this fault receives on the last.
        let tests = self.at.0 == TESTER;
        let core = if tests { 0 } else { last_core() };
        children.take(core, self.ratio, tests)
    }
}
