//! What a run amounts to so far, as lists show it.

use crate::{Confidence, Firmness, Limit, MeasureUnit, Measurement, Quantity};
use serde::{Deserialize, Serialize};

/// What a run amounts to so far. It is renewed with every trial and follows from the trials.
#[derive(Debug, Clone, Default, PartialEq)]
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
            link_share: result.flows().and_then(|flows| flows.limit.as_ref()).map(|limit| limit.share),
        }
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
            headline: first.map(|result| Headline::of(result, Firmness::Firm)),
            verdict: first.map(|Measurement { verdict, .. }| HeadlineVerdict {
                limit: verdict.limit,
                confidence: verdict.confidence,
            }),
        }
    }
}
