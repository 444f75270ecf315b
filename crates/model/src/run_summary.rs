//! What a run amounts to so far, as lists show it.

use crate::{Confidence, Firmness, Limit, MeasureUnit, Measurement, Quantity, TaskKind};
use serde::{Deserialize, Serialize};

/// What a run amounts to so far. It is renewed with every trial and follows from the trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// How many things have a result.
    pub results: u32,
    /// The figure that stands for the run; none while nothing is measured.
    pub headline: Option<Headline>,
    /// What limited that figure; none where nothing was weighed.
    pub verdict: Option<HeadlineVerdict>,
}

/// One figure that stands for a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// The name of the result.
    pub result: String,
    /// What the figure counts.
    pub quantity: Quantity,
    /// The figure: of several runs the median.
    pub value: f64,
    /// The unit of the value.
    pub unit: MeasureUnit,
    /// Whether it is firm.
    pub firmness: Firmness,
    /// The lowest and the highest of its runs; none where it is not made of runs, as the rate that a search finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// The figure as a share of what the link carries, 0 to 1; none where no link speed is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_share: Option<f64>,
}

impl Headline {
    /// The main figure of `result`.
    pub fn of(result: &Measurement, firmness: Firmness) -> Self {
        Self {
            result: result.name.clone(),
            quantity: result.quantity,
            value: result.main.median,
            unit: result.quantity.unit(),
            firmness,
            range: Some((result.main.low, result.main.high)),
            link_share: result.limit().map(|limit| limit.share),
        }
    }

    /// A figure counts as changed if it differs from the figure before by more than this share of that.
    pub const CHANGED: f64 = 0.05;

    /// Returns whether both are figures of the same kind: of results of the same name, in the same unit.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.result, self.quantity, self.unit) == (&other.result, other.quantity, other.unit)
    }

    /// Returns the change from `before` to this figure as a share of `before`. None unless both are firm and of the same kind, and
    /// where `before` is zero.
    pub fn change_from(&self, before: &Self) -> Option<f64> {
        let are_firm = self.firmness.is_firm() && before.firmness.is_firm();
        (are_firm && self.is_like(before) && before.value > 0.0).then(|| self.value / before.value - 1.0)
    }

    /// Returns whether it has changed from `before`: by more than [`Headline::CHANGED`], where the change is known.
    pub fn has_changed_from(&self, before: &Self) -> bool {
        self.change_from(before).is_some_and(|change| change.abs() > Self::CHANGED)
    }
}

/// What limited the figure that stands for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadlineVerdict {
    /// What limited it.
    pub limit: Limit,
    /// Confidence in it.
    pub confidence: Confidence,
}

impl RunSummary {
    /// The summary of `results`; the first of them stands for the run.
    pub fn of(results: &[Measurement]) -> Self {
        let first = results.first();
        Self {
            results: u32::try_from(results.len()).unwrap_or(u32::MAX),
            // Probes without an answer have no round trip.
            headline: first
                .filter(|result| result.task() != TaskKind::Hops || result.main.median > 0.0)
                .map(|result| Headline::of(result, result.firmness())),
            verdict: first.map(|Measurement { verdict, .. }| HeadlineVerdict {
                limit: verdict.limit,
                confidence: verdict.confidence,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_changed_where_a_firm_one_of_its_kind_differs_by_more_than_five_percent() {
        let of = |value| Headline {
            result: "tcp".into(),
            quantity: Quantity::PayloadBps,
            value,
            unit: MeasureUnit::BitsPerS,
            firmness: Firmness::Firm,
            range: None,
            link_share: None,
        };
        let before = of(100.0);
        for (value, change, changed) in
            [(100.0, 0.0, false), (104.0, 0.04, false), (96.0, -0.04, false), (106.0, 0.06, true), (94.0, -0.06, true)]
        {
            let new = of(value);
            let found = new.change_from(&before).expect("both are firm");
            assert!((found - change).abs() < 1e-9, "{value}: {found}");
            assert_eq!(new.has_changed_from(&before), changed, "{value}");
        }
        let not_firm = Headline { firmness: Firmness::NotFirm { offered: None }, ..of(50.0) };
        let named = Headline { result: "udp".into(), ..of(50.0) };
        let counted = Headline { quantity: Quantity::PerSecond, unit: MeasureUnit::PerS, ..of(50.0) };
        for (new, before) in
            [(&not_firm, &before), (&before, &not_firm), (&named, &before), (&counted, &before), (&before, &of(0.0))]
        {
            assert_eq!(new.change_from(before), None, "{new:?} after {before:?}");
            assert!(!new.has_changed_from(before));
        }
    }
}
