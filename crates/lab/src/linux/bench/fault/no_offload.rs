//! Offloads off: the host's interface neither segments nor joins packets.

use super::{Fault, HostInterface, Kind};
use crate::linux::bench::Bench;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::ethtool::Ethtool;
use serde::Deserialize;

/// Segmentation (TSO, GSO) and joining (GRO) are off at the host's interface.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoOffload {
    /// The host.
    pub at: HostName,
}

impl Kind for NoOffload {
    fn name(&self) -> &'static str {
        "no-offload"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        // Joining is what gives a veth interface its receive queue, and the thread of that queue has to be on the busy
        // core.
        let has_busy_core =
            bench.faults.iter().any(|fault| matches!(fault, Fault::BusyCore(_)) && fault.host() == Some(&self.at));
        if has_busy_core {
            return Err(String::from("busy-core at the same host needs offloads; leave one of the two out"));
        }
        Ok(())
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        interface.namespace.enter(|| Ethtool::open()?.disable_offloads(interface.name))?
    }
}
