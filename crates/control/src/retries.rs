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

/// How a request failed without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The host refused the connection.
    Refused,
    /// The connection broke, or no answer arrived in time.
    Silent,
}

/// The state of one request that may be repeated.
#[derive(Debug)]
pub(crate) struct Retries {
    until: Instant,
    pause: Duration,
    refused_since: Option<Instant>,
}

impl Retries {
    /// Repeats a request for `longest`, counted from `now`.
    pub(crate) fn new(longest: Duration, now: Instant) -> Self {
        Self { until: now + longest, pause: FIRST_PAUSE, refused_since: None }
    }

    /// Returns the pause before the request is repeated. `None` if it is given up.
    pub(crate) fn pause(&mut self, why: Unanswered, now: Instant) -> Option<Duration> {
        self.refused_since = match why {
            Unanswered::Refused => self.refused_since.or(Some(now)),
            Unanswered::Silent => None,
        };
        let is_gone = self.refused_since.is_some_and(|since| now >= since + REFUSED);
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
