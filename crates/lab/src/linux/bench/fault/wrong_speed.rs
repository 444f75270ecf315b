//! Wrong speed: the host's interface declares another speed than it has.

use super::Kind;
use crate::linux::bench::{Bench, RATE_MINIMUM};
use crate::linux::written;
use linerate_model::HostName;
use linerate_units::BitRate;
use serde::Deserialize;

/// Wrong declaration of the link's speed, as by a driver or a wrong setting.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongSpeed {
    /// The host.
    pub at: HostName,
    /// The speed that the interface declares.
    #[serde(deserialize_with = "written::text")]
    pub declared: BitRate,
}

impl Kind for WrongSpeed {
    fn name(&self) -> &'static str {
        "wrong-speed"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        if self.declared < RATE_MINIMUM {
            return Err(format!("declared: {} is below {RATE_MINIMUM}", self.declared));
        }
        match bench.link_of(&self.at).rate {
            Some(rate) if rate == self.declared => Err(format!("declared: {rate} is the speed it has")),
            _ => Ok(()),
        }
    }

    fn in_stack(&self) -> bool {
        false
    }
}
