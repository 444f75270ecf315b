//! Due times of the frames of a stream: evenly spaced, or in bursts.

use linerate_units::{BitRate, FrameSize};

/// Times between the frames of a stream, in 2^-32 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Time after each frame.
    pub(crate) gap: u128,
    /// Number of frames in a burst, at least one.
    pub(crate) burst: u64,
    /// Further time after each burst.
    pub(crate) rest: u128,
}

impl Pace {
    /// Pace of frames that leave without pause.
    const UNLIMITED: Self = Self { gap: 0, burst: 1, rest: 0 };

    /// Creates the pace of `rate` frames per second on average. The frames of a burst are `least_gap` apart, unless that
    /// exceeds the mean gap.
    pub(crate) fn new(rate: Option<u64>, burst: u32, least_gap: u128) -> Self {
        let Some(rate) = rate else { return Self::UNLIMITED };
        let mean = (1_000_000_000u128 << 32) / u128::from(rate.max(1));
        if burst <= 1 {
            return Self { gap: mean, ..Self::UNLIMITED };
        }
        let gap = least_gap.min(mean);
        Self { gap, burst: burst.into(), rest: (mean - gap) * u128::from(burst) }
    }

    /// Returns whether the frames leave without pause.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.gap == 0 && self.rest == 0
    }

    /// Returns the time from the due time of frame `first` to that of the frame `count` frames later.
    pub(crate) fn time(&self, first: u64, count: u64) -> u128 {
        let bursts = (first + count) / self.burst - first / self.burst;
        self.gap * u128::from(count) + self.rest * u128::from(if self.rest == 0 { 0 } else { bursts })
    }

    /// Returns the number of frames from `first` on that are due within `time` after the due time of `first`, at most
    /// `limit`.
    pub(crate) fn due(&self, first: u64, time: u128, limit: u64) -> u64 {
        if self.is_unlimited() {
            return limit;
        }
        if self.burst == 1 {
            return ((time / self.gap) as u64).saturating_add(1).min(limit);
        }
        (0..limit).take_while(|count| self.time(first, *count) <= time).count() as u64
    }
}

/// Returns the time that a frame and the least gap after it take on the line, in 2^-32 ns.
pub(crate) fn time_on_line(size: FrameSize, line: BitRate) -> u128 {
    let bits = u128::from(size.on_the_wire()) * 8;
    ((bits * 1_000_000_000) << 32) / u128::from(line.get().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: u128 = 1 << 32;

    #[test]
    fn even_frames_are_one_gap_apart() {
        let pace = Pace::new(Some(1_000_000), 0, 672 * NS);
        assert_eq!((pace.time(0, 5), pace.time(7, 1)), (5_000 * NS, 1_000 * NS));
        assert_eq!((pace.due(0, 0, 64), pace.due(0, 2_999 * NS, 64), pace.due(0, u128::MAX, 64)), (1, 3, 64));
        assert_eq!(pace, Pace::new(Some(1_000_000), 1, 0));
    }

    #[test]
    fn bursts_keep_the_mean_rate() {
        for least_gap in [0, 672 * NS, 5_000 * NS] {
            let pace = Pace::new(Some(1_000_000), 4, least_gap);
            assert_eq!(pace.time(0, 400), 400_000 * NS);
            assert_eq!(pace.time(0, 3), 3 * least_gap.min(1_000 * NS));
        }
        let pace = Pace::new(Some(1_000_000), 4, 0);
        assert_eq!((pace.due(0, 0, 64), pace.due(2, 0, 64), pace.due(0, 4_000 * NS, 64)), (4, 2, 8));
    }

    #[test]
    fn stream_without_a_rate_is_always_due() {
        let pace = Pace::new(None, 16, 672 * NS);
        assert!(pace.is_unlimited() && pace.due(9, 0, 64) == 64 && pace.time(0, 1_000) == 0);
    }

    /// IEEE 802.3 at 1 Gbit/s: 84 bytes take 672 ns.
    #[test]
    fn smallest_frame_takes_84_bytes_of_the_line() {
        let size = FrameSize::with_fcs(64).unwrap();
        assert_eq!(time_on_line(size, BitRate::per_second(1_000_000_000)), 672 * NS);
    }
}
