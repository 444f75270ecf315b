//! Silence of the peer of a TCP connection: the time without acknowledgement of sent data.
//!
//! TCP_USER_TIMEOUT (RFC 5482) does not measure that: Linux also ends a connection with a closed window after this
//! time, although the peer acknowledges every probe (tcp_probe_timer of net/ipv4/tcp_timer.c).

use linerate_sys::handle::BorrowedSocket;
use linerate_sys::{Error, clock, tcp};
use std::time::Duration;

/// Silence after which a peer counts as gone. A trial continues after a shorter outage of the path: a cut of 30 s ends
/// for TCP up to 64 s after its beginning, because the back-off doubles (RFC 6298 section 5.5).
pub const PEER_GONE: Duration = Duration::from_secs(90);

/// Interval of probing idle connections. NATs and firewalls forget idle connections, some of them within 20 s.
pub const KEEPALIVE: Duration = Duration::from_secs(5);
/// Number of unanswered probes after which a peer is gone.
pub const KEEPALIVE_RETRIES: u32 = (PEER_GONE.as_secs() / KEEPALIVE.as_secs()) as u32;

/// Shortest interval of readings.
const PERIOD_NS: u64 = 500_000_000;
/// Longest interval of readings that still shows the time between them.
const PAUSE_NS: u64 = 5_000_000_000;

/// Silence of the peer of one connection.
#[derive(Debug)]
pub struct PeerSilence {
    /// Last sign of the peer, or last time at which none was due.
    since: u64,
    /// Time of the last reading.
    looked: u64,
    /// Result of the last reading.
    silent: u64,
}

impl Default for PeerSilence {
    fn default() -> Self {
        let now = clock::now();
        Self { since: now, looked: now, silent: 0 }
    }
}

impl PeerSilence {
    /// Reads the state of the connection. It should be called every second or more often.
    ///
    /// Returns the silence of the peer in nanoseconds: zero if it has acknowledged everything that it has room for. `None` if the system
    /// does not report acknowledgements.
    ///
    /// # Errors
    /// The descriptor is not a TCP connection.
    pub fn look(&mut self, connection: BorrowedSocket<'_>) -> Result<Option<u64>, Error> {
        let now = clock::now();
        if now >= self.looked + PERIOD_NS {
            let Some(info) = tcp::info(connection)? else { return Ok(None) };
            self.silent = self.at(now, &info);
        }
        Ok(Some(self.silent))
    }

    fn at(&mut self, now: u64, info: &tcp::Info) -> u64 {
        if info.unacked == 0 || now > self.looked + PAUSE_NS {
            self.since = now;
        }
        self.looked = now;
        let acknowledged = now.saturating_sub(u64::from(info.last_ack_recv) * 1_000_000);
        self.since = self.since.max(acknowledged);
        now - self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn info(unacked: u32, last_ack_s: u32) -> tcp::Info {
        tcp::Info { unacked, last_ack_recv: last_ack_s * 1_000, ..tcp::Info::default() }
    }

    #[test]
    fn silence_needs_unacknowledged_data() {
        let begin = 100 * SECOND;
        let mut silence = PeerSilence { since: begin, looked: begin, silent: 0 };
        let mut after =
            |seconds: u64, unacked, last_ack| silence.at(begin + seconds * SECOND, &info(unacked, last_ack));
        assert_eq!(after(1, 3, 1), SECOND, "nothing was acknowledged since the beginning");
        assert_eq!(after(2, 3, 0), 0, "an acknowledgement");
        assert_eq!(after(4, 3, 2), 2 * SECOND);
        // With a closed window, all sent data are acknowledged, and probes are rare.
        for second in 5..60 {
            assert_eq!(after(second, 0, second as u32), 0);
        }
        assert_eq!(after(60, 1, 58), SECOND, "data sent after a long pause have their own time");
        assert_eq!(after(64, 1, 62), 5 * SECOND);
        assert_eq!(after(80, 1, 78), 0, "nobody looked for a while");
    }
}
