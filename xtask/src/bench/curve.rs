//! Growth of a cost with the size of the work, as a power law fitted to measured points.

use super::figure::three_digits;
use serde_json::{Value, json};

/// Exponent above which a curve is marked. Sorting a million times as much is below it.
const STEEP: f64 = 1.15;

/// Measured costs by size.
pub(super) struct Curve {
    /// Work and cost, as in `report of results: time`.
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// Size and cost, by size.
    pub(super) points: Vec<(f64, f64)>,
}

/// Cost as a function of size: `constant * size ^ exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Power {
    exponent: f64,
    constant: f64,
}

impl Power {
    /// Fits the logarithms by least squares. `None` for fewer than two sizes. Points that are not positive are left out.
    fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let positive = points.iter().filter(|(size, cost)| *size > 0.0 && *cost > 0.0);
        let logarithms: Vec<(f64, f64)> = positive.map(|(size, cost)| (size.ln(), cost.ln())).collect();
        let count = logarithms.len() as f64;
        let mean_x = logarithms.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = logarithms.iter().map(|(_, y)| y).sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let products: f64 = logarithms.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let exponent = products / squares;
        (logarithms.len() > 1 && squares > 0.0).then(|| Self { exponent, constant: (mean_y - exponent * mean_x).exp() })
    }
}

impl Curve {
    pub(super) fn new(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, points: Vec::new() }
    }

    /// Returns the fit to all points.
    fn power(&self) -> Option<Power> {
        Power::fit(&self.points)
    }

    /// Returns the fit to the three largest sizes, to which fixed costs add least.
    fn power_at_end(&self) -> Option<Power> {
        Power::fit(&self.points[self.points.len().saturating_sub(3)..])
    }

    /// Returns whether the cost grows clearly faster than the size.
    pub(super) fn is_steep(&self) -> bool {
        [self.power(), self.power_at_end()].into_iter().flatten().any(|power| power.exponent > STEEP)
    }

    /// Returns the curve as a line: costs by size, exponents and constant.
    pub(super) fn line(&self) -> String {
        let points: Vec<String> =
            self.points.iter().map(|(size, cost)| format!("{size}: {}", three_digits(*cost))).collect();
        let exponent = |power: Option<Power>| power.map_or("–".to_owned(), |power| format!("{:.2}", power.exponent));
        let constant = self.power().map_or("–".to_owned(), |power| three_digits(power.constant));
        format!(
            "{} ({})\n    {}\n    exponent {}, of the largest sizes {}, constant {constant}{}",
            self.name,
            self.unit,
            points.join("  "),
            exponent(self.power()),
            exponent(self.power_at_end()),
            if self.is_steep() { "  STEEP" } else { "" }
        )
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "unit": self.unit,
            "points": self.points,
            "exponent": self.power().map(|power| power.exponent),
            "exponent_at_end": self.power_at_end().map(|power| power.exponent),
            "constant": self.power().map(|power| power.constant),
            "steep": self.is_steep(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(cost: impl Fn(f64) -> f64) -> Curve {
        let sizes = [1.0, 10.0, 100.0, 1_000.0];
        Curve { name: "x", unit: "s", points: sizes.map(|size| (size, cost(size))).to_vec() }
    }

    #[test]
    fn power_laws_are_found() {
        let power = curve(|size| 0.02 * size.powf(1.5)).power().unwrap();
        assert!((power.exponent - 1.5).abs() < 1e-9 && (power.constant - 0.02).abs() < 1e-9, "{power:?}");
        assert_eq!(Power::fit(&[(1.0, 2.0)]), None);
        assert_eq!(Power::fit(&[(2.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(Power::fit(&[(1.0, 2.0), (2.0, 0.0)]), None);
    }

    #[test]
    fn steep_curves_are_marked() {
        assert!(!curve(|size| 3.0 * size).is_steep());
        assert!(curve(|size| size * size).is_steep());
        // A fixed cost hides the square at small sizes.
        let hidden = curve(|size| 1_000.0 + size * size);
        assert!(hidden.power().unwrap().exponent < 1.15 && hidden.is_steep());
        assert!(hidden.line().ends_with("  STEEP"), "{}", hidden.line());
        assert!(!curve(|size| 1.0 + 0.01 * size).is_steep());
    }
}
