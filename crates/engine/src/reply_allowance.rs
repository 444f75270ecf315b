//! How much may be sent to addresses that have not proved that they read it.
//!
//! The source of a datagram can be forged. A reply is therefore no larger than its request, and such replies have a rate, however
//! many requests come. Callers that show a session's key have a rate for each socket. Strangers have one for the whole agent,
//! within what `linerate serve --max-rate` leaves of its sessions.

use linerate_units::BitRate;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Replies per second, for each allowance.
const PER_SECOND: u64 = 2_000;
/// Nanoseconds that one reply takes of the allowance at least.
const EACH_NS: u64 = 1_000_000_000 / PER_SECOND;
/// Nanoseconds of allowance that are saved up at the most.
const SAVED_NS: u64 = 1_000_000_000;

/// Allowance of one socket or thread for replies to callers with the session's key: 2,000 per second.
#[derive(Debug, Default)]
pub struct ReplyAllowance {
    /// The allowance is used up to this moment, nanoseconds.
    used_until: u64,
}

impl ReplyAllowance {
    /// Whether a caller may be sent a reply of `reply_bytes` to a request of `request_bytes` at `now`, nanoseconds. If so, it
    /// counts.
    pub fn allow(&mut self, request_bytes: usize, reply_bytes: usize, now: u64) -> bool {
        reply_bytes <= request_bytes && self.take(EACH_NS, now)
    }

    /// Takes `each_ns` of the allowance, unless it is used up at `now`.
    fn take(&mut self, each_ns: u64, now: u64) -> bool {
        let used_until = self.used_until.max(now.saturating_sub(SAVED_NS)).saturating_add(each_ns);
        if used_until > now {
            return false;
        }
        self.used_until = used_until;
        true
    }
}

/// Allowance of a whole agent for replies to strangers, shared by all its sockets: 2,000 per second, within what a limit of rate
/// leaves of what its sessions send.
#[derive(Debug, Default)]
pub struct StrangerReplies {
    limit: Option<BitRate>,
    state: Mutex<Used>,
}

/// How much of the allowance is taken.
#[derive(Debug, Default)]
struct Used {
    /// Bits per second that sessions under way send.
    by_sessions: u64,
    allowance: ReplyAllowance,
}

/// What a session sends, which strangers cannot be sent meanwhile. Dropping it ends that.
#[derive(Debug)]
#[must_use = "it lasts as long as this value"]
pub struct SendingSession {
    replies: Arc<StrangerReplies>,
    bits_per_second: u64,
}

impl StrangerReplies {
    /// Returns the allowance of an agent that may send as much as `limit`; `None` is without a limit.
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

    /// Whether a stranger may be sent a reply of `reply_bytes` at `now`, nanoseconds. If so, it counts.
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
    fn replies_without_a_proven_address_are_no_larger_than_requests_and_have_a_rate() {
        let mut allowance = ReplyAllowance::default();
        assert!(!allowance.allow(40, 41, 10 * SECOND));
        let mut at = |now| (0..10_000).filter(|_| allowance.allow(40, 40, now)).count();
        assert_eq!(at(10 * SECOND), 2_000);
        assert_eq!(at(10 * SECOND + SECOND / 2), 1_000);
        assert_eq!(at(100 * SECOND), 2_000, "no more is saved up");
    }

    #[test]
    fn replies_to_strangers_and_sessions_share_the_limit_of_rate() {
        let strangers = |limit: Option<u64>| Arc::new(StrangerReplies::within(limit.map(BitRate::per_second)));
        let at = |replies: &StrangerReplies, now| (0..10_000).filter(|_| replies.allow(100, now)).count();
        assert_eq!(at(&strangers(None), 10 * SECOND), 2_000);
        assert_eq!(at(&strangers(Some(1_000_000_000)), 10 * SECOND), 2_000, "their own rate is lower");
        // A reply has 800 bits.
        let replies = strangers(Some(80_000));
        assert_eq!(at(&replies, 10 * SECOND), 100);
        let session = replies.session(BitRate::per_second(60_000));
        assert_eq!(at(&replies, 20 * SECOND), 25, "a session sends the rest");
        let other = replies.session(BitRate::per_second(20_000));
        assert_eq!(at(&replies, 30 * SECOND), 0, "all is sent by sessions");
        drop((session, other));
        assert_eq!(at(&replies, 40 * SECOND), 100);
    }
}
