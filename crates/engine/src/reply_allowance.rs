//! How much may be sent to addresses that have not proved that they read it.
//!
//! The source of a datagram can be forged. A reply is therefore no larger than its request, and replies to strangers have a
//! rate of their own, however many requests come: so little that `linerate serve --max-rate` need not count it.

/// Replies per second to strangers.
const PER_SECOND: u64 = 2_000;
/// Nanoseconds that one reply takes of the allowance.
const EACH_NS: u64 = 1_000_000_000 / PER_SECOND;
/// Nanoseconds of allowance that are saved up at the most.
const SAVED_NS: u64 = 1_000_000_000;

/// Allowance of one socket or thread for replies to strangers: 2,000 per second.
#[derive(Debug, Default)]
pub struct ReplyAllowance {
    /// The allowance is used up to this moment, nanoseconds.
    used_until: u64,
}

impl ReplyAllowance {
    /// Whether a stranger may be sent a reply of `reply_bytes` to a request of `request_bytes` at `now`, nanoseconds. If so, it
    /// counts.
    pub fn allow(&mut self, request_bytes: usize, reply_bytes: usize, now: u64) -> bool {
        let used_until = self.used_until.max(now.saturating_sub(SAVED_NS));
        if reply_bytes > request_bytes || used_until + EACH_NS > now {
            return false;
        }
        self.used_until = used_until + EACH_NS;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_to_strangers_are_no_larger_than_requests_and_have_a_rate() {
        let mut allowance = ReplyAllowance::default();
        let second = 1_000_000_000;
        assert!(!allowance.allow(40, 41, 10 * second));
        let mut at = |now| (0..10_000).filter(|_| allowance.allow(40, 40, now)).count();
        assert_eq!(at(10 * second), 2_000);
        assert_eq!(at(10 * second + second / 2), 1_000);
        assert_eq!(at(100 * second), 2_000, "no more is saved up");
    }
}
