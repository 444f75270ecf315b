//! What limits a group of results: the wire, the hosts, or at least not the wire.

use super::data::{Data, Group};
use super::growth::{Course, FULL, courses};
use super::words::{extremes, listed, p_value, share, value};
use super::{bound, finding, test};
use linerate_model::{CellLimit, FactorOf, Finding, FindingKind};

/// So many results are named in a sentence.
const MOST_NAMED: usize = 4;
/// What rounds to the whole limit.
const ALL: f64 = 0.999_5;
/// Below this share of its limit in all results a wire is not what limits them.
const IDLE: f64 = 0.5;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let groups: Vec<(Group, Vec<CellLimit>)> = data
        .groups(data.gathered_by(), measure)
        .into_iter()
        .filter_map(|group| {
            let limits: Option<Vec<CellLimit>> = group.cells.iter().map(|cell| data.limit(*cell, measure)).collect();
            let limits = limits.filter(|limits| limits.iter().all(|limit| limit.share <= 1.0))?;
            Some((group, limits))
        })
        .collect();
    let (mut wire, mut hosts, mut other, mut part) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    let by_host = data.ordered().filter(|factor| data.study.factors[*factor].of == Some(FactorOf::Host));
    let growing: Vec<(usize, Course)> = by_host
        .flat_map(|factor| courses(data, measure, factor).into_iter().map(move |course| (factor, course)))
        .filter(|(_, course)| course.grows())
        .collect();
    for (group, limits) in &groups {
        let Some((least, most)) = extremes(limits.iter().map(|limit| limit.share)) else { continue };
        let grown = growing.iter().find(|(_, course)| course.group.name == group.name);
        match grown {
            _ if least >= FULL => wire.push((group, limits, least)),
            Some((factor, course)) => hosts.push((group, most, *factor, course)),
            None if most < IDLE => other.push((group, limits, most)),
            None => part.extend(partly(data, measure, group, limits)),
        }
    }

    let unit = data.study.measures[measure].unit;
    let title = &data.study.measures[measure].title;
    // A medium has results on it, anything else has them.
    let on = if data.medium_factor().is_some() { "on" } else { "of" };
    let names = |groups: Vec<&Group>| match data.gathered_by() {
        Some(_) => format!("{on} {}", listed(&groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>())),
        None => "in all results".to_owned(),
    };
    if !wire.is_empty() {
        let least = wire.iter().map(|(_, _, least)| *least).fold(1.0, f64::min);
        let text = format!(
            "The wire limits {title} {}: every result is {} what it can carry.",
            names(wire.iter().map(|(group, ..)| *group).collect()),
            if least >= ALL { "all of".to_owned() } else { format!("at least {} of", share(least)) }
        );
        let evidence = wire.iter().map(|(group, limits, least)| {
            let most = limits.iter().map(|limit| limit.share).fold(0.0, f64::max);
            let results = if limits.len() == 1 { "1 result".to_owned() } else { format!("{} results", limits.len()) };
            bound(format!("{}: {results}, from {} to {} of the limit.", group.name, share(*least), share(most)))
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    if !hosts.is_empty() {
        let factor = &data.study.factors[hosts[0].2].title;
        let text = format!(
            "The hosts, not the wire, limit {title} {}: it grows with the {factor} and mostly stays below what the wire can carry.",
            names(hosts.iter().map(|(group, ..)| *group).collect()),
        );
        let evidence = hosts.iter().flat_map(|(group, most, _, course)| {
            let limits = group.cells.iter().filter_map(|cell| data.limit(*cell, measure));
            let below = limits.filter(|limit| limit.share < FULL).count();
            [
                test(
                    course.test(),
                    course.p(),
                    format!("{}: grows with the {factor}, {}.", group.name, p_value(course.p())),
                ),
                bound(format!(
                    "{}: {below} of {} results are below {} of the limit; the highest is {} of it.",
                    group.name,
                    group.cells.len(),
                    share(FULL),
                    share(*most)
                )),
            ]
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    if !other.is_empty() {
        let text = format!(
            "Something other than the wire limits {title} {}: no result is more than {} of what it can carry.",
            names(other.iter().map(|(group, ..)| *group).collect()),
            share(other.iter().map(|(_, _, most)| *most).fold(0.0, f64::max)),
        );
        let evidence = other.iter().filter_map(|(group, limits, most)| {
            let best = limits.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
            Some(bound(format!(
                "{}: the best result, {}, is {} of {}.",
                group.name,
                value(data.value(best.cell, measure)?, unit),
                share(*most),
                value(best.high, unit)
            )))
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    found.extend(part);
    found
}

/// Results of a group that are far below the limit, while others are not: what limits these is not the wire.
fn partly(data: &Data<'_>, measure: usize, group: &Group, limits: &[CellLimit]) -> Option<Finding> {
    let low: Vec<&CellLimit> = limits.iter().filter(|limit| limit.share < IDLE).collect();
    let (_, most) = extremes(low.iter().map(|limit| limit.share))?;
    let best = limits.iter().map(|limit| limit.share).fold(0.0, f64::max);
    let by: Vec<usize> = data.gathered_by().into_iter().collect();
    let on = if data.medium_factor().is_some() { "on" } else { "of" };
    let unit = data.study.measures[measure].unit;
    let which = match low.len() {
        few if few <= MOST_NAMED => {
            listed(&low.iter().map(|limit| data.cell_name(limit.cell, &by)).collect::<Vec<_>>())
        }
        many => format!("{many} of {} combinations", limits.len()),
    };
    let text = format!(
        "Something other than the wire limits {} {on} {} with {which}: no more than {} of what it can carry, where another result is {} of it.",
        data.study.measures[measure].title,
        group.name,
        share(most),
        share(best)
    );
    let each = low.iter().take(MOST_NAMED).filter_map(|limit| {
        let reached = value(data.value(limit.cell, measure)?, unit);
        Some(format!("{}: {reached} of {}", data.cell_name(limit.cell, &by), value(limit.high, unit)))
    });
    let more = low.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let each = format!("{}{more}.", each.collect::<Vec<_>>().join("; "));
    Some(finding(FindingKind::Limiter, text, vec![bound(each)]))
}
