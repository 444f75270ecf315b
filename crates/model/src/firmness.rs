//! Whether a figure was really shown, or the tester left it open, and what may be concluded from it then.
//!
//! **The rule of comparisons.** A lower bound may be found to be above another figure, but never below one or equal to it. A figure
//! that is not firm and no bound decides nothing ([`Known::decides`]). Comparisons and findings all use this.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Whether the tester offered the loads that decided a figure.
///
/// A rate or a number that is not firm is a lower bound. Other figures that are not firm are those of the load that was
/// really offered, not of the one asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Firmness {
    /// The tester offered every load that decided, within its tolerance of 0.5 %.
    #[default]
    Firm,
    /// The tester left the figure open.
    NotFirm {
        /// Share of its load that the tester offered in the trial that was to decide, 0 to 1. None where no trial fell short:
        /// the tester's known limit kept the test from higher loads.
        offered: Option<f64>,
    },
}

impl Firmness {
    /// Returns whether the figure is firm.
    pub fn is_firm(self) -> bool {
        self == Self::Firm
    }

    /// Returns the share of its load that the tester offered in the trial that was to decide, 0 to 1; none of a firm figure,
    /// and where no trial fell short.
    pub fn offered(self) -> Option<f64> {
        match self {
            Self::Firm => None,
            Self::NotFirm { offered } => offered,
        }
    }

    /// Returns what a figure of this firmness tells. Of a rate (`is_rate`) more is better, and one that is not firm is a lower bound.
    pub fn known(self, is_rate: bool) -> Known {
        match self {
            Self::Firm => Known::Value,
            Self::NotFirm { .. } if is_rate => Known::AtLeast,
            Self::NotFirm { .. } => Known::Nothing,
        }
    }

    /// Returns the firmness of a figure that rests on both: the one that fell shorter, if any is not firm.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Firm, other) | (other, Self::Firm) => other,
            (Self::NotFirm { offered: one }, Self::NotFirm { offered: other }) => {
                Self::NotFirm { offered: one.into_iter().chain(other).reduce(f64::min) }
            }
        }
    }
}

/// What a figure tells of the value that was to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The value itself.
    Value,
    /// A lower bound: the value may be higher.
    AtLeast,
    /// The figure belongs to another load than was asked for. The value may be anything.
    Nothing,
}

impl Known {
    /// Returns whether two figures that stand in this order show that their values do: `self` is the first of them.
    pub fn decides(self, order: Ordering, other: Self) -> bool {
        match order {
            Ordering::Greater => matches!((self, other), (Self::Value | Self::AtLeast, Self::Value)),
            Ordering::Less => other.decides(Ordering::Greater, self),
            Ordering::Equal => (self, other) == (Self::Value, Self::Value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_bound_wins_a_comparison_but_never_loses_one() {
        use Known::{AtLeast, Nothing, Value};
        let decided = |one: Known, other: Known| {
            [Ordering::Greater, Ordering::Equal, Ordering::Less].map(|order| one.decides(order, other))
        };
        assert_eq!(decided(Value, Value), [true, true, true]);
        assert_eq!(decided(AtLeast, Value), [true, false, false]);
        assert_eq!(decided(Value, AtLeast), [false, false, true]);
        assert_eq!(decided(AtLeast, AtLeast), [false; 3]);
        assert_eq!((decided(Nothing, Value), decided(Value, Nothing)), ([false; 3], [false; 3]));
        let short = Firmness::NotFirm { offered: None };
        assert_eq!([short.known(true), short.known(false), Firmness::Firm.known(false)], [AtLeast, Nothing, Value]);
    }

    #[test]
    fn a_figure_is_as_firm_as_what_it_rests_on() {
        let short = |offered| Firmness::NotFirm { offered };
        assert_eq!(Firmness::Firm.and(Firmness::Firm), Firmness::Firm);
        assert_eq!(Firmness::Firm.and(short(Some(0.6))), short(Some(0.6)));
        assert_eq!(short(Some(0.9)).and(short(Some(0.6))), short(Some(0.6)));
        assert_eq!(short(None).and(short(Some(0.6))).offered(), Some(0.6));
        assert!(Firmness::Firm.is_firm() && !short(None).is_firm());
    }

    #[test]
    fn a_record_says_it_in_a_word() {
        let json = |firmness: Firmness| serde_json::to_string(&firmness).expect("JSON");
        assert_eq!(json(Firmness::Firm), r#"{"is":"firm"}"#);
        assert_eq!(json(Firmness::NotFirm { offered: Some(0.5) }), r#"{"is":"not-firm","offered":0.5}"#);
    }
}
