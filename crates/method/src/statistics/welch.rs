//! Welch's t test: whether two samples of unequal variance have the same mean.

use linerate_model::Interval;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What [`welch_test`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// The two-sided p-value.
    pub p: f64,
    /// The confidence interval of the difference of the means, `new` less `old`.
    pub difference: Interval,
}

/// Welch's t test (B. L. Welch, Biometrika 34, 1947) with the degrees of freedom of Welch and Satterthwaite. The interval
/// holds the difference with `confidence_percent`. None with fewer than two values on a side.
pub fn welch_test(old: &[f64], new: &[f64], confidence_percent: f64) -> Option<Welch> {
    if old.len() < 2 || new.len() < 2 {
        return None;
    }
    let (old, new) = (Moments::of(old), Moments::of(new));
    let difference = new.mean - old.mean;
    let within = |half: f64| Interval { percent: confidence_percent, low: difference - half, high: difference + half };
    let (a, b) = (old.variance / old.count, new.variance / new.count);
    let error = (a + b).sqrt();
    if error == 0.0 {
        // Without any spread, as where nothing was lost, every difference is certain.
        return Some(Welch { p: if difference == 0.0 { 1.0 } else { 0.0 }, difference: within(0.0) });
    }
    let freedom = (a + b).powi(2) / (a.powi(2) / (old.count - 1.0) + b.powi(2) / (new.count - 1.0));
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let p = 2.0 * t.cdf(-(difference / error).abs());
    Some(Welch { p, difference: within(t.inverse_cdf(0.5 + confidence_percent / 200.0) * error) })
}

/// Mean and variance of a sample.
struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self { count, mean, variance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means 1000 and 900, variances 100 and 400, error sqrt(500/3) = 12.910, t = -7.746, freedom
    /// (500/3)^2 / ((100/3)^2/2 + (400/3)^2/2) = 2.941, and from tables of t p = 0.0048.
    #[test]
    fn p_value_of_a_worked_example() {
        let found = welch_test(&[1000.0, 1010.0, 990.0], &[900.0, 920.0, 880.0], 95.0).expect("three runs each");
        assert!((found.p - 0.0048).abs() < 0.0001, "{found:?}");
        assert!(found.difference.low < -100.0 && found.difference.high > -100.0 && found.difference.high < 0.0);
    }

    #[test]
    fn samples_without_spread_are_certain() {
        let p = |old: &[f64], new: &[f64]| welch_test(old, new, 95.0).map(|found| found.p);
        assert_eq!(p(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
        assert_eq!(p(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
        assert_eq!(p(&[1.0], &[2.0, 2.0]), None);
    }
}
