//! How long a receiver of bulk data over TCP sleeps: until what comes in a tenth of a millisecond is there.
//!
//! A receiver that is faster than its sender is woken for each piece otherwise, and it is the sender's processor that wakes it: over a link that
//! no line limits, one flow went from 17 to 23 Gbit/s in debug builds (docs/benchmarks.md).

use crate::error::StreamError;
use crate::flow::Wire;
use linerate_sys::{clock, tcp};
use std::net::TcpStream;

/// What comes within this is waited for.
const NAP_NS: u64 = 100_000;
/// So often the rate is looked at.
const LOOK_NS: u64 = 10_000_000;
/// No more is waited for: more hardly spares wakes, and leaves the caches.
const MOST: u64 = 256 << 10;
/// The same from and to iperf3, whose clients are to see what they see of its own server: it comes nearest with two of the kernel's pieces of
/// 64 KB for each wake (docs/benchmarks.md).
const MOST_OF_IPERF3: u64 = 64 << 10;
/// Less than this is not worth waiting for: it is a segment or two.
const LEAST: u64 = 4 << 10;

/// How much a receiver waits for.
pub(super) struct Naps {
    most: u64,
    /// What the socket was told last.
    low_water: u64,
    /// What has come since the rate was looked at, and when that was.
    bytes: u64,
    since: u64,
}

impl Naps {
    pub(super) fn new(wire: Wire) -> Self {
        let most = if wire == Wire::Own { MOST } else { MOST_OF_IPERF3 };
        Self { most, low_water: 1, bytes: 0, since: clock::now() }
    }

    /// Takes note of `bytes` that `stream` gave at `now`, and of the rate from time to time. A read that its timeout ended shows a low one.
    #[inline]
    pub(super) fn took(&mut self, stream: &TcpStream, bytes: u64, now: u64) -> Result<(), StreamError> {
        self.bytes += bytes;
        let passed = now.saturating_sub(self.since);
        if passed < LOOK_NS {
            return Ok(());
        }
        let low_water = low_water(self.bytes, passed, self.most);
        (self.bytes, self.since) = (0, now);
        if low_water != self.low_water {
            tcp::set_low_water(stream, low_water as u32)?;
            self.low_water = low_water;
        }
        Ok(())
    }
}

/// Bytes to wait for where so many came in `passed` nanoseconds: a power of two, so that it seldom changes.
fn low_water(bytes: u64, passed: u64, most: u64) -> u64 {
    let in_a_nap = (u128::from(bytes) * u128::from(NAP_NS) / u128::from(passed.max(1))) as u64;
    match in_a_nap.min(most) {
        LEAST.. => 1 << in_a_nap.min(most).ilog2(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_a_nap_is_waited_for() {
        let second = 1_000_000_000;
        // 100 Mbit/s, 1, 10 and 100 Gbit/s.
        for (bytes, waits_for) in [
            (0, 1),
            (12_500_000, 1),
            (125_000_000, 8 << 10),
            (1_250_000_000, 64 << 10),
            (12_500_000_000, 256 << 10),
            (u64::MAX, 256 << 10),
        ] {
            assert_eq!(low_water(bytes, second, MOST), waits_for, "{bytes} bytes in a second");
        }
        assert_eq!(low_water(1_250_000_000, second / 2, MOST_OF_IPERF3), 64 << 10);
    }
}
