//! When a call over UDP is sent again. RFC 5531 leaves this to the program.
//!
//! The first timeout comes from the measured time of replies as in RFC 6298 section 2, and each further one of the same call
//! is twice the one before (section 5.5). Calls that were sent again are not measured (Karn's algorithm, section 3).

/// How long to wait for a reply.
#[derive(Debug, Clone, Copy)]
pub struct Retransmission {
    /// Smoothed time of a reply and its variation, nanoseconds; none before the first.
    smoothed: Option<(u64, u64)>,
    /// The timeout in force.
    timeout: u64,
}

/// Before anything was measured: RFC 6298 (2.1).
const INITIAL_NS: u64 = 1_000_000_000;
/// Never sooner than this. RFC 6298 (2.4) says 1 s for TCP across the Internet; a server that sits still for a moment,
/// as on a busy core, must not be sent everything twice. Linux's TCP takes the same 200 ms.
const LEAST_NS: u64 = 200_000_000;
/// Never later than this: a call must be given a few more chances before it is given up.
const MOST_NS: u64 = 4_000_000_000;
/// A call without a reply after this is given up.
pub(super) const GIVE_UP_NS: u64 = 15_000_000_000;

impl Default for Retransmission {
    fn default() -> Self {
        Self { smoothed: None, timeout: INITIAL_NS }
    }
}

impl Retransmission {
    /// The reply to a call that was sent once took so long.
    pub(super) fn measured(&mut self, took: u64) {
        // RFC 6298 (2.2) and (2.3): alpha is 1/8, beta 1/4.
        let (smoothed, variation) = match self.smoothed {
            None => (took, took / 2),
            Some((smoothed, variation)) => ((7 * smoothed + took) / 8, (3 * variation + smoothed.abs_diff(took)) / 4),
        };
        self.smoothed = Some((smoothed, variation));
        self.timeout = (smoothed + 4 * variation).clamp(LEAST_NS, MOST_NS);
    }

    /// How long to wait for the reply to a call that was sent again `again` times.
    pub(super) fn timeout(&self, again: u32) -> u64 {
        self.timeout.saturating_mul(1 << again.min(10)).min(MOST_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_replies_and_doubles() {
        let mut retransmission = Retransmission::default();
        assert_eq!(retransmission.timeout(0), 1_000_000_000);
        retransmission.measured(100_000_000);
        // 100 + 4 * 50.
        assert_eq!(retransmission.timeout(0), 300_000_000);
        assert_eq!([1, 2, 3].map(|again| retransmission.timeout(again)), [600_000_000, 1_200_000_000, 2_400_000_000]);
        (0..200).for_each(|_| retransmission.measured(100_000_000));
        assert_eq!(retransmission.timeout(0), LEAST_NS, "steady replies leave no variation");
        (0..200).for_each(|_| retransmission.measured(50_000));
        assert_eq!((retransmission.timeout(0), retransmission.timeout(40)), (LEAST_NS, MOST_NS));
    }
}
