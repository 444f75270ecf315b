//! What two means differ by, as a ratio or as a difference: its interval, and two tests against a tolerance.
//!
//! One test asks whether the means differ by more than the tolerance, the other whether they differ by less: each has as its
//! null hypothesis what the other is to show. Where neither is significant the data do not decide.

use linerate_model::Interval;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// How two means are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// By the new mean as a share of the old one, less one: -0.1 is a tenth less.
    Ratio,
    /// By the new mean less the old one, in their own unit.
    Difference,
}

/// The chance of a decision that [`Contrast::repeats_needed`] allows for.
const POWER: f64 = 0.8;
/// A number of repeats above this is no advice.
const MOST_REPEATS: f64 = 10_000.0;

/// Repeats of one measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    count: f64,
    mean: f64,
    /// Variance of one repeat.
    variance: f64,
}

impl Sample {
    /// The sample of these repeats; none without any.
    ///
    /// `resolution` is the standard deviation that counting alone gives one repeat. The variance is no smaller: repeats that
    /// agree by chance, or because the count is coarse, do not make a mean certain.
    pub fn of(values: &[f64], resolution: f64) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let variance = if values.len() < 2 { 0.0 } else { squares / (count - 1.0) };
        (!values.is_empty()).then(|| Self { count, mean, variance: variance.max(resolution.powi(2)) })
    }

    fn freedom(&self) -> f64 {
        self.count - 1.0
    }
}

/// Two means and what is known of their errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    scale: Scale,
    old: f64,
    new: f64,
    /// Variances of the two means, and their covariance.
    old_error: f64,
    new_error: f64,
    covariance: f64,
    /// Least variance of each mean, by the resolution.
    floor: (f64, f64),
    freedom: Freedom,
    /// Repeats behind each mean; of unequal numbers the harmonic mean.
    count: f64,
}

/// Degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Freedom {
    Fixed(f64),
    /// Of two samples with variances of their own (Satterthwaite, Biometrics Bulletin 2, 1946).
    Separate {
        old: f64,
        new: f64,
    },
}

impl Contrast {
    /// Two samples whose variances may differ (B. L. Welch, Biometrika 34, 1947). None with fewer than two repeats in a
    /// sample, or with no variance at all.
    pub fn welch(scale: Scale, old: &Sample, new: &Sample) -> Option<Self> {
        let freedom = Freedom::Separate { old: old.freedom(), new: new.freedom() };
        let enough = old.count >= 2.0 && new.count >= 2.0;
        enough.then(|| Self::of_samples(scale, old, new, (old.variance, new.variance), freedom)).and_then(Self::known)
    }

    /// Two samples of one variance, of which one may be a single value (Student's test). None with fewer than three values
    /// together, or with no variance at all.
    pub fn pooled(scale: Scale, old: &Sample, new: &Sample) -> Option<Self> {
        let freedom = old.freedom() + new.freedom();
        let variance = (old.freedom() * old.variance + new.freedom() * new.variance) / freedom;
        let enough = freedom >= 1.0;
        let fixed = Freedom::Fixed(freedom);
        enough.then(|| Self::of_samples(scale, old, new, (variance, variance), fixed)).and_then(Self::known)
    }

    fn of_samples(scale: Scale, old: &Sample, new: &Sample, variances: (f64, f64), freedom: Freedom) -> Self {
        Self {
            scale,
            old: old.mean,
            new: new.mean,
            old_error: variances.0 / old.count,
            new_error: variances.1 / new.count,
            covariance: 0.0,
            floor: (0.0, 0.0),
            freedom,
            count: 2.0 / (1.0 / old.count + 1.0 / new.count),
        }
    }

    /// Pairs of an old and a new value that were measured next to each other (the paired t test): what both have in common,
    /// such as a slow drift, does not count. `resolution` is that of [`Sample::of`], of old and new. None with fewer than two
    /// pairs, or with no variance at all.
    pub fn paired(scale: Scale, pairs: &[(f64, f64)], resolution: (f64, f64)) -> Option<Self> {
        let count = pairs.len() as f64;
        if pairs.len() < 2 {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
        let (old, new) = (mean(|pair| pair.0), mean(|pair| pair.1));
        let product = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / (count - 1.0) / count;
        let paired = Self {
            scale,
            old,
            new,
            old_error: product(&|pair| (pair.0 - old).powi(2)),
            new_error: product(&|pair| (pair.1 - new).powi(2)),
            covariance: product(&|pair| (pair.0 - old) * (pair.1 - new)),
            floor: (resolution.0.powi(2) / count, resolution.1.powi(2) / count),
            freedom: Freedom::Fixed(count - 1.0),
            count,
        };
        paired.known()
    }

    /// Without any variance a t statistic means nothing.
    fn known(self) -> Option<Self> {
        (self.statistic(0.0).1 > 0.0).then_some(self)
    }

    /// What the new mean differs by from the old one; none for a share of nothing.
    pub fn change(&self) -> Option<f64> {
        match self.scale {
            Scale::Difference => Some(self.new - self.old),
            Scale::Ratio => (self.old != 0.0).then(|| self.new / self.old - 1.0),
        }
    }

    /// The p-value of the test whether the means differ by more than `tolerance`: the chance of a difference at least as large
    /// if it is the tolerance in truth (Hodges and Lehmann, Journal of the Royal Statistical Society B 16, 1954). For a
    /// tolerance of zero this is the usual two-sided test.
    pub fn p_beyond(&self, tolerance: f64) -> f64 {
        let (low, high) = (self.t(-tolerance), self.t(tolerance));
        let above = upper_tail(high) + upper_tail(low);
        let below = lower_tail(low) + lower_tail(high);
        above.min(below).min(1.0)
    }

    /// The p-value of the test whether the means differ by less than `tolerance`: two one-sided tests (Schuirmann, Journal of
    /// Pharmacokinetics and Biopharmaceutics 15, 1987), of a ratio as by Sasabuchi (Hauschke, Kieser and Hothorn,
    /// Biometrical Journal 41, 1999).
    pub fn p_within(&self, tolerance: f64) -> f64 {
        upper_tail(self.t(-tolerance)).max(lower_tail(self.t(tolerance)))
    }

    /// The interval of the change with `percent` confidence (of a ratio Fieller's: Journal of the Royal Statistical Society B
    /// 16, 1954). None where it has no end, as where the old mean may be zero.
    pub fn interval(&self, percent: f64) -> Option<Interval> {
        let tail = (1.0 - percent / 100.0) / 2.0;
        let change = self.change()?;
        let unit = if self.scale == Scale::Ratio { self.old.abs() } else { 1.0 };
        let step = (self.statistic(change).1 / unit).max(f64::MIN_POSITIVE);
        let least = if self.scale == Scale::Ratio { -1.0 } else { f64::NEG_INFINITY };
        let low = match end(change, -step, |at| at < least || upper_tail(self.t(at)) < tail) {
            Some(low) => low.max(least),
            None => return None,
        };
        let high = end(change, step, |at| lower_tail(self.t(at)) < tail)?;
        Some(Interval { percent, low, high })
    }

    /// About how many repeats of each the two tests would need to decide at `level`, with a chance of 80 %, if change and
    /// spread stay as they are. None where the change is so near to the tolerance that more than 10,000 would be needed.
    pub fn repeats_needed(&self, tolerance: f64, level: f64) -> Option<u32> {
        let quantile = |t: &dyn Fn(f64) -> f64| t(1.0 - level) + t(POWER);
        let ((low, freedom), (high, _)) = (self.t(-tolerance), self.t(tolerance));
        // In the units of the error as it is now.
        let distance = low.abs().min(high.abs());
        let repeats = |sum: f64| self.count * (sum / distance).powi(2);
        let normal = Normal::standard();
        let first = repeats(quantile(&|p| normal.inverse_cdf(p)));
        if !(first.is_finite() && first <= MOST_REPEATS) {
            return None;
        }
        // Once more with the t distribution of about so many repeats.
        let more = freedom * (first - 1.0).max(1.0) / (self.count - 1.0).max(1.0);
        let t = StudentsT::new(0.0, 1.0, more.max(1.0)).ok()?;
        let second = repeats(quantile(&|p| t.inverse_cdf(p)));
        Some(second.min(MOST_REPEATS).max(self.count + 1.0).ceil() as u32)
    }

    /// The t statistic of the hypothesis that the change is `change`, and its degrees of freedom.
    fn t(&self, change: f64) -> (f64, f64) {
        let (difference, error, freedom) = self.statistic(change);
        // Values in an exact ratio have no spread around it: that is no evidence either.
        (if error > 0.0 { difference / error } else { 0.0 }, freedom)
    }

    /// What is left of the difference with `change` taken off, its standard error, and the degrees of freedom.
    fn statistic(&self, change: f64) -> (f64, f64, f64) {
        let (weight, off) = match self.scale {
            Scale::Ratio => (1.0 + change, 0.0),
            Scale::Difference => (1.0, change),
        };
        let (old, new) = (weight.powi(2) * self.old_error, self.new_error);
        let least = weight.powi(2) * self.floor.0 + self.floor.1;
        let square = (old + new - 2.0 * weight * self.covariance).max(least);
        let freedom = match self.freedom {
            Freedom::Fixed(freedom) => freedom,
            Freedom::Separate { old: of_old, new: of_new } => {
                (old + new).powi(2) / (old.powi(2) / of_old + new.powi(2) / of_new)
            }
        };
        (self.new - weight * self.old - off, square.sqrt(), freedom)
    }
}

/// The chance of a t statistic of at least this.
fn upper_tail((t, freedom): (f64, f64)) -> f64 {
    lower_tail((-t, freedom))
}

/// The chance of a t statistic of at most this. What has no distribution is no evidence.
fn lower_tail((t, freedom): (f64, f64)) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |distribution| distribution.cdf(t))
}

/// Where `is_out` turns true, searched from `start` in steps that double; none within 2^60 steps.
fn end(start: f64, step: f64, is_out: impl Fn(f64) -> bool) -> Option<f64> {
    let mut beyond = (0..60).map(|power| start + step * f64::powi(2.0, power)).find(|at| is_out(*at))?;
    let mut inside = start;
    for _ in 0..60 {
        let middle = f64::midpoint(inside, beyond);
        if is_out(middle) {
            beyond = middle;
        } else {
            inside = middle;
        }
    }
    Some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, by: f64) -> bool {
        (a - b).abs() < by
    }

    fn sample(values: &[f64]) -> Sample {
        Sample::of(values, 0.0).expect("some values")
    }

    fn welch(scale: Scale, old: &[f64], new: &[f64]) -> Contrast {
        Contrast::welch(scale, &sample(old), &sample(new)).expect("two values each")
    }

    /// Means 1000 and 900, variances 100 and 400, error sqrt(500/3) = 12.910, t = -7.746, freedom
    /// (500/3)^2 / ((100/3)^2/2 + (400/3)^2/2) = 2.941, and from tables of t p = 0.0048.
    #[test]
    fn without_a_tolerance_it_is_welchs_test() {
        let found = welch(Scale::Difference, &[1000.0, 1010.0, 990.0], &[900.0, 920.0, 880.0]);
        assert!(near(found.p_beyond(0.0), 0.0048, 0.0001), "{}", found.p_beyond(0.0));
        assert_eq!((found.change(), found.p_within(0.0) > 0.5), (Some(-100.0), true));
        // t(0.975; 2.941) = 3.215
        let interval = found.interval(95.0).expect("it has ends");
        assert!(near(interval.low, -100.0 - 3.215 * 12.91, 0.2) && near(interval.high, -100.0 + 3.215 * 12.91, 0.2));
    }

    /// The ends of the interval are the tolerances at which the one-sided tests have the level of the tail.
    #[test]
    fn tests_and_interval_agree() {
        let found = welch(Scale::Ratio, &[100.0, 102.0, 98.0, 101.0], &[101.0, 104.0, 99.0, 103.0]);
        let interval = found.interval(90.0).expect("it has ends");
        let tolerance = interval.high.max(-interval.low);
        assert!(near(found.p_within(tolerance), 0.05, 1e-6), "{}", found.p_within(tolerance));
        let far = welch(Scale::Ratio, &[100.0, 102.0, 98.0, 101.0], &[120.0, 123.0, 119.0, 121.0]);
        let interval = far.interval(90.0).expect("it has ends");
        assert!(near(far.p_beyond(interval.low), 0.05, 1e-4), "{}", far.p_beyond(interval.low));
        assert!(interval.low > 0.15 && interval.high < 0.27, "{interval:?}");
    }

    #[test]
    fn a_drift_that_pairs_share_does_not_count() {
        let pairs = [(100.0, 101.2), (150.0, 151.5), (80.0, 80.8), (120.0, 121.1)];
        let paired = Contrast::paired(Scale::Ratio, &pairs, (0.0, 0.0)).expect("four pairs");
        assert!(paired.p_beyond(0.0) < 0.01, "{}", paired.p_beyond(0.0));
        assert!(paired.p_within(0.02) < 0.01, "{}", paired.p_within(0.02));
        let (old, new): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let apart = welch(Scale::Ratio, &old, &new);
        assert!(apart.p_beyond(0.0) > 0.5 && apart.p_within(0.02) > 0.2);
    }

    /// s = 1 of five values, error sqrt(1/5 + 1) = 1.0954, t = 3/1.0954 = 2.739 at 4 degrees of freedom: p = 0.052.
    #[test]
    fn one_value_is_held_against_a_sample() {
        let old = sample(&[9.0, 10.0, 10.0, 10.0, 11.0].map(|value| 10.0 + (value - 10.0) * 2f64.sqrt()));
        let found = Contrast::pooled(Scale::Difference, &old, &sample(&[13.0])).expect("six values");
        assert!(near(found.p_beyond(0.0), 0.052, 0.001), "{}", found.p_beyond(0.0));
        assert_eq!(Contrast::pooled(Scale::Difference, &sample(&[1.0]), &sample(&[2.0])), None);
    }

    #[test]
    fn samples_without_spread_are_inconclusive() {
        let one = sample(&[1.0, 1.0, 1.0]);
        assert_eq!(Contrast::welch(Scale::Ratio, &one, &sample(&[2.0, 2.0, 2.0])), None);
        assert_eq!(Contrast::paired(Scale::Ratio, &[(1.0, 2.0), (1.0, 2.0)], (0.0, 0.0)), None);
        assert_eq!(Contrast::welch(Scale::Ratio, &one, &sample(&[2.0])), None);
    }

    /// Counts of 1,000 have a resolution of 0.4: three equal ones are equivalent within 2 %, not within 0.01 %.
    #[test]
    fn equal_counts_are_as_sure_as_their_resolution() {
        let coarse = Sample::of(&[1000.0; 3], 0.4).expect("three values");
        let found = Contrast::welch(Scale::Ratio, &coarse, &coarse).expect("a resolution");
        assert!(near(found.p_beyond(0.0), 1.0, 1e-9));
        assert!(found.p_within(0.02) < 0.001 && found.p_within(0.000_1) > 0.3, "{}", found.p_within(0.000_1));
        let other = Sample::of(&[1001.0; 3], 0.4).expect("three values");
        let found = Contrast::welch(Scale::Ratio, &coarse, &other).expect("a resolution");
        assert!(found.p_beyond(0.0) > 0.01, "{}", found.p_beyond(0.0));
    }

    #[test]
    fn a_share_of_what_may_be_nothing_has_no_interval() {
        let found = welch(Scale::Ratio, &[1.0, -1.0, 0.5], &[1.0, 2.0, 3.0]);
        assert_eq!(found.interval(90.0), None);
        assert_eq!(welch(Scale::Ratio, &[1.0, -1.0], &[1.0, 2.0]).change(), None);
    }

    /// With variance 1 and a change of 1 beyond the tolerance, 2 (1.645 + 0.842)^2 = 12.4 repeats by the normal distribution.
    #[test]
    fn repeats_needed_are_those_of_the_textbook() {
        let spread = [-1.0, 0.0, 1.0, 0.0, 0.0].map(|value: f64| value * 2f64.sqrt());
        let old = sample(&spread.map(|value| 100.0 + value));
        let new = sample(&spread.map(|value| 103.0 + value));
        let found = Contrast::welch(Scale::Difference, &old, &new).expect("five values each");
        let needed = found.repeats_needed(2.0, 0.05).expect("few");
        assert!((13..=14).contains(&needed), "{needed}");
        assert_eq!(found.repeats_needed(3.0, 0.05), None);
    }
}
