//! Results in the words of a cell.

use linerate_method::statistics::median;
use linerate_model::{Confidence, Firmness, Headline, HeadlineVerdict, Limit, MeasureUnit, Quantity};
use linerate_report::parts::figures::percent;
use linerate_report::{Language, said};
use linerate_store::MatrixCell;

/// Name of the site of hosts without the label `site`, in addresses.
pub(super) const NO_SITE: &str = "(none)";

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Grade of a result among those next to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grade {
    Good,
    Fair,
    Poor,
}

impl Grade {
    /// Returns the grade of a share of the best result. 1 is as good as can be.
    pub(super) fn of(score: f64) -> Self {
        if score >= 0.8 {
            Self::Good
        } else if score >= 0.5 {
            Self::Fair
        } else {
            Self::Poor
        }
    }

    /// Class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Poor => "poor",
        }
    }

    pub(super) fn word(self, lang: Language) -> String {
        match self {
            Self::Good => said!(lang, "view-grade-good", "good"),
            Self::Fair => said!(lang, "view-grade-fair", "fair"),
            Self::Poor => said!(lang, "view-grade-poor", "poor"),
        }
    }
}

/// Typical value of the cells of a matrix, for cells without a known link.
pub(super) struct Typical(Vec<(Quantity, f64)>);

impl Typical {
    pub(super) fn of(cells: &[MatrixCell]) -> Self {
        let mut values: Vec<(Quantity, Vec<f64>)> = Vec::new();
        for cell in cells.iter().filter(|cell| cell.value.is_finite()) {
            match values.iter_mut().find(|(quantity, _)| *quantity == cell.quantity) {
                Some((_, known)) => known.push(cell.value),
                None => values.push((cell.quantity, vec![cell.value])),
            }
        }
        Self(values.into_iter().filter_map(|(quantity, values)| Some((quantity, median(values)?))).collect())
    }

    /// Returns how good a result is: its share of the link, or its ratio to the median, at most 1. Returns `None` if there is
    /// nothing to compare with.
    pub(super) fn score(&self, cell: &MatrixCell) -> Option<f64> {
        if let Some(share) = cell.link_share.filter(|share| share.is_finite()) {
            return Some(share.clamp(0.0, 1.0));
        }
        let median = self.median(cell.quantity)?;
        let ratio = if cell.quantity.more_is_better() { cell.value / median } else { median / cell.value };
        Some(ratio).filter(|ratio| ratio.is_finite()).map(|ratio| ratio.clamp(0.0, 1.0))
    }

    fn median(&self, quantity: Quantity) -> Option<f64> {
        let (_, median) = self.0.iter().find(|(known, _)| *known == quantity)?;
        Some(*median).filter(|median| *median > 0.0)
    }

    /// Returns what the grade refers to: `94.1 % of link`, or `2.1 x median`.
    pub(super) fn relation(&self, lang: Language, cell: &MatrixCell) -> Option<String> {
        if let Some(share) = cell.link_share.and_then(percent) {
            return Some(said!(lang, "view-of-link", "{share} of link", share = share));
        }
        let ratio = cell.value / self.median(cell.quantity)?;
        Some(said!(lang, "view-of-median", "{ratio} x median", ratio = format!("{ratio:.1}")))
    }
}

/// Returns a result as the figure of a run.
pub(super) fn headline(test: &str, quantity: Quantity, unit: MeasureUnit, value: f64) -> Headline {
    Headline { result: test.to_owned(), quantity, value, unit, firmness: Firmness::Firm, range: None, link_share: None }
}

/// Returns a value with its unit.
pub(super) fn figure(quantity: Quantity, unit: MeasureUnit, value: f64) -> String {
    linerate_report::headline(&headline("", quantity, unit, value))
}

/// Returns a limit with its confidence: `shaper (high)`. Returns `None` without a limit.
pub(super) fn limit(lang: Language, limit: Option<Limit>, confidence: Option<Confidence>) -> Option<String> {
    let limit = limit?;
    Some(match confidence {
        Some(confidence) if limit != Limit::CannotTell => {
            linerate_report::headline_limit(lang, HeadlineVerdict { limit, confidence })
        }
        _ => lang.text(limit.text()),
    })
}

/// Returns the time since `unix_ns` in the largest unit that fits: `5 min`, `3 h`, `2 d`.
pub(super) fn age(lang: Language, now: u64, unix_ns: u64) -> String {
    let age = now.saturating_sub(unix_ns);
    if age < MINUTE {
        said!(lang, "view-age-now", "under 1 min")
    } else if age < 2 * HOUR {
        said!(lang, "view-age-minutes", "{count} min", count = age / MINUTE)
    } else if age < 2 * DAY {
        said!(lang, "view-age-hours", "{count} h", count = age / HOUR)
    } else {
        said!(lang, "view-age-days", "{count} d", count = age / DAY)
    }
}

/// Returns a change in words: `941 Mbit/s → 800 Mbit/s (-15.0 %)`.
pub(super) fn step(quantity: Quantity, unit: MeasureUnit, before: Option<f64>, after: f64) -> String {
    let shown = figure(quantity, unit, after);
    let Some(before) = before else { return shown };
    let share = (after / before - 1.0) * 100.0;
    let share = if share.is_finite() { format!(" ({share:+.1} %)") } else { String::new() };
    format!("{} \u{2192} {shown}{share}", figure(quantity, unit, before))
}

/// Returns the name of a site for readers.
pub(super) fn site_name(lang: Language, site: &str) -> String {
    if site.is_empty() { said!(lang, "view-no-site", "(no site)") } else { linerate_report::plain(site) }
}

/// Returns the name of a site in addresses.
pub(super) fn site_field(site: &str) -> &str {
    if site.is_empty() { NO_SITE } else { site }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::RecordId;

    fn cell(quantity: Quantity, value: f64, link_share: Option<f64>) -> MatrixCell {
        MatrixCell {
            row: 0,
            column: 0,
            from: "a".into(),
            to: "b".into(),
            value,
            unit: quantity.unit(),
            quantity,
            link_share,
            limit: None,
            confidence: None,
            started_unix_ns: 0,
            last_unix_ns: 0,
            pairs: 1,
            results: 1,
            changed_unix_ns: None,
            record: Some(RecordId("x".into())),
        }
    }

    #[test]
    fn share_of_the_link_decides_the_grade() {
        let slow = cell(Quantity::PayloadBps, 94e6, Some(0.094));
        let typical = Typical::of(&[slow.clone(), slow.clone()]);
        assert_eq!(typical.score(&slow).map(Grade::of), Some(Grade::Poor), "all cells are equally slow");
        assert_eq!(typical.relation(Language::English, &slow).as_deref(), Some("9.4 % of link"));
        let over = cell(Quantity::PayloadBps, 1.1e9, Some(1.1));
        assert_eq!(typical.score(&over), Some(1.0));
    }

    #[test]
    fn without_a_link_the_median_decides() {
        let rates: Vec<_> = [100e6, 940e6, 941e6].map(|rate| cell(Quantity::PayloadBps, rate, None)).into();
        let typical = Typical::of(&rates);
        let grades: Vec<_> = rates.iter().map(|cell| typical.score(cell).map(Grade::of)).collect();
        assert_eq!(grades, [Some(Grade::Poor), Some(Grade::Good), Some(Grade::Good)]);
        let times: Vec<_> = [1e6, 1e6, 4e6].map(|time| cell(Quantity::LatencyP50Ns, time, None)).into();
        let typical = Typical::of(&times);
        assert_eq!(typical.score(&times[2]).map(Grade::of), Some(Grade::Poor), "more time is worse");
        assert_eq!(typical.relation(Language::English, &times[2]).as_deref(), Some("4.0 x median"));
    }

    #[test]
    fn absurd_values_have_no_grade() {
        let zero = cell(Quantity::PayloadBps, 0.0, None);
        assert_eq!(Typical::of(std::slice::from_ref(&zero)).score(&zero), None);
        let wrong = cell(Quantity::PayloadBps, f64::NAN, Some(f64::NAN));
        assert_eq!(Typical::of(std::slice::from_ref(&wrong)).score(&wrong), None);
    }

    #[test]
    fn ages_are_in_the_largest_unit() {
        let now = 100 * DAY;
        for (ago, shown) in [
            (0, "under 1 min"),
            (MINUTE, "1 min"),
            (119 * MINUTE, "119 min"),
            (2 * HOUR, "2 h"),
            (47 * HOUR, "47 h"),
            (2 * DAY, "2 d"),
        ] {
            assert_eq!(age(Language::English, now, now - ago), shown);
        }
        assert_eq!(age(Language::English, 0, now), "under 1 min", "a clock ahead of ours");
    }

    #[test]
    fn steps_have_both_values() {
        let of = |before, after| step(Quantity::PayloadBps, MeasureUnit::BitsPerS, before, after);
        assert_eq!(of(Some(941e6), 800e6), "941 Mbit/s \u{2192} 800 Mbit/s (-15.0 %)");
        assert_eq!(of(None, 800e6), "800 Mbit/s");
        assert!(!of(Some(0.0), 800e6).contains('%'));
    }
}
