//! Tests at several looks at data that grow.

use statrs::distribution::{ContinuousCDF, Normal};

/// Points of a normal sum's density between its bounds.
const POINTS: usize = 120;

/// The level at each of `looks` looks, equally far apart, at which all of them together have `level`: Pocock's bound
/// (Biometrika 64, 1977). It is used for t tests too, at the same p-value (Jennison and Turnbull, Group Sequential Methods,
/// 2000, section 3.8).
pub fn level_of_each(level: f64, looks: u32) -> f64 {
    if looks <= 1 {
        return level;
    }
    // Between independent looks and a single one.
    let (mut low, mut high) = (level / f64::from(looks), level);
    for _ in 0..16 {
        let middle = f64::midpoint(low, high);
        if crossing(middle, looks) > level { high = middle } else { low = middle }
    }
    low
}

/// The chance that the sum of independent normal steps is significant at one look at least, each at the two-sided `level`
/// (the recursion of Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969).
fn crossing(level: f64, looks: u32) -> f64 {
    let normal = Normal::standard();
    let bound = -normal.inverse_cdf(level / 2.0);
    let width = |look: u32| bound * f64::from(look).sqrt();
    let grid = |look: u32| {
        let step = 2.0 * width(look) / POINTS as f64;
        (step, (0..POINTS).map(move |index| (index as f64 + 0.5) * step - width(look)))
    };
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // The sub-density of the sums of which no look was significant.
    let (mut step, points) = grid(1);
    let mut at: Vec<f64> = points.collect();
    let mut within: Vec<f64> = at.iter().map(|sum| density(*sum)).collect();
    for look in 2..=looks {
        let (next_step, points) = grid(look);
        let next_at: Vec<f64> = points.collect();
        let next: Vec<f64> = next_at
            .iter()
            .map(|sum| at.iter().zip(&within).map(|(from, share)| share * density(sum - from)).sum::<f64>() * step)
            .collect();
        (step, at, within) = (next_step, next_at, next);
    }
    1.0 - within.iter().sum::<f64>() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pocock's table: nominal levels for 5 %.
    #[test]
    fn levels_are_pococks() {
        for (looks, expected) in [(1, 0.05), (2, 0.0294), (3, 0.0221), (5, 0.0158), (10, 0.0106)] {
            let found = level_of_each(0.05, looks);
            assert!((found - expected).abs() < 0.000_15, "{looks} looks: {found}");
        }
    }
}
