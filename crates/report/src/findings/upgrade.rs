//! A faster medium that brings little.

use super::data::Data;
use super::words::{extremes, times, times_range, value};
use super::{bound, finding};
use crate::said;
use linerate_model::{Finding, FindingKind};

/// A medium counts as faster from this ratio of limits on.
const FASTER: f64 = 2.0;
/// Little is less than this share of what it could bring, in every pair of cells.
const LITTLE: f64 = 0.5;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let Some(factor) = data.medium_factor() else { return Vec::new() };
    let levels = 0..data.study.factors[factor].levels.len();
    let pairs = levels.clone().flat_map(|slow| levels.clone().map(move |fast| (slow, fast)));
    pairs.filter_map(|(slow, fast)| of_levels(data, measure, factor, slow, fast)).collect()
}

fn of_levels(data: &Data<'_>, measure: usize, factor: usize, slow: usize, fast: usize) -> Option<Finding> {
    let pairs: Vec<_> = data.pairs(factor, fast, slow, measure).into_iter().filter(|pair| pair.b.1 > 0.0).collect();
    // What is above its limit, or at the tester limit, says nothing of the medium.
    let limits: Option<Vec<_>> = pairs
        .iter()
        .map(|pair| Some((data.limit(pair.a.0, measure)?, data.limit(pair.b.0, measure)?)))
        .map(|limits| limits.filter(|(a, b)| a.share <= 1.0 && b.share <= 1.0))
        .collect();
    let (could, _) = extremes(limits?.iter().map(|(a, b)| a.low / b.high))?;
    let (least, most) = extremes(pairs.iter().map(|pair| pair.a.1 / pair.b.1))?;
    if could < FASTER || most >= LITTLE * could || pairs.iter().any(|pair| data.is_tester(pair.a.0)) {
        return None;
    }
    let unit = data.study.measures[measure].unit;
    let (fast, slow) = (data.name_of(factor, fast), data.name_of(factor, slow));
    let title = &data.study.measures[measure].title;
    let text = said!(
        data.lang,
        "findings-upgrade-brings-little",
        fast = fast,
        slow = slow,
        could = times(data.lang, could),
        title = title,
        range = times_range(data.lang, least, most)
    );
    let each: Vec<String> = pairs
        .iter()
        .map(|pair| {
            let name = data.cell_name(pair.a.0, &[factor]);
            let (fast, slow) = (value(pair.a.1, unit), value(pair.b.1, unit));
            said!(data.lang, "findings-upgrade-against", name = name, fast = fast, slow = slow)
        })
        .collect();
    let each = each.join("; ");
    let evidence = match pairs.len() {
        1 => said!(data.lang, "findings-upgrade-the-one-pair", each = each),
        count => said!(data.lang, "findings-upgrade-all-pairs", count = count, each = each),
    };
    Some(finding(FindingKind::Upgrade, text, vec![bound(evidence)]))
}
