//! Median, range and confidence interval of one quantity's runs.

use linerate_model::{Interval, Summary};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence given with every summary, percent.
const CONFIDENCE: f64 = 95.0;

/// Summarises the runs of one quantity; none without runs.
pub fn summary(values: Vec<f64>) -> Option<Summary> {
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (*sorted.first()?, *sorted.last()?);
    let median = middle_of(&sorted)?;
    let interval = confidence_interval(&values, CONFIDENCE);
    Some(Summary { median, low, high, runs: values.len() as u32, values, interval })
}

/// The median: the mean of the two middle values where their number is even. None without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    middle_of(&values)
}

fn middle_of(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 })
}

/// The interval that holds the mean with `percent` confidence, by Student's t distribution, assuming runs that are
/// independent and about normally distributed. None with fewer than two runs.
pub fn confidence_interval(values: &[f64], percent: f64) -> Option<Interval> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(0.5 + percent / 200.0);
    let half = t * (variance / count).sqrt();
    Some(Interval { percent, low: mean - half, high: mean + half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        let of = |values: &[f64]| summary(values.to_vec()).map(|s| (s.median, s.low, s.high, s.runs));
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((2.0, 1.0, 3.0, 3)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some((2.5, 1.0, 4.0, 4)));
        assert_eq!(of(&[]), None);
        assert_eq!((median(vec![4.0, 1.0, 2.0, 3.0]), median(Vec::new())), (Some(2.5), None));
    }

    /// Textbook: mean 10, s = 1, n = 4, t(0.975; 3) = 3.1824.
    #[test]
    fn interval_is_students() {
        let values = [9.0, 10.0, 10.0, 11.0];
        let s = (2.0f64 / 3.0).sqrt();
        let interval = confidence_interval(&values, 95.0).expect("four runs");
        assert!((interval.high - (10.0 + 3.1824 * s / 2.0)).abs() < 1e-3, "{interval:?}");
        assert_eq!(confidence_interval(&[1.0], 95.0), None);
        assert_eq!(confidence_interval(&[5.0, 5.0], 95.0).map(|i| i.relative_half_width()), Some(0.0));
    }
}
