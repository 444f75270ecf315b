//! Limits for replies to addresses that have not proved that they read them.
//!
//! The source of a datagram can be forged. A reply is therefore no larger than its request, and the rate of such
//! replies is limited. Callers with a session's key have a rate per socket. All other callers share one rate of the
//! whole agent, within `linerate serve --max-rate` less the rates of its sessions.

use linerate_units::BitRate;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Replies per second of each allowance.
const PER_SECOND: u64 = 2_000;
/// Fewest nanoseconds of allowance that one reply uses.
const EACH_NS: u64 = 1_000_000_000 / PER_SECOND;
/// Most nanoseconds of allowance that are saved up.
const SAVED_NS: u64 = 1_000_000_000;

/// Allowance of one socket or thread for replies to callers with the session's key: 2,000 per second.
#[derive(Debug, Default)]
pub struct ReplyAllowance {
    /// Time up to which the allowance is used, nanoseconds.
    used_until: u64,
}

impl ReplyAllowance {
    /// Returns whether a reply of `reply_bytes` may be sent for a request of `request_bytes` at `now`, nanoseconds. If
    /// so, counts it.
    pub fn allow(&mut self, request_bytes: usize, reply_bytes: usize, now: u64) -> bool {
        reply_bytes <= request_bytes && self.take(EACH_NS, now)
    }

    /// Uses `each_ns` of the allowance, unless it is used up at `now`.
    fn take(&mut self, each_ns: u64, now: u64) -> bool {
        let used_until = self.used_until.max(now.saturating_sub(SAVED_NS)).saturating_add(each_ns);
        if used_until > now {
            return false;
        }
        self.used_until = used_until;
        true
    }
}

/// Allowance of a whole agent for replies to callers without a key, shared by all its sockets: 2,000 per second, within
/// the rate limit less the rates of its sessions.
#[derive(Debug, Default)]
pub struct StrangerReplies {
    limit: Option<BitRate>,
    state: Mutex<Used>,
}

/// Used part of the allowance.
#[derive(Debug, Default)]
struct Used {
    /// Bits per second that running sessions send.
    by_sessions: u64,
    allowance: ReplyAllowance,
}

/// Reservation of a session's rate, which replies cannot use meanwhile. Dropping it ends the reservation.
#[derive(Debug)]
#[must_use = "it lasts as long as this value"]
pub struct SendingSession {
    replies: Arc<StrangerReplies>,
    bits_per_second: u64,
}

impl StrangerReplies {
    /// Returns the allowance of an agent with this rate limit. `None` is unlimited.
    pub fn within(limit: Option<BitRate>) -> Self {
        Self { limit, state: Mutex::default() }
    }

    /// Counts a session that sends at `rate` until the returned value is dropped.
    pub fn session(self: &Arc<Self>, rate: BitRate) -> SendingSession {
        let bits_per_second = rate.get();
        let mut used = self.used();
        used.by_sessions = used.by_sessions.saturating_add(bits_per_second);
        SendingSession { replies: Arc::clone(self), bits_per_second }
    }

    /// Returns whether a reply of `reply_bytes` may be sent to a caller without a key at `now`, nanoseconds. If so,
    /// counts it.
    pub fn allow(&self, reply_bytes: usize, now: u64) -> bool {
        let mut used = self.used();
        let left = self.limit.map(|limit| limit.get().saturating_sub(used.by_sessions));
        let each_ns = match left {
            None => EACH_NS,
            Some(0) => return false,
            Some(left) => (reply_bytes as u64).saturating_mul(8_000_000_000).div_ceil(left).max(EACH_NS),
        };
        used.allowance.take(each_ns, now)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SendingSession {
    fn drop(&mut self) {
        let mut used = self.replies.used();
        used.by_sessions = used.by_sessions.saturating_sub(self.bits_per_second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn replies_are_limited_in_size_and_rate() {
        let mut allowance = ReplyAllowance::default();
        assert!(!allowance.allow(40, 41, 10 * SECOND));
        for (now, replies) in [(10 * SECOND, 2_000), (10 * SECOND + SECOND / 2, 1_000), (100 * SECOND, 2_000)] {
            assert_eq!((0..10_000).filter(|_| allowance.allow(40, 40, now)).count(), replies);
        }
    }

    #[test]
    fn unauthenticated_replies_and_sessions_share_the_rate_limit() {
        assert_eq!(replies_at(&replies_within(None), 10 * SECOND), 2_000);
        assert_eq!(replies_at(&replies_within(Some(1_000_000_000)), 10 * SECOND), 2_000, "their own rate is lower");
        // A reply has 800 bits.
        let replies = replies_within(Some(80_000));
        assert_eq!(replies_at(&replies, 10 * SECOND), 100);
        let session = replies.session(BitRate::per_second(60_000));
        assert_eq!(replies_at(&replies, 20 * SECOND), 25, "a session sends the rest");
        let other = replies.session(BitRate::per_second(20_000));
        assert_eq!(replies_at(&replies, 30 * SECOND), 0, "sessions use the whole rate");
        drop((session, other));
        assert_eq!(replies_at(&replies, 40 * SECOND), 100);
    }

    fn replies_within(limit: Option<u64>) -> Arc<StrangerReplies> {
        Arc::new(StrangerReplies::within(limit.map(BitRate::per_second)))
    }

    /// Returns the number of allowed replies of 100 bytes at a time.
    fn replies_at(replies: &StrangerReplies, now: u64) -> usize {
        (0..10_000).filter(|_| replies.allow(100, now)).count()
    }
}
