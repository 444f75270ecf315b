//! Host queue: the host's own queueing discipline holds back what it sends.

use super::{HostInterface, Kind};
use crate::linux::bench::{Bench, RATE_MINIMUM};
use crate::linux::ethernet::{self, End};
use crate::linux::written;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::netlink::Route;
use linerate_sys::shaping::EthernetShape;
use linerate_units::{BitRate, ByteCount};
use serde::Deserialize;

/// Ethernet header and one VLAN tag, bytes.
const HEADERS: u32 = 14 + 4;

/// A token bucket at the root of the host's interface. The speed that the interface declares stays that of its link.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostQueue {
    /// The host.
    pub at: HostName,
    /// The rate, on the wire.
    #[serde(deserialize_with = "written::text")]
    pub rate: BitRate,
    /// Length of the queue in bytes of frames; further frames are dropped.
    #[serde(deserialize_with = "written::text")]
    pub queue: ByteCount,
}

impl Kind for HostQueue {
    fn name(&self) -> &'static str {
        "host-queue"
    }

    fn host(&self) -> Option<&HostName> {
        Some(&self.at)
    }

    fn check(&self, bench: &Bench) -> Result<(), String> {
        let link = bench.link_of(&self.at);
        if self.rate < RATE_MINIMUM {
            return Err(format!("rate: {} is below {RATE_MINIMUM}", self.rate));
        }
        if let Some(rate) = link.rate.filter(|rate| *rate <= self.rate) {
            return Err(format!("rate: {} is no limit, because the link itself has {rate}", self.rate));
        }
        let longest_frame = u64::from(bench.mtu_of(&self.at) + HEADERS);
        if !(longest_frame..=u64::from(u32::MAX)).contains(&self.queue.get()) {
            return Err(format!("queue: it holds {longest_frame} B (one frame) to 4 GiB, not {}", self.queue));
        }
        Ok(())
    }

    fn frame_by_frame(&self) -> bool {
        true
    }

    fn plant(&self, interface: &HostInterface<'_>) -> Result<(), Error> {
        let queue_bytes = u32::try_from(self.queue.get()).unwrap_or(u32::MAX);
        let shape = EthernetShape { queue_bytes, ..ethernet::shape(End::Host, self.rate, interface.mtu) };
        interface.namespace.enter(|| {
            let mut route = Route::open()?;
            let link = route.index_of(interface.name)?;
            route.shape(link, &shape)
        })?
    }
}
