//! How long an agent waits for others.

use std::time::Duration;

/// Times that connections may go without the token, and sessions without their runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TLS must be set up this soon after a connection was accepted.
    pub handshake: Duration,
    /// A connection that has not carried a request with the token this long after it was accepted is closed.
    pub unadmitted: Duration,
    /// The body of a request must have come this soon after its head.
    pub body: Duration,
    /// A session that waits longer for its next order is stopped, as long as setting up may take besides. No start may
    /// be delayed longer either. A cut of 30 s fits in, with the time to connect again.
    pub unordered: Duration,
    /// Time for which a session goes on after the last connection that followed it has closed. Its runner may come back
    /// with the session's key until then.
    pub unfollowed: Duration,
    /// Counts not fetched this long after the session was done are dropped.
    pub unfetched: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            unadmitted: Duration::from_secs(10),
            body: Duration::from_secs(30),
            unordered: Duration::from_secs(60),
            // A cut of 30 s, and time for two attempts to connect (`CONNECT_TIMEOUT` of the client).
            unfollowed: Duration::from_secs(40),
            unfetched: Duration::from_secs(120),
        }
    }
}
