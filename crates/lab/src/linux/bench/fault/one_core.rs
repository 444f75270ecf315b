//! Single core: soft interrupts of the host's interface all run on one core.

use super::{HostInterface, Kind};
use crate::linux::bench::Bench;
use crate::linux::receiving;
use linerate_model::HostName;
use linerate_sys::Error;
use serde::Deserialize;

/// The host receives on one core, whoever sends: the last core of the machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneCore {
    /// The host.
    pub at: HostName,
}

impl Kind for OneCore {
    fn name(&self) -> &'static str {
        "one-core"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, _bench: &Bench) -> Result<(), String> {
        Ok(())
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        receiving::steer_to_last_core(interface.namespace, interface.name)
    }
}
