//! Stein's two-stage procedure: how many repeats make an interval narrow enough, with the confidence that it states.

use linerate_model::Interval;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What a first stage of repeats says of those to follow (C. Stein, Annals of Mathematical Statistics 16, 1945).
///
/// To look after each repeat whether the interval is narrow enough is to stop where the repeats agree by chance: such
/// intervals hold the mean less often than they state. Here the number of repeats follows from the variance of the first stage
/// alone, which is independent of the mean. So the mean of all repeats, with the variance of the first stage and its degrees of
/// freedom, has Student's t distribution however many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoStage {
    mean: f64,
    variance: f64,
    quantile: f64,
    percent: f64,
}

impl TwoStage {
    /// The procedure for intervals with `percent` confidence after these first repeats; none with fewer than two.
    pub fn after(first: &[f64], percent: f64) -> Option<Self> {
        let count = first.len() as f64;
        if first.len() < 2 {
            return None;
        }
        let mean = first.iter().sum::<f64>() / count;
        let variance = first.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let quantile = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(0.5 + percent / 200.0);
        Some(Self { mean, variance, quantile, percent })
    }

    /// Repeats, the first stage included, after which half the interval is at most `within` as a share of the mean.
    pub fn repeats(&self, within: f64) -> f64 {
        let repeats = (self.quantile / (within * self.mean)).powi(2) * self.variance;
        // Of a mean of zero no share is narrow.
        if repeats.is_nan() { f64::INFINITY } else { repeats.ceil() }
    }

    /// The interval around the mean of all `values`, of which the first stage is the beginning.
    pub fn interval(&self, values: &[f64]) -> Interval {
        let count = values.len() as f64;
        let (mean, half) = (values.iter().sum::<f64>() / count, self.quantile * (self.variance / count).sqrt());
        Interval { percent: self.percent, low: mean - half, high: mean + half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// s = 1, n = 4, t(0.975; 3) = 3.1824: for 1 % of 100, 3.1824^2 = 10.13.
    #[test]
    fn repeats_follow_from_the_first_stage() {
        let first = [99.0, 100.0, 100.0, 101.0].map(|value: f64| 100.0 + (value - 100.0) * 1.5f64.sqrt());
        let stage = TwoStage::after(&first, 95.0).expect("four repeats");
        assert_eq!(stage.repeats(0.01), 11.0);
        let interval = stage.interval(&[100.0; 11]);
        assert!((interval.high - 100.0 - 3.1824 / 11f64.sqrt()).abs() < 1e-3, "{interval:?}");
        assert_eq!(TwoStage::after(&[1.0], 95.0), None);
        assert_eq!(TwoStage::after(&[0.0, 0.0], 95.0).map(|stage| stage.repeats(0.01)), Some(f64::INFINITY));
    }
}
