//! Parallel routers (ECMP): a router of a chain gets a second one, and its neighbours share the flows between the two.

use super::link_path::NO_CHAIN;
use super::{Fault, Kind};
use crate::linux::bench::{Bench, DeviceKind};
use crate::linux::written;
use linerate_model::HostName;
use serde::Deserialize;

/// Position in a chain with two parallel routers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecmp {
    /// The position; its routers are `2` and `2b` if it is 2.
    #[serde(deserialize_with = "written::number")]
    pub at: u8,
}

impl Kind for Ecmp {
    fn name(&self) -> &'static str {
        "ecmp"
    }

    fn host(&self) -> Option<&HostName> {
        None
    }

    fn at(&self) -> String {
        self.at.to_string()
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        let DeviceKind::Chain { routers } = bench.device.kind else { return Err(String::from(NO_CHAIN)) };
        if routers < 3 {
            return Err(format!(
                "parallel routers need a router on each side, and the chain has {routers} in all; add routers, as in \
                 --routers 3"
            ));
        }
        if !(2..routers).contains(&self.at) {
            return Err(format!(
                "parallel routers need a router on each side: at is 2 to {}; a host has one interface",
                routers - 1
            ));
        }
        if bench.parallel_routers().contains(&(self.at - 1)) {
            return Err(format!("routers {} are parallel already; leave a single router in between", self.at - 1));
        }
        Ok(())
    }
}

impl Bench {
    /// Returns the positions of a chain that have two parallel routers.
    pub(super) fn parallel_routers(&self) -> Vec<u8> {
        let positions = self.faults.iter().filter_map(|fault| match fault {
            Fault::Ecmp(ecmp) => Some(ecmp.at),
            _ => None,
        });
        positions.collect()
    }
}
