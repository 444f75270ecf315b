//! Whether the other end of a virtual link takes what XDP sends to it.
//!
//! A veth passes on frames sent by XDP only if its other end has an XDP program or GRO (veth_xdp_xmit of drivers/net/veth.c).
//! Otherwise they are dropped silently: the call succeeds, and no counter rises, not even the port's own. Other drivers are not
//! checked: not all of them count what XDP sends.

use crate::FrameError;
use crate::plan::Plan;
use linerate_sys::Error;
use linerate_sys::netlink::{Link, Route};

/// A link so much slower than its sender is no link: the device's work is done on the same machine.
const LEAST_SHARE: u64 = 100;
/// Frames besides the trial's that may have been counted: the kernel's own, of neighbours and groups.
const OTHERS: u64 = 16;

/// The virtual links that a trial sends by.
pub(crate) struct VirtualLinks {
    before: Vec<Link>,
}

impl VirtualLinks {
    /// Those of `plan`, before it sends.
    pub(crate) fn of(plan: &Plan) -> Result<Self, Error> {
        let sends = |link: &Link| {
            let mut ports = plan.streams.iter().filter_map(|stream| stream.from);
            link.kind == "veth" && ports.any(|port| plan.ports[port].link == link.index)
        };
        Ok(Self { before: Route::open()?.links()?.into_iter().filter(sends).collect() })
    }

    /// Refuses if one of them carried next to nothing; `sent` says how many frames each was given.
    pub(crate) fn check(&self, sent: impl Fn(u32) -> u64) -> Result<(), FrameError> {
        if self.before.is_empty() {
            return Ok(());
        }
        let now = Route::open()?.links()?;
        let rose = |then: &Link| {
            let now = now.iter().find(|link| link.index == then.index)?;
            Some(now.counters.tx_packets.saturating_sub(then.counters.tx_packets))
        };
        match self.before.iter().find(|link| rose(link).is_some_and(|rose| !takes(sent(link.index), rose))) {
            Some(link) => Err(FrameError::NotTaken(link.name.clone())),
            None => Ok(()),
        }
    }
}

fn takes(sent: u64, rose: u64) -> bool {
    rose >= (sent / 2).min(OTHERS + sent / LEAST_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hardly_rose_was_not_taken() {
        assert!(takes(0, 0) && takes(10, 9) && takes(1_000, 900) && takes(6_000_000, 200_000));
        assert!(!takes(2, 0) && !takes(200, 8) && !takes(6_000_000, 40));
    }
}
