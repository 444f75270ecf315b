//! Conclusions from ranges and bounds that an author states. There is no test, because only bounds are known.

use super::data::{Data, Group};
use super::growth::FULL;
use super::limiter::{IDLE, on};
use super::words::{listed, share, with_semicolons};
use super::{bound, finding};
use crate::finding::{Finding, FindingKind};
use crate::study::{StatedAs, StatedValue};
use linerate_model::MeasureUnit;
use linerate_model::Text;
use linerate_model::text;
use linerate_report::parts::values::range;
use linerate_report::parts::wording::sentence;
use linerate_report::{Language, said};
use linerate_units::grouped;

/// Lowest stated share of its limit at which a medium counts as filled.
const NEAR: f64 = FULL;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    if data.study.measures[measure].unit == MeasureUnit::Times {
        return ratios(data, measure).into_iter().collect();
    }
    if !data.study.measures[measure].unit.is_rate() {
        return Vec::new();
    }
    let groups = data.groups_with_stated(data.medium_factor(), measure);
    let mut found: Vec<Finding> = groups.iter().filter_map(|group| near_the_limit(data, measure, group)).collect();
    for factor in data.unordered() {
        let levels = 0..data.study.factors[factor].levels.len();
        for high in levels.clone() {
            for low in levels.clone() {
                let pairs = data.pairs_with_stated(factor, high, low, measure);
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

/// Returns the finding about results on one medium: those near its limit, and those far below it.
fn near_the_limit(data: &Data<'_>, measure: usize, group: &Group) -> Option<Finding> {
    let unit = data.study.measures[measure].unit;
    let mut near = Vec::new();
    let mut far = Vec::new();
    let mut limits = Vec::new();
    for cell in &group.cells {
        let Some((low, high)) = data.range(*cell, measure) else { continue };
        let (_, most) = data.span(*cell, measure)?;
        let is_about = data.stated(*cell, measure).is_some_and(|stated| stated.as_a == StatedAs::About);
        let names = match data.value(*cell, measure) {
            Some(value) if is_about && value >= NEAR * high => &mut near,
            _ if most < IDLE * low => &mut far,
            _ => continue,
        };
        let (name, shown) = (data.cell_name(*cell, &but_medium(data)), data.shown(*cell, measure)?);
        names.push(said!(data.lang, "findings-stated-with", "{name} ({shown})", name = name, shown = shown));
        let limit = range(data.lang, low, high, unit);
        limits.push(said!(
            data.lang,
            "findings-stated-of",
            "{name}: {shown} of {limit}",
            name = name,
            shown = shown,
            limit = limit
        ));
    }
    if near.is_empty() {
        return None;
    }
    let title = &data.study.measures[measure].title;
    let on = on(data, std::slice::from_ref(&group.name));
    let mut text = said!(
        data.lang,
        "findings-stated-near",
        "{title} {on} comes near what the medium can carry with {near}.",
        title = title,
        on = on,
        near = listed(data.lang, &near)
    );
    if !far.is_empty() {
        text.push_str(&said!(
            data.lang,
            "findings-stated-far",
            " It stays far below that with {far}.",
            far = listed(data.lang, &far)
        ));
    }
    let evidence = said!(
        data.lang,
        "findings-stated-near-and-far",
        "Near is {near} of the limit or more, far below is less than {far} of it. {each}.",
        near = share(NEAR),
        far = share(IDLE),
        each = with_semicolons(data.lang, &limits)
    );
    Some(finding(FindingKind::Stated, sentence(&text), vec![bound(evidence)]))
}

/// Returns the factor of the media, which a sentence about one of them does not name.
fn but_medium(data: &Data<'_>) -> Vec<usize> {
    data.medium_factor().into_iter().collect()
}

/// Returns what a stated ratio says about growth; `None` if it leaves it open.
fn change(lang: Language, stated: &StatedValue, ratio: &str) -> Option<String> {
    let (low, high) = (stated.low.unwrap_or(0.0), stated.high.unwrap_or(f64::INFINITY));
    match stated.as_a {
        StatedAs::About if low <= 1.0 && high >= 1.0 => {
            Some(said!(lang, "findings-stated-does-not-grow", "does not grow ({ratio})", ratio = ratio))
        }
        StatedAs::MoreThan if low >= 1.0 => {
            Some(said!(lang, "findings-stated-grows", "grows ({ratio})", ratio = ratio))
        }
        StatedAs::LessThan if high <= 1.0 => {
            Some(said!(lang, "findings-stated-falls", "falls ({ratio})", ratio = ratio))
        }
        _ if low > 1.0 => Some(said!(lang, "findings-stated-grows", "grows ({ratio})", ratio = ratio)),
        _ if high < 1.0 => Some(said!(lang, "findings-stated-falls", "falls ({ratio})", ratio = ratio)),
        _ => None,
    }
}

/// Returns the stated ratios of each cell, with their sentences.
fn ratios(data: &Data<'_>, measure: usize) -> Option<Finding> {
    let clause = |cell: usize| {
        let (ratio, name) = (data.shown(cell, measure)?, data.cell_name(cell, &[]));
        let in_words = data.stated(cell, measure).and_then(|stated| change(data.lang, stated, &ratio));
        let ratio = in_words.unwrap_or(ratio);
        Some(if name.is_empty() { ratio } else { format!("{name}: {ratio}") })
    };
    let clauses: Vec<String> = (0..data.study.cells.len()).filter_map(clause).collect();
    let (first, title) = (clauses.first()?, &data.study.measures[measure].title);
    let each = if clauses.len() == 1 { first.clone() } else { with_semicolons(data.lang, &clauses) };
    let text = said!(data.lang, "findings-stated-ratios", "{title}: {each}.", title = title, each = each);
    let evidence =
        bound(said!(data.lang, "findings-stated-only-the-ratio", "The source states the ratio and not its parts."));
    Some(finding(FindingKind::Stated, sentence(&text), vec![evidence]))
}

/// Returns the finding that one level is above another, by the statement about at least one pair. In pairs of numbers
/// it may be equal.
fn above(
    data: &Data<'_>,
    measure: usize,
    factor: usize,
    (high, low): (usize, usize),
    pairs: &[(usize, usize)],
) -> Option<Finding> {
    let (higher, others): (Vec<_>, Vec<_>) =
        pairs.iter().partition(|(cell, other)| is_above(data, measure, *cell, *other));
    let is_equal = |(cell, other): &(usize, usize)| data.span(*cell, measure) == data.span(*other, measure);
    let is_stated = higher.iter().any(|pair| data.has_stated(*pair, measure));
    if !is_stated || others.iter().any(|pair| data.has_stated(*pair, measure) || !is_equal(pair)) {
        return None;
    }
    let clause = |key: &'static Text, (cell, other): &(usize, usize)| {
        let (ours, theirs) = (data.shown(*cell, measure)?, data.shown(*other, measure)?);
        let name = data.cell_name(*cell, &[factor]);
        Some(said!(data.lang, key, name = name, ours = ours, theirs = theirs))
    };
    let mut clauses = Vec::new();
    for pair in &higher {
        clauses.push(clause(text!("findings-stated-against", "{name}: {ours} against {theirs}"), pair)?);
    }
    for pair in &others {
        clauses.push(clause(text!("findings-stated-equal", "{name}: {ours} in both"), pair)?);
    }
    let (high, low) = (data.name_of(factor, high), data.name_of(factor, low));
    let title = &data.study.measures[measure].title;
    let clauses = with_semicolons(data.lang, &clauses);
    let mut text = if others.is_empty() {
        said!(
            data.lang,
            "findings-stated-above",
            "{high} has more {title} than {low}: {clauses}.",
            title = title,
            high = high,
            low = low,
            clauses = clauses
        )
    } else {
        let (count, all) = (higher.len(), pairs.len());
        said!(
            data.lang,
            "findings-stated-above-in-some",
            "{high} has more {title} than {low} in {count} of {all} pairs of cells: {clauses}.",
            title = title,
            high = high,
            low = low,
            count = count,
            all = all,
            clauses = clauses
        )
    };
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
        text.push_str(&said!(
            data.lang,
            "findings-stated-fragments",
            " With {low} datagrams travel in fragments, above the MTU of {mtu}; with {high} they do not.",
            low = low,
            high = high,
            mtu = mtu
        ));
    }
    let evidence = bound(said!(
        data.lang,
        "findings-stated-do-not-overlap",
        "What the source states of the two does not overlap; a number that is about so much is taken as within 10 % of \
         it."
    ));
    Some(finding(FindingKind::Stated, sentence(&text), vec![evidence]))
}

/// Returns whether the lowest that a result may be is above the highest that another may be. A bound itself may be
/// excluded.
pub(super) fn is_above(data: &Data<'_>, measure: usize, cell: usize, other: usize) -> bool {
    let as_a = |cell: usize| data.stated(cell, measure).map(|stated| stated.as_a);
    let (Some((least, _)), Some((_, most))) = (data.span(cell, measure), data.span(other, measure)) else {
        return false;
    };
    let is_open = as_a(cell) == Some(StatedAs::MoreThan) || as_a(other) == Some(StatedAs::LessThan);
    least > most || (is_open && least == most)
}

/// Returns the results whose highest possible value is far below the limit of the medium.
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
        "Something other than the wire limits {title} with {names}: at most {most} of what it can carry.",
        title = data.study.measures[measure].title,
        names = with_semicolons(data.lang, &names),
        most = share(most)
    );
    let each = cells.iter().filter_map(|(cell, _, limit)| {
        let reached = data.shown(*cell, measure)?;
        Some(said!(
            data.lang,
            "findings-words-reached-of",
            "{name}: {reached} of {most}",
            name = data.cell_name(*cell, &[]),
            reached = reached,
            most = limit
        ))
    });
    let each = listed(data.lang, &each.collect::<Vec<_>>());
    Some(finding(FindingKind::Limiter, text, vec![bound(sentence(&each))]))
}
