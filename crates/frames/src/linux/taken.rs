//! Check that the other end of a virtual link accepts frames of XDP.
//!
//! A veth passes on frames sent by XDP only if its other end has an XDP program or GRO (veth_xdp_xmit of
//! drivers/net/veth.c). Otherwise they are dropped silently: the call succeeds, and no counter rises, not even that of
//! the port. Other drivers are not checked, because not all of them count frames of XDP.

use crate::FrameError;
use crate::linux::plan::Plan;
use linerate_sys::Error;
use linerate_sys::interface::Link;
use linerate_sys::netlink::Route;

/// Divisor of the sent frames that the link must carry at least. The device works on the same machine, so it cannot be
/// slower.
const LEAST_SHARE: u64 = 100;
/// Other frames that may have been counted: the kernel's frames for neighbours and groups.
const OTHERS: u64 = 16;

/// Virtual links of the sending ports of a trial.
pub(crate) struct VirtualLinks {
    before: Vec<Link>,
}

impl VirtualLinks {
    /// Reads the links of `plan` before it sends.
    pub(crate) fn of(plan: &Plan) -> Result<Self, Error> {
        let mut before = Route::open()?.links()?;
        before.retain(|link| {
            let mut ports = plan.streams.iter().filter_map(|stream| stream.from);
            link.kind == "veth" && ports.any(|port| plan.ports[port].link == link.index)
        });
        Ok(Self { before })
    }

    /// Returns an error if a link carried almost nothing. `sent` returns the number of frames sent to a link.
    pub(crate) fn check(&self, sent: impl Fn(u32) -> u64) -> Result<(), FrameError> {
        if self.before.is_empty() {
            return Ok(());
        }
        let links = Route::open()?.links()?;
        for before in &self.before {
            let Some(after) = links.iter().find(|link| link.index == before.index) else { continue };
            let carried = after.counters.tx_packets.saturating_sub(before.counters.tx_packets);
            if !is_enough(sent(before.index), carried) {
                return Err(FrameError::NotTaken(before.name.clone()));
            }
        }
        Ok(())
    }
}

/// Returns whether a link that carried this number of frames accepted those sent to it.
fn is_enough(sent: u64, carried: u64) -> bool {
    carried >= (sent / 2).min(OTHERS + sent / LEAST_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_an_idle_counter_were_dropped() {
        assert!(is_enough(0, 0) && is_enough(10, 9) && is_enough(1_000, 900) && is_enough(6_000_000, 200_000));
        assert!(!is_enough(2, 0) && !is_enough(200, 8) && !is_enough(6_000_000, 40));
    }
}
