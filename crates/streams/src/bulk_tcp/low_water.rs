//! Low-water mark of a TCP receiver (SO_RCVLOWAT): it sleeps until the bytes of a tenth of a millisecond have arrived.
//!
//! Without it, a receiver that is faster than its sender is woken for each piece, and the sender's processor pays for
//! the wake-ups. Over a link without a line rate, one flow went from 17 to 23 Gbit/s in debug builds
//! (docs/benchmarks.md).

use crate::error::StreamError;
use crate::flow::Wire;
use linerate_sys::{clock, tcp};
use std::net::TcpStream;

/// Time whose bytes the receiver waits for.
const SLEEP_NS: u64 = 100_000;
/// Interval of adjusting the mark to the rate.
const LOOK_NS: u64 = 10_000_000;
/// Largest mark. More saves few wake-ups and leaves the caches.
const MAXIMUM: u64 = 256 << 10;
/// Largest mark for unphased peers, whose results are compared with those of their own program. It comes nearest with
/// two of the kernel's pieces of 64 KB per wake-up (docs/benchmarks.md).
const UNPHASED_MAXIMUM: u64 = 64 << 10;
/// Smallest mark that is worth waiting for: less is a segment or two.
const MINIMUM: u64 = 4 << 10;

/// Low-water mark that follows the rate of a connection.
pub(super) struct LowWater {
    maximum: u64,
    /// Current mark of the socket.
    mark: u64,
    /// Bytes received since the last adjustment.
    bytes: u64,
    /// Time of the last adjustment.
    adjusted: u64,
}

impl LowWater {
    pub(super) fn new(wire: Wire) -> Self {
        let maximum = if wire.marks_end() { MAXIMUM } else { UNPHASED_MAXIMUM };
        Self { maximum, mark: 1, bytes: 0, adjusted: clock::now() }
    }

    /// Counts `bytes` that were read from `stream` at `now`, and adjusts the mark from time to time. A read that ends
    /// by its timeout shows a low rate.
    #[inline]
    pub(super) fn received(&mut self, stream: &TcpStream, bytes: u64, now: u64) -> Result<(), StreamError> {
        self.bytes += bytes;
        let elapsed = now.saturating_sub(self.adjusted);
        if elapsed < LOOK_NS {
            return Ok(());
        }
        let mark = mark(self.bytes, elapsed, self.maximum);
        self.bytes = 0;
        self.adjusted = now;
        if mark != self.mark {
            // A reader wakes more often without the mark.
            tcp::set_low_water(stream, mark as u32)?;
            self.mark = mark;
        }
        Ok(())
    }
}

/// Returns the mark for `bytes` received in `elapsed` nanoseconds: a power of two, so that it seldom changes.
fn mark(bytes: u64, elapsed: u64, maximum: u64) -> u64 {
    let per_sleep = (u128::from(bytes) * u128::from(SLEEP_NS) / u128::from(elapsed.max(1))) as u64;
    let mark = per_sleep.min(maximum);
    if mark >= MINIMUM { 1 << mark.ilog2() } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_is_the_bytes_of_one_sleep() {
        let second = 1_000_000_000;
        // 100 Mbit/s, 1, 10 and 100 Gbit/s.
        for (bytes, expected) in [
            (0, 1),
            (12_500_000, 1),
            (125_000_000, 8 << 10),
            (1_250_000_000, 64 << 10),
            (12_500_000_000, 256 << 10),
            (u64::MAX, 256 << 10),
        ] {
            assert_eq!(mark(bytes, second, MAXIMUM), expected, "{bytes} bytes in a second");
        }
        assert_eq!(mark(1_250_000_000, second / 2, UNPHASED_MAXIMUM), 64 << 10);
    }
}
