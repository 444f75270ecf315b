//! CPU quota: a control group allows the host's agent a share of one core.

use super::{Kind, check_share};
use crate::LabError;
use crate::linux::bench::Bench;
use crate::linux::child_processes::ChildProcesses;
use crate::linux::written;
use linerate_model::HostName;
use linerate_units::Ratio;
use serde::Deserialize;

/// The host's agent gets no more than a share of one core.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuQuota {
    /// The host.
    pub at: HostName,
    /// The share of one core's time.
    #[serde(deserialize_with = "written::text")]
    pub ratio: Ratio,
}

impl Kind for CpuQuota {
    fn name(&self) -> &'static str {
        "cpu-quota"
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

    fn plant_in_process(&self, children: &mut ChildProcesses, agent: u32) -> Result<(), LabError> {
        children.limit(agent, self.ratio)
    }
}
