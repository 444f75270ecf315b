//! Drop filter: a packet filter of the host drops what comes in faster than a rate of packets.

use super::{HostInterface, Kind};
use crate::linux::bench::Bench;
use crate::linux::policer::{self, Limit};
use crate::linux::written;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::netfilter::drop_above;
use linerate_sys::netlink::Route;
use linerate_sys::shaping::Way;
use linerate_units::FrameRate;
use serde::Deserialize;

/// Filter of the host that drops received packets above a rate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropFilter {
    /// The host.
    pub at: HostName,
    /// The packets per second that pass.
    #[serde(deserialize_with = "written::number")]
    pub above: FrameRate,
    /// Kind of the filter; traffic control by default.
    #[serde(default)]
    pub by: FilterKind,
}

/// Kinds of packet filters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterKind {
    /// A filter of traffic control where the interface receives; its `clsact` discipline counts the drops.
    #[default]
    Tc,
    /// A rule of nftables in the chain `input`; its counter counts the drops.
    Netfilter,
}

/// Packets that may come back to back, as a share of a second of the rate, and at the least: TCP sends some that way,
/// and a longer burst would pass for a higher rate in a short trial.
const BURST_SHARE: u64 = 100;
const BURST_MINIMUM: u64 = 5;

impl DropFilter {
    fn burst(&self) -> u32 {
        u32::try_from((self.above.get() / BURST_SHARE).max(BURST_MINIMUM)).unwrap_or(u32::MAX)
    }
}

impl Kind for DropFilter {
    fn name(&self) -> &'static str {
        "drop-filter"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn variant(&self) -> &'static str {
        match self.by {
            FilterKind::Tc => "tc",
            FilterKind::Netfilter => "netfilter",
        }
    }

    fn check(&self, _bench: &Bench) -> Result<(), String> {
        match self.above.get() {
            0 => Err(String::from("above: 1 packet per second or more passes")),
            _ => Ok(()),
        }
    }

    /// The interface needs a receive queue of its own, in which nothing is joined.
    fn frame_by_frame(&self) -> bool {
        true
    }

    fn drops_at_interface(&self) -> bool {
        self.by == FilterKind::Tc
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        interface.namespace.enter(|| {
            let mut route = Route::open()?;
            let link = route.index_of(interface.name)?;
            // Both filters would take for one packet what was joined from several.
            route.disable_gro(link)?;
            match self.by {
                FilterKind::Tc => policer::install(link, Way::In, &Limit::frames(self.above, self.burst())),
                FilterKind::Netfilter => drop_above(self.above, self.burst()),
            }
        })?
    }
}
