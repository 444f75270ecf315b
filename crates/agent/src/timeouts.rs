//! How long an agent waits for others.

use std::time::Duration;

/// How long connections may go without the token, and sessions without their runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TLS must be set up this soon after a connection was accepted.
    pub handshake: Duration,
    /// A connection that has not carried a request with the token this long after it was accepted is closed.
    pub unadmitted: Duration,
    /// The body of a request must have come this soon after its head.
    pub body: Duration,
    /// A session that waits longer for its next order is stopped, as long as setting up may take besides. No start may be
    /// delayed longer either.
    pub unordered: Duration,
    /// Counts not fetched this long after the session was done are dropped.
    pub unfetched: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            unadmitted: Duration::from_secs(10),
            body: Duration::from_secs(30),
            unordered: Duration::from_secs(30),
            unfetched: Duration::from_secs(120),
        }
    }
}
