//! When frames leave a line of a set rate: one rate or two in turn, with or without a token bucket.

use super::limits::Alternation;

const SECOND: u128 = 1_000_000_000;

/// A line that serves in the order of arrival. What it serves are units: bits on the wire, or frames.
///
/// Its clock is the work that it could have done since its beginning: there a unit always costs the same, also where
/// the rate alternates, and nothing is rounded but the moment at which a frame leaves.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Units a second, in turn.
    rates: [u128; 2],
    /// Time that each rate holds, nanoseconds.
    period: u128,
    /// Work that passes at once after a pause.
    burst: u128,
    /// The work at which all that has come is done.
    done: u128,
}

impl Line {
    /// A line of `rates` bits a second that lets `burst_bytes` pass at once after a pause.
    pub(crate) fn of_bits(rates: Alternation, burst_bytes: u64) -> Self {
        Self {
            rates: [rates.first.get().into(), rates.second.get().into()],
            period: rates.period.get().into(),
            burst: u128::from(burst_bytes) * 8 * SECOND,
            done: 0,
        }
    }

    /// Makes a line that serves `per_second` frames a second, in their order.
    pub(crate) fn of_frames(per_second: u64) -> Self {
        Self { rates: [per_second.into(); 2], period: SECOND, burst: 0, done: 0 }
    }

    /// Takes `units` that come `at` nanoseconds after the line's beginning, not before the last; returns when they have
    /// left.
    pub(crate) fn serve(&mut self, at: u64, units: u64) -> u64 {
        self.done = self.done.max(self.work(at)) + u128::from(units) * SECOND;
        at.max(self.when(self.done.saturating_sub(self.burst)))
    }

    /// Work, in parts of a unit, that the line can do in its first `at` nanoseconds.
    fn work(&self, at: u64) -> u128 {
        let [first, second] = self.rates;
        if first == second {
            // As below, without its divisions, which would be half of what the path spends on a small frame.
            return first * u128::from(at);
        }
        let turns = u128::from(at) / (2 * self.period);
        let within = u128::from(at) % (2 * self.period);
        turns * (first + second) * self.period
            + first * within.min(self.period)
            + second * within.saturating_sub(self.period)
    }

    /// The first nanosecond at which `work` is done.
    fn when(&self, work: u128) -> u64 {
        let [first, second] = self.rates;
        if first == second {
            return u64::try_from(work.div_ceil(first)).unwrap_or(u64::MAX);
        }
        let turn = (first + second) * self.period;
        let turns = work / turn;
        let within = work % turn;
        let within = match within.checked_sub(first * self.period) {
            None => within.div_ceil(first),
            Some(rest) => self.period + rest.div_ceil(second),
        };
        u64::try_from(turns * 2 * self.period + within).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::{BitRate, Nanos};

    fn alternation(first: u64, second: u64, period: Nanos) -> Alternation {
        Alternation { first: BitRate::per_second(first), second: BitRate::per_second(second), period }
    }

    fn steady(rate: u64, burst: u64) -> Line {
        Line::of_bits(alternation(rate, rate, Nanos::from_secs(60)), burst)
    }

    #[test]
    fn a_loaded_line_serves_exactly_its_rate() {
        for rate in [64_000, 1_000_003, 50_000_000, 999_999_937] {
            let mut line = steady(rate, 0);
            // All come at once; a million frames of 1,538 bytes.
            let last = (0..1_000_000).map(|_| line.serve(5, 1_538 * 8)).last().expect("a frame");
            let exact = 1_000_000.0 * 1_538.0 * 8.0 / rate as f64 * 1e9 + 5.0;
            assert!((last as f64 - exact).abs() < 10.0, "{rate}: {last} is not {exact}");
        }
    }

    #[test]
    fn an_idle_line_takes_the_time_of_the_frame() {
        let mut line = steady(50_000_000, 0);
        // 1,538 bytes at 50 Mbit/s are 246.08 us.
        assert_eq!(line.serve(1_000, 1_538 * 8), 1_000 + 246_080);
        assert_eq!(line.serve(10_000_000, 1_538 * 8), 10_000_000 + 246_080);
    }

    #[test]
    fn a_burst_passes_at_once_and_is_earned_again() {
        let mut line = steady(8_000_000, 10_000);
        // A byte a microsecond: ten frames of 1,000 bytes pass, the eleventh waits for its own bytes.
        let leaves: Vec<u64> = (0..12).map(|_| line.serve(1_000_000, 8_000)).collect();
        assert_eq!(leaves[..10], [1_000_000; 10]);
        assert_eq!(leaves[10..], [2_000_000, 3_000_000]);
        // 3 ms later three more are earned, of which one at a time is used.
        let later: Vec<u64> = (0..4).map(|_| line.serve(6_000_000, 8_000)).collect();
        assert_eq!(later, [6_000_000, 6_000_000, 6_000_000, 7_000_000]);
    }

    #[test]
    fn rates_alternate() {
        let mut line = Line::of_bits(alternation(8_000, 80_000, Nanos::from_secs(1)), 0);
        // 1,000 bytes fill the first second, then 10,000 the next; and again.
        let leaves: Vec<u64> = (0..220).map(|_| line.serve(0, 800)).collect();
        assert_eq!((leaves[9], leaves[109]), (1_000_000_000, 2_000_000_000));
        assert_eq!((leaves[119], leaves[219]), (3_000_000_000, 4_000_000_000));
        // Across the change: half a frame slowly, half of it fast.
        let mut line = Line::of_bits(alternation(8_000, 80_000, Nanos::from_secs(1)), 0);
        assert_eq!(line.serve(950_000_000, 800), 1_000_000_000 + 5_000_000);
    }

    #[test]
    fn frames_are_served_one_after_the_other() {
        let mut line = Line::of_frames(20_000);
        assert_eq!([line.serve(0, 1), line.serve(0, 1), line.serve(1_000_000, 1)], [50_000, 100_000, 1_050_000]);
    }
}
