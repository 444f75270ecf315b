//! The trend test of a study: two-sided, unless the study states the direction beforehand.

use crate::study::Expected;
use linerate_method::statistics::{Tested, Trend, trend_test};
use linerate_report::{Language, said};

/// A trend along a factor, and the side on which it is tested.
pub(super) struct Directed {
    /// The trend towards growth. Its p-value is one-sided.
    pub(super) trend: Trend,
    expected: Option<Expected>,
    /// The test, not adjusted.
    pub(super) tested: Tested,
}

impl Directed {
    /// Tests the blocks for a trend in both directions, or in the stated one.
    pub(super) fn of(blocks: &[Vec<f64>], expected: Option<Expected>) -> Self {
        let trend = trend_test(blocks);
        let fall = || {
            let turned: Vec<Vec<f64>> = blocks.iter().map(|block| block.iter().rev().copied().collect()).collect();
            trend_test(&turned)
        };
        let tested = match expected {
            Some(Expected::Grows) => Tested { p: trend.p, least: trend.least },
            Some(Expected::Falls) => {
                let fall = fall();
                Tested { p: fall.p, least: fall.least }
            }
            None => Tested { p: (2.0 * trend.p.min(fall().p)).min(1.0), least: (2.0 * trend.least).min(1.0) },
        };
        Self { trend, expected, tested }
    }

    /// Returns whether more pairs rise than fall.
    pub(super) fn rises(&self) -> bool {
        self.trend.rising > self.trend.falling
    }

    /// Returns whether more pairs fall than rise.
    pub(super) fn falls(&self) -> bool {
        self.trend.falling > self.trend.rising
    }

    /// Returns the name of the test.
    pub(super) fn name(&self, lang: Language) -> String {
        let count = if self.trend.counted {
            said!(lang, "findings-trend-exact", "exact")
        } else {
            said!(lang, "findings-trend-bounded", "Hoeffding's bound on p")
        };
        let sides = match self.expected {
            None => said!(lang, "findings-trend-two-sided", "two-sided"),
            Some(_) => {
                said!(lang, "findings-trend-one-sided", "one-sided, as the study states the direction beforehand")
            }
        };
        said!(
            lang,
            "findings-trend-test",
            "Kendall trend test within blocks, {count}, {sides}, Holm-adjusted over the study",
            count = count,
            sides = sides
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direction_not_stated_doubles_the_p_value() {
        let rising = [vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0]];
        let of = |expected| Directed::of(&rising, expected).tested.p;
        assert!((of(Some(Expected::Grows)) - 1.0 / 36.0).abs() < 1e-9);
        assert!((of(None) - 2.0 / 36.0).abs() < 1e-9);
        assert!((of(Some(Expected::Falls)) - 1.0).abs() < 1e-9);
    }
}
