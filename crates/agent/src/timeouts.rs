//! Time limits of an agent for clients that go silent.

use std::time::Duration;

/// How long an agent waits for its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A connection without a request that carried the token is closed this long after it was accepted.
    pub unadmitted: Duration,
    /// A trial not started this long after it was prepared is dropped. No start may be delayed longer either.
    pub unstarted: Duration,
    /// A result not fetched this long after the trial was done is dropped.
    pub unfetched: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            unadmitted: Duration::from_secs(10),
            unstarted: Duration::from_secs(30),
            unfetched: Duration::from_secs(120),
        }
    }
}
