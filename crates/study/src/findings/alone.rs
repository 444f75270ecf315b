//! Results beyond the line rate of the other media, which only one transport reaches.

use super::data::Data;
use super::words::listed;
use super::{bound, finding};
use crate::finding::{Finding, FindingKind};
use linerate_model::{MeasureUnit, Medium, Transport};
use linerate_report::parts::values::{range, value};
use linerate_report::said;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    if data.study.measures[measure].unit != MeasureUnit::BitsPerS {
        return Vec::new();
    }
    let mut media: Vec<Medium> = Vec::new();
    for medium in data.cells(measure).into_iter().filter_map(|cell| data.medium(cell, measure)) {
        if !media.contains(&medium) {
            media.push(medium);
        }
    }
    media.sort_by_key(|medium| medium.line());
    media.windows(2).filter_map(|pair| beyond(data, measure, &media, pair[0])).collect()
}

/// Returns the finding that only some exceed the line rate of `slower`.
fn beyond(data: &Data<'_>, measure: usize, media: &[Medium], slower: Medium) -> Option<Finding> {
    let line = slower.line().get() as f64;
    let unit = MeasureUnit::BitsPerS;
    let way = |cell: usize| -> Option<(Medium, Transport)> {
        Some((data.medium(cell, measure)?, data.transport(cell, measure)?))
    };
    let cells = data.cells(measure);
    let above: Vec<usize> =
        cells.iter().copied().filter(|cell| data.value(*cell, measure).is_some_and(|value| value > line)).collect();
    let (medium, transport) = way(*above.first()?)?;
    if !above.iter().all(|cell| way(*cell) == Some((medium, transport))) || medium.line() <= slower.line() {
        return None;
    }
    let value_of = |cell: &usize| data.value(*cell, measure);
    let same: Vec<usize> = cells.iter().copied().filter(|cell| way(*cell) == Some((medium, transport))).collect();
    // Only where the same medium could carry it over the other transport too is the transport worth naming.
    let other: Vec<usize> = cells
        .iter()
        .copied()
        .filter(|cell| way(*cell).is_some_and(|(its, by)| its == medium && by != transport))
        .filter(|cell| data.limit(*cell, measure).is_some_and(|limit| limit.low > line))
        .collect();
    let best_other = other
        .iter()
        .filter_map(value_of)
        .fold(None, |best: Option<f64>, one| Some(best.map_or(one, |best| best.max(one))))?;
    let most = above.iter().filter_map(value_of).fold(line, f64::max);
    let least = above.iter().filter_map(value_of).fold(f64::INFINITY, f64::min);
    let text = said!(
        data.lang,
        "findings-alone-above-the-line-rate",
        "Only {transport} over {medium} exceeds {line}, the line rate of {slower}: {above} of its {all} results, from \
         {range}.",
        line = value(line, unit),
        slower = slower,
        transport = transport,
        medium = medium,
        above = above.len(),
        all = same.len(),
        range = range(data.lang, least, most, unit)
    );
    let slower_ones: Vec<String> =
        media.iter().filter(|one| one.line() <= slower.line()).map(ToString::to_string).collect();
    let evidence = vec![
        bound(said!(
            data.lang,
            "findings-alone-cannot",
            "{media} cannot: no payload exceeds the line rate.",
            media = listed(data.lang, &slower_ones)
        )),
        bound(said!(
            data.lang,
            "findings-alone-the-other-transport-could",
            "The other transport could over {medium}, which carries more than that; its best of {count} results is \
             {best}.",
            medium = medium,
            count = other.len(),
            best = value(best_other, unit)
        )),
    ];
    Some(finding(FindingKind::Alone, text, evidence))
}
