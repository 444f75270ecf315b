//! How long the other end of a TCP connection has acknowledged nothing of what was sent to it.
//!
//! TCP_USER_TIMEOUT (RFC 5482) is no measure of that: Linux counts the time in which a live peer takes nothing too, and ends a connection
//! whose window stays closed for so long although every probe is acknowledged (tcp_probe_timer of net/ipv4/tcp_timer.c).

use linerate_sys::{Error, clock, tcp};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A peer that shows no sign for this long is gone. A shorter silence is an outage of the path, which a trial goes on after: a cut of
/// 30 s ends for TCP up to 64 s after its beginning, as its back-off doubles (RFC 6298 section 5.5).
pub const PEER_GONE: Duration = Duration::from_secs(90);

/// Idle connections are probed this often: NATs and firewalls forget connections that carry nothing, some of them within 20 s.
pub const KEEPALIVE: Duration = Duration::from_secs(5);
/// Probes that meet no answer before a peer is gone.
pub const KEEPALIVE_RETRIES: u32 = (PEER_GONE.as_secs() / KEEPALIVE.as_secs()) as u32;

/// The kernel is asked no more often.
const PERIOD_NS: u64 = 500_000_000;
/// After a longer pause between two looks nothing is known of the time in between.
const PAUSE_NS: u64 = 5_000_000_000;

/// Watches one connection.
#[derive(Debug)]
pub struct PeerSilence {
    /// The last sign of the peer, or the last time at which none was due.
    since: u64,
    looked: u64,
    /// What the last look returned.
    silent: u64,
}

impl Default for PeerSilence {
    fn default() -> Self {
        let now = clock::now();
        Self { since: now, looked: now, silent: 0 }
    }
}

impl PeerSilence {
    /// Looks at the connection, which should be done every second or more often. Returns how long the peer has been silent, nanoseconds: zero
    /// where it has acknowledged all that it has room for.
    ///
    /// # Errors
    /// It is no TCP connection.
    pub fn look(&mut self, connection: BorrowedFd<'_>) -> Result<u64, Error> {
        let now = clock::now();
        if now >= self.looked + PERIOD_NS {
            self.silent = self.at(now, &tcp::info(connection)?);
        }
        Ok(self.silent)
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
    fn only_what_is_under_way_and_not_acknowledged_is_silence() {
        let begin = 100 * SECOND;
        let mut silence = PeerSilence { since: begin, looked: begin, silent: 0 };
        let mut after =
            |seconds: u64, unacked, last_ack| silence.at(begin + seconds * SECOND, &info(unacked, last_ack));
        assert_eq!(after(1, 3, 1), SECOND, "nothing was acknowledged since the beginning");
        assert_eq!(after(2, 3, 0), 0, "an acknowledgement");
        assert_eq!(after(4, 3, 2), 2 * SECOND);
        // A closed window: all that was sent is acknowledged, and probes are rare.
        for second in 5..60 {
            assert_eq!(after(second, 0, second as u32), 0);
        }
        assert_eq!(after(60, 1, 58), SECOND, "what was sent after a long rest has its own time");
        assert_eq!(after(64, 1, 62), 5 * SECOND);
        assert_eq!(after(80, 1, 78), 0, "nobody looked for a while");
    }
}
