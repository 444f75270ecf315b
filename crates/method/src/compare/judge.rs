//! What the differences of all figures amount to, together.

use super::runs::Runs;
use crate::statistics::{Contrast, Holm, Sample, Scale, Tested, summary};
use linerate_model::{Change, ComparedFigure, Firmness, Quantity};
use std::cmp::Ordering;

/// Loss is compared as it stands: a change of this share of all datagrams matters, whatever was lost before.
const LOSS_THAT_MATTERS: f64 = 0.001;

/// One figure of both sides, before it is judged.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    name: String,
    quantity: Quantity,
    /// The values of both sides.
    before: Vec<f64>,
    after: Vec<f64>,
    /// Whether these are firm, before and after.
    firmness: [Firmness; 2],
    /// None where they are too few to show their spread.
    contrast: Option<Contrast>,
}

impl Figure {
    /// The runs of one session against those of another.
    pub(super) fn of_runs(name: &str, quantity: Quantity, before: &Runs, after: &Runs) -> Self {
        let samples = before.sample().zip(after.sample());
        let contrast = samples.and_then(|(before, after)| Contrast::welch(scale(quantity), &before, &after));
        let firmness = [before.firmness, after.firmness];
        let (before, after) = (before.values.clone(), after.values.clone());
        Self { name: name.to_owned(), quantity, before, after, firmness, contrast }
    }

    /// The means of several sessions, of which one side may have one only. Sessions differ by more than their runs do. What
    /// they differ by is a property of the place and not of what is compared, so both sides are taken to have one variance.
    pub(super) fn of_sessions(name: &str, quantity: Quantity, before: &[Runs], after: &[Runs]) -> Option<Self> {
        let mean_values = |side: &[Runs]| side.iter().map(Runs::mean).collect::<Vec<f64>>();
        let sample = |side: &[Runs], of_sessions: &[f64]| {
            let squares = side.iter().map(|runs| runs.resolution_of_mean().powi(2)).sum::<f64>();
            Sample::of(of_sessions, (squares / side.len() as f64).sqrt())
        };
        let (old, new) = (mean_values(before), mean_values(after));
        let (old_sample, new_sample) = (sample(before, &old)?, sample(after, &new)?);
        let contrast = Contrast::pooled(scale(quantity), &old_sample, &new_sample);
        let firmness =
            [before, after].map(|side| side.iter().map(|runs| runs.firmness).fold(Firmness::Firm, Firmness::and));
        Some(Self { name: name.to_owned(), quantity, before: old, after: new, firmness, contrast })
    }

    /// Runs that were made in turn. What has no partner yet is left out.
    pub(super) fn of_pairs(name: &str, quantity: Quantity, before: &Runs, after: &Runs) -> Self {
        let pairs: Vec<(f64, f64)> = before.values.iter().copied().zip(after.values.iter().copied()).collect();
        let contrast = Contrast::paired(scale(quantity), &pairs, (before.resolution, after.resolution));
        let firmness = [before.firmness, after.firmness];
        let (before, after) = pairs.into_iter().unzip();
        Self { name: name.to_owned(), quantity, before, after, firmness, contrast }
    }

    /// The figure with its verdict, in all detail.
    fn told(self, verdict: Judged, tolerance: f64, (level, tests): (f64, usize)) -> Option<ComparedFigure> {
        let tolerance = self.tolerance(tolerance);
        let contrast = self.contrast;
        // Where a figure is not firm, repeats of the same decide nothing.
        let undecided = contrast.filter(|_| verdict.change == Change::Undecided && self.is_firm());
        // To a millionth of a percent: 90, not what is left of it in binary.
        let percent = ((100.0 - 200.0 * level) * 1e6).round() / 1e6;
        Some(ComparedFigure {
            difference: self.difference(),
            tolerance,
            interval: contrast.and_then(|contrast| contrast.interval(percent)),
            p_beyond: verdict.tests.map(|(beyond, _)| beyond),
            p_within: verdict.tests.map(|(_, within)| within),
            p: verdict.p,
            change: verdict.change,
            needed: undecided.and_then(|contrast| contrast.repeats_needed(tolerance, level / tests.max(1) as f64)),
            name: self.name,
            quantity: self.quantity,
            before_firmness: self.firmness[0],
            after_firmness: self.firmness[1],
            before: summary(self.before)?,
            after: summary(self.after)?,
        })
    }

    fn is_firm(&self) -> bool {
        self.firmness.iter().all(|firmness| firmness.is_firm())
    }

    /// Whether the figures may show that what is after stands so to what was before.
    fn shows(&self, after: Ordering) -> bool {
        let [before, now] = self.firmness.map(|firmness| firmness.known(self.quantity.more_is_better()));
        now.decides(after, before)
    }

    fn tolerance(&self, tolerance: f64) -> f64 {
        if self.quantity == Quantity::LossRatio { LOSS_THAT_MATTERS } else { tolerance }
    }

    /// The difference of the means; none as a share of nothing.
    fn difference(&self) -> Option<f64> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (old, new) = (mean(&self.before), mean(&self.after));
        match scale(self.quantity) {
            Scale::Difference => Some(new - old),
            Scale::Ratio => (old != 0.0).then(|| new / old - 1.0),
        }
    }
}

/// A loss is a share already; other figures are compared as shares of what they were.
fn scale(quantity: Quantity) -> Scale {
    if quantity == Quantity::LossRatio { Scale::Difference } else { Scale::Ratio }
}

/// A verdict and the tests behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    /// The p-values that the difference is larger, and smaller, than the tolerance; none without a known spread.
    tests: Option<(f64, f64)>,
    /// The smaller of both, adjusted for the number of figures.
    p: Option<f64>,
    pub(super) change: Change,
}

/// Compares all figures at `level`.
pub(super) fn compared(figures: Vec<Figure>, tolerance: f64, level: f64) -> Vec<ComparedFigure> {
    let verdicts = judge(&figures, tolerance, level);
    let tests = verdicts.iter().filter(|verdict| verdict.tests.is_some()).count();
    let told =
        figures.into_iter().zip(verdicts).map(|(figure, verdict)| figure.told(verdict, tolerance, (level, tests)));
    told.flatten().collect()
}

/// Judges all figures together at `level`.
///
/// A figure is worse or better if it differs by more than the tolerance, equivalent if it differs by less, and undecided where
/// neither is significant, or where a figure that is not firm leaves it open ([`linerate_model::Known`]). Of both null hypotheses one is true, so the two tests of a figure count as one (Stefansson, Kim and
/// Hsu, Statistical Decision Theory and Related Topics IV, 1988). Over the figures p-values are adjusted by Holm.
pub(super) fn judge(figures: &[Figure], tolerance: f64, level: f64) -> Vec<Judged> {
    let tests = |figure: &Figure| {
        let (contrast, tolerance) = (figure.contrast?, figure.tolerance(tolerance));
        Some((contrast.p_beyond(tolerance), contrast.p_within(tolerance)))
    };
    let all: Vec<Option<(f64, f64)>> = figures.iter().map(tests).collect();
    let smaller = |(beyond, within): (f64, f64)| Tested::any(beyond.min(within));
    let family = Holm::over(all.iter().flatten().copied().map(smaller));
    let verdict = |(figure, tests): (&Figure, Option<(f64, f64)>)| {
        let p = tests.map(|tests| family.adjusted(smaller(tests)));
        let change = match (figure.difference(), tests) {
            (Some(difference), Some((beyond, within))) if p.is_some_and(|p| p < level) => {
                let order = match beyond < within {
                    true if difference > 0.0 => Ordering::Greater,
                    true => Ordering::Less,
                    false => Ordering::Equal,
                };
                match order {
                    _ if !figure.shows(order) => Change::Undecided,
                    Ordering::Equal => Change::Equivalent,
                    order if (order == Ordering::Greater) == figure.quantity.more_is_better() => Change::Better,
                    _ => Change::Worse,
                }
            }
            _ => Change::Undecided,
        };
        Judged { tests, p, change }
    };
    figures.iter().zip(all).map(verdict).collect()
}
