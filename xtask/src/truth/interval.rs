//! Confidence intervals of shares.

/// Probability outside a 95 % confidence interval, on each side.
const TAIL: f64 = 0.025;

/// Probability below which a count is not explained by chance. A check that runs for each change may fail without cause
/// once in a thousand times.
const BEYOND_CHANCE: f64 = 0.001;

/// Bisections of the interval from 0 to 1: more than the digits of a double.
const BISECTIONS: u32 = 60;

/// A share and its bounds, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    /// Returns the exact 95 % confidence interval of a share after `hits` of `all` were observed (C. J. Clopper and
    /// E. S. Pearson, Biometrika 26, 1934). At each bound a count as extreme as `hits` has a probability of 2.5 %.
    pub(super) fn clopper_pearson(hits: u32, all: u32) -> Self {
        let low = if hits == 0 { 0.0 } else { bisect(|share| at_most(all - hits, all, 1.0 - share) < TAIL) };
        let high = if hits == all { 1.0 } else { bisect(|share| at_most(hits, all, share) > TAIL) };
        Self { low, high }
    }
}

/// Returns whether `hits` of `all`, each with a probability of `share`, are more than chance explains: at least as many
/// have a probability below 0.1 %.
pub(super) fn is_beyond_chance(hits: u32, all: u32, share: f64) -> bool {
    hits > 0 && 1.0 - at_most(hits - 1, all, share) < BEYOND_CHANCE
}

/// Returns the highest share for which `below` holds. It must hold for all lower shares, and for no higher one.
fn bisect(below: impl Fn(f64) -> bool) -> f64 {
    let mut low = 0.0;
    let mut high = 1.0;
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Returns the probability of at most `hits` of `all`, each with a probability of `share` between 0 and 1.
///
/// Logarithms keep small terms.
fn at_most(hits: u32, all: u32, share: f64) -> f64 {
    let log_hit = share.ln();
    let log_miss = (-share).ln_1p();
    let mut log_ways = 0.0;
    let mut sum = 0.0;
    for count in 0..=hits {
        let misses = f64::from(all - count);
        let count = f64::from(count);
        sum += (log_ways + count * log_hit + misses * log_miss).exp();
        log_ways += (misses / (count + 1.0)).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_hits_of_many_are_chance() {
        // Of 20 with 2 % each, 4 have a probability of 0.06 %, 3 of 0.7 %.
        assert!(is_beyond_chance(4, 20, 0.02) && !is_beyond_chance(3, 20, 0.02));
        assert!(!is_beyond_chance(0, 20, 0.02));
    }

    /// Values of R's `binom.test`.
    #[test]
    fn interval_equals_clopper_pearson() {
        for (hits, all, low, high) in [
            (8, 10, 0.443_904_5, 0.974_789_3),
            (0, 10, 0.0, 0.308_497_1),
            (10, 10, 0.691_502_9, 1.0),
            (95, 100, 0.887_165_1, 0.983_568_1),
            (1_249, 1_260, 0.984_433_1, 0.995_634_1),
        ] {
            let interval = Interval::clopper_pearson(hits, all);
            assert!(
                (interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6,
                "{hits}/{all}: {interval:?}"
            );
        }
    }

    #[test]
    fn interval_of_no_runs_is_0_to_1() {
        assert_eq!(Interval::clopper_pearson(0, 0), Interval { low: 0.0, high: 1.0 });
    }
}
