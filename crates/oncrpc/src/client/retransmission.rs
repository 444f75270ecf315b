//! When a call over UDP is sent again. RFC 5531 leaves this to the program.
//!
//! The first timeout comes from the measured time of replies as in RFC 6298 section 2, and each further one of the same
//! call is twice the one before (section 5.5). Calls that were sent again are not measured (Karn's algorithm, section
//! 3); until one that was sent once is answered, new calls keep the longer timeout. Without that, a slow link on which
//! every reply takes longer than the timeout would carry ever more copies and never a measurement.

/// Timeout of calls over UDP.
#[derive(Debug, Clone, Copy)]
pub struct Retransmission {
    /// Smoothed time of a reply and its variation, nanoseconds; none before the first.
    smoothed: Option<(u64, u64)>,
    /// Timeout by the measured times.
    timeout: u64,
    /// Largest number of retransmissions of one call since the last measurement.
    back_off: u32,
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
        Self { smoothed: None, timeout: INITIAL_NS, back_off: 0 }
    }
}

impl Retransmission {
    /// Takes the reply time of a call that was sent once.
    pub(super) fn measured(&mut self, took: u64) {
        // RFC 6298 (2.2) and (2.3): alpha is 1/8, beta 1/4.
        let (smoothed, variation) = match self.smoothed {
            None => (took, took / 2),
            Some((smoothed, variation)) => ((7 * smoothed + took) / 8, (3 * variation + smoothed.abs_diff(took)) / 4),
        };
        self.smoothed = Some((smoothed, variation));
        self.timeout = (smoothed + 4 * variation).clamp(LEAST_NS, MOST_NS);
        self.back_off = 0;
    }

    /// Takes the reply time of a call that was sent again, since its first and its last transmission. A reply that
    /// comes much sooner after the last transmission than replies do answers an earlier one, so its time is valid.
    pub(super) fn measured_again(&mut self, since_first: u64, since_last: u64) {
        if self.smoothed.is_some_and(|(smoothed, _)| since_last < smoothed / 2) {
            self.measured(since_first);
        }
    }

    /// Notes that a call is sent again for the time number `again`.
    pub(super) fn timed_out(&mut self, again: u32) {
        self.back_off = self.back_off.max(again);
    }

    /// Returns the timeout of a call that was sent again `again` times.
    pub(super) fn timeout(&self, again: u32) -> u64 {
        self.timeout.saturating_mul(1 << again.max(self.back_off).min(10)).min(MOST_NS)
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
        // New calls wait longer too, until one of them is answered.
        retransmission.timed_out(2);
        retransmission.timed_out(1);
        assert_eq!([0, 1, 3].map(|again| retransmission.timeout(again)), [1_200_000_000, 1_200_000_000, 2_400_000_000]);
        // The first of these answers the last time that the call was sent, the second an earlier time.
        retransmission.measured_again(1_300_000_000, 100_000_000);
        assert_eq!(retransmission.timeout(0), 1_200_000_000);
        retransmission.measured_again(1_300_000_000, 20_000_000);
        assert_eq!(retransmission.smoothed.map(|(smoothed, _)| smoothed), Some(250_000_000));
        (0..200).for_each(|_| retransmission.measured(100_000_000));
        assert_eq!(retransmission.timeout(0), LEAST_NS, "steady replies leave no variation");
        (0..200).for_each(|_| retransmission.measured(50_000));
        assert_eq!((retransmission.timeout(0), retransmission.timeout(40)), (LEAST_NS, MOST_NS));
    }
}
