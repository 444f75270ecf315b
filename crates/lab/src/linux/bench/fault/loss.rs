//! Loss: frames vanish on the wire, each by chance.

use super::{FaultPlace, Kind};
use crate::linux::bench::{Bench, DeviceKind};
use crate::linux::written;
use linerate_model::HostName;
use linerate_units::Ratio;
use serde::Deserialize;

/// A share of the frames of one direction of a link is lost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The direction.
    #[serde(deserialize_with = "written::text")]
    pub at: FaultPlace,
    /// The share of the frames.
    #[serde(deserialize_with = "written::text")]
    pub ratio: Ratio,
}

impl Kind for Loss {
    fn name(&self) -> &'static str {
        "loss"
    }

    fn host(&self) -> Option<&HostName> {
        Some(self.at.host())
    }

    fn at(&self) -> String {
        self.at.to_string()
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        if matches!(self.at, FaultPlace::To(_)) && bench.device.kind == DeviceKind::None {
            return Err(String::from("this bench has no device; name the host that sends"));
        }
        check_loss(bench, self.ratio)
    }

    /// Returns false: the loss is on the wire, which raw frames pass too.
    fn in_stack(&self) -> bool {
        false
    }
}

/// Checks that links of `bench` may lose `ratio` of their frames; says what is wrong.
pub(crate) fn check_loss(bench: &Bench, ratio: Ratio) -> Result<(), String> {
    if bench.device.kind == DeviceKind::None && !bench.testers.is_empty() {
        let why = "what comes by a cable a tester has counted before it can be lost; put a device in between";
        return Err(String::from(why));
    }
    if ratio.of == 0 || ratio.part > ratio.of {
        return Err(String::from("a ratio is at most 1"));
    }
    Ok(())
}
