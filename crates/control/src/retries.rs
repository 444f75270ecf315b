//! Decides when and how long a request without an answer is repeated on a new connection.
//!
//! The network under test may carry the requests too: it may be down for a while, a NAT may forget connections, or the
//! controller may get another address. The agent keeps sessions and counts meanwhile.

use std::time::{Duration, Instant};

/// Pause after the first failure. It doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A host that refuses connections for this long has no agent any more. An agent that restarts has lost its sessions.
const REFUSED: Duration = Duration::from_secs(1);
/// An agent that is absent from its fleet for this long is given up. After a restart of NATS, agents come back within
/// 10 s (`LONGEST_PAUSE` of the crate `bus`) and the time to connect.
const ABSENT: Duration = Duration::from_secs(20);

/// How a request failed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The host refused the connection.
    Refused,
    /// No agent of this name is connected to its fleet.
    Absent,
    /// The connection broke, or no answer arrived in time.
    Silent,
}

/// The state of one request that may be repeated.
#[derive(Debug)]
pub(crate) struct Retries {
    until: Instant,
    pause: Duration,
    /// Kind of the latest failures, and the time of the first of them.
    failing: Option<(Unanswered, Instant)>,
}

impl Retries {
    /// Repeats a request for `longest`, counted from `now`.
    pub(crate) fn new(longest: Duration, now: Instant) -> Self {
        Self { until: now + longest, pause: FIRST_PAUSE, failing: None }
    }

    /// Returns the pause before the request is repeated. `None` if it is given up.
    pub(crate) fn pause(&mut self, why: Unanswered, now: Instant) -> Option<Duration> {
        let (_, since) = *self.failing.insert(self.failing.filter(|(kind, _)| *kind == why).unwrap_or((why, now)));
        let is_gone = match why {
            Unanswered::Refused => now >= since + REFUSED,
            Unanswered::Absent => now >= since + ABSENT,
            Unanswered::Silent => false,
        };
        if is_gone || now >= self.until {
            return None;
        }
        let pause = self.pause;
        self.pause = (2 * pause).min(LONGEST_PAUSE);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(40);

    /// Returns how long a request is repeated whose attempts take `attempt` each and fail as `why` says.
    fn repeated(why: impl Fn(Duration) -> Unanswered, attempt: Duration) -> Duration {
        let begin = Instant::now();
        let mut retries = Retries::new(LONGEST, begin);
        let mut now = begin;
        loop {
            now += attempt;
            match retries.pause(why(now - begin), now) {
                Some(pause) => now += pause,
                None => return now - begin,
            }
        }
    }

    #[test]
    fn request_is_repeated_as_long_as_the_agent_keeps_its_session() {
        let silent = repeated(|_| Unanswered::Silent, Duration::from_secs(5));
        assert!((LONGEST..LONGEST + Duration::from_secs(6)).contains(&silent), "{silent:?}");
        let broken_at_once = repeated(|_| Unanswered::Silent, Duration::ZERO);
        assert!((LONGEST..LONGEST + Duration::from_secs(2)).contains(&broken_at_once), "{broken_at_once:?}");
    }

    #[test]
    fn absent_agent_may_connect_again_for_a_while() {
        let absent = repeated(|_| Unanswered::Absent, Duration::ZERO);
        assert!((ABSENT..ABSENT + Duration::from_secs(2)).contains(&absent), "{absent:?}");
        let back_and_gone =
            |since: Duration| if since.as_secs() == 15 { Unanswered::Silent } else { Unanswered::Absent };
        let restarted = repeated(back_and_gone, Duration::ZERO);
        assert!(restarted > Duration::from_secs(34), "{restarted:?}");
    }

    #[test]
    fn agent_that_was_killed_is_given_up_soon() {
        let refused = repeated(|_| Unanswered::Refused, Duration::ZERO);
        assert!((REFUSED..2 * REFUSED).contains(&refused), "{refused:?}");
        let restarted_host = repeated(
            |since| if since < Duration::from_secs(20) { Unanswered::Silent } else { Unanswered::Refused },
            Duration::from_secs(1),
        );
        assert!(restarted_host < Duration::from_secs(25), "{restarted_host:?}");
    }
}
