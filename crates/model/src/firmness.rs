//! Whether a figure was really shown, or the tester left it open.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests {
    use super::*;

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
