//! What follows from ranges and bounds that an author states: no test, for only the bounds are known.

use super::data::Data;
use super::limiter::IDLE;
use super::words::{listed, range, share};
use super::{bound, finding};
use crate::figures::grouped;
use crate::language::Language;
use crate::said;
use crate::sentences::sentence;
use linerate_model::{Finding, FindingKind, MeasureUnit, StatedAs, StatedValue};

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    if data.study.measures[measure].unit == MeasureUnit::Times {
        return ratios(data, measure).into_iter().collect();
    }
    if !data.study.measures[measure].unit.is_rate() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for factor in data.unordered() {
        let levels = 0..data.study.factors[factor].levels.len();
        for high in levels.clone() {
            for low in levels.clone() {
                let pairs = pairs(data, measure, factor, high, low);
                // As in a ranking each medium stands by itself, unless media are compared.
                let by = data.medium_factor().filter(|by| *by != factor);
                let medium = |cell: usize| by.and_then(|by| data.study.cells[cell].levels[by]);
                let mut media: Vec<Option<usize>> = pairs.iter().map(|(cell, _)| medium(*cell)).collect();
                media.sort_unstable();
                media.dedup();
                for one in media {
                    let within: Vec<_> = pairs.iter().copied().filter(|(cell, _)| medium(*cell) == one).collect();
                    found.extend(above(data, measure, factor, (high, low), &within));
                }
            }
        }
    }
    found.extend(far_below_the_limit(data, measure));
    found
}

/// What a stated ratio says of growth; none where it may be growth or not.
fn change(lang: Language, stated: &StatedValue, ratio: &str) -> Option<String> {
    let (low, high) = (stated.low.unwrap_or(0.0), stated.high.unwrap_or(f64::INFINITY));
    match stated.as_a {
        StatedAs::About if low <= 1.0 && high >= 1.0 => {
            Some(said!(lang, "findings-stated-does-not-grow", ratio = ratio))
        }
        StatedAs::MoreThan if low >= 1.0 => Some(said!(lang, "findings-stated-grows", ratio = ratio)),
        StatedAs::LessThan if high <= 1.0 => Some(said!(lang, "findings-stated-falls", ratio = ratio)),
        _ if low > 1.0 => Some(said!(lang, "findings-stated-grows", ratio = ratio)),
        _ if high < 1.0 => Some(said!(lang, "findings-stated-falls", ratio = ratio)),
        _ => None,
    }
}

/// Ratios as they are stated, for each of their cells, with what they say in words.
fn ratios(data: &Data<'_>, measure: usize) -> Option<Finding> {
    let clause = |cell: usize| {
        let (ratio, name) = (data.shown(cell, measure)?, data.cell_name(cell, &[]));
        let in_words = data.stated(cell, measure).and_then(|stated| change(data.lang, stated, &ratio));
        let ratio = in_words.unwrap_or(ratio);
        Some(if name.is_empty() { ratio } else { format!("{name}: {ratio}") })
    };
    let clauses: Vec<String> = (0..data.study.cells.len()).filter_map(clause).collect();
    let (first, title) = (clauses.first()?, &data.study.measures[measure].title);
    let each = if clauses.len() == 1 { first.clone() } else { clauses.join("; ") };
    let text = said!(data.lang, "findings-stated-ratios", title = title, each = each);
    let evidence = bound(said!(data.lang, "findings-stated-only-the-ratio"));
    Some(finding(FindingKind::Stated, sentence(&text), vec![evidence]))
}

/// Cells of both levels that agree in all else, of which one at least is stated as a range or a bound.
fn pairs(data: &Data<'_>, measure: usize, factor: usize, high: usize, low: usize) -> Vec<(usize, usize)> {
    let with = |level: usize| {
        let is = move |cell: &usize| data.study.cells[*cell].levels[factor] == Some(level);
        (0..data.study.cells.len()).filter(is).filter(move |cell| data.span(*cell, measure).is_some())
    };
    let rest = |cell: usize| {
        let mut levels = data.study.cells[cell].levels.clone();
        levels[factor] = None;
        levels
    };
    with(high)
        .filter_map(|cell| Some((cell, with(low).find(|other| rest(*other) == rest(cell))?)))
        .filter(|(cell, other)| data.stated(*cell, measure).is_some() || data.stated(*other, measure).is_some())
        .collect()
}

/// One level above another in all of these pairs.
fn above(
    data: &Data<'_>,
    measure: usize,
    factor: usize,
    (high, low): (usize, usize),
    pairs: &[(usize, usize)],
) -> Option<Finding> {
    let is_above = |(cell, other): &(usize, usize)| {
        let (ours, theirs) = (data.span(*cell, measure), data.span(*other, measure));
        ours.zip(theirs).is_some_and(|((least, _), (_, most))| least > most)
    };
    if pairs.is_empty() || !pairs.iter().all(is_above) {
        return None;
    }
    let clause = |(cell, other): &(usize, usize)| {
        let (ours, theirs) = (data.shown(*cell, measure)?, data.shown(*other, measure)?);
        let name = data.cell_name(*cell, &[factor]);
        Some(said!(data.lang, "findings-stated-against", name = name, ours = ours, theirs = theirs))
    };
    let clauses: Option<Vec<String>> = pairs.iter().map(clause).collect();
    let (high, low) = (data.name_of(factor, high), data.name_of(factor, low));
    let mut text = said!(
        data.lang,
        "findings-stated-above",
        title = data.study.measures[measure].title,
        high = high,
        low = low,
        clauses = clauses?.join("; ")
    );
    // Where the one is carried whole and the other in fragments, that is what differs.
    let whole = |cell: usize| {
        let path = data.path(cell, measure);
        let mtu = path.mtu.or(path.medium.map(|medium| medium.mtu()))?;
        let carried = path.carried().ok().filter(|carried| !carried.is_empty())?;
        let packets: Vec<bool> = carried.iter().map(|one| one.packet_count() == 1).collect();
        Some((packets.iter().all(|one| *one), packets.iter().any(|one| *one), mtu))
    };
    let mtus: Vec<u32> = pairs
        .iter()
        .filter_map(|(cell, other)| match (whole(*cell)?, whole(*other)?) {
            ((true, _, mtu), (_, false, _)) => Some(mtu),
            _ => None,
        })
        .collect();
    if mtus.len() == pairs.len()
        && let Some(mtu) = mtus.first()
    {
        let mtu = grouped(u64::from(*mtu));
        text.push_str(&said!(data.lang, "findings-stated-fragments", low = low, high = high, mtu = mtu));
    }
    let evidence = bound(said!(data.lang, "findings-stated-do-not-overlap"));
    Some(finding(FindingKind::Stated, sentence(&text), vec![evidence]))
}

/// Results whose highest possible value is far below what the medium can carry.
fn far_below_the_limit(data: &Data<'_>, measure: usize) -> Option<Finding> {
    let unit = data.study.measures[measure].unit;
    let of = |cell: usize| {
        let most = data.stated(cell, measure)?.high.filter(|_| data.value(cell, measure).is_none())?;
        let (low, high) = data.range(cell, measure)?;
        (most < IDLE * low).then_some((cell, most / low, range(data.lang, low, high, unit)))
    };
    let cells: Vec<(usize, f64, String)> = (0..data.study.cells.len()).filter_map(of).collect();
    let names: Vec<String> = cells.iter().map(|(cell, ..)| data.cell_name(*cell, &[])).collect();
    let most = cells.iter().map(|(_, share, _)| *share).reduce(f64::max)?;
    let text = said!(
        data.lang,
        "findings-stated-not-the-wire",
        title = data.study.measures[measure].title,
        names = names.join("; "),
        most = share(most)
    );
    let each = cells.iter().filter_map(|(cell, _, limit)| {
        let reached = data.shown(*cell, measure)?;
        Some(said!(
            data.lang,
            "findings-words-reached-of",
            name = data.cell_name(*cell, &[]),
            reached = reached,
            most = limit
        ))
    });
    let each = listed(data.lang, &each.collect::<Vec<_>>());
    Some(finding(FindingKind::Limiter, text, vec![bound(sentence(&each))]))
}
