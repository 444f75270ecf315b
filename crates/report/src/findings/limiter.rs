//! What limits a group of results: the wire, the hosts, or at least not the wire.

use super::data::{Data, Group};
use super::growth::{Course, FULL, courses};
use super::words::{extremes, listed, p_value, share, some_of, value};
use super::{bound, finding, test};
use crate::said;
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
    let names = |groups: Vec<&Group>| match data.gathered_by() {
        Some(_) => on(data, &groups.iter().map(|group| group.name.clone()).collect::<Vec<_>>()),
        None => said!(data.lang, "findings-limiter-in-all-results"),
    };
    if !wire.is_empty() {
        let least = wire.iter().map(|(_, _, least)| *least).fold(1.0, f64::min);
        let on = names(wire.iter().map(|(group, ..)| *group).collect());
        let text = if least >= ALL {
            said!(data.lang, "findings-limiter-wire-all", title = title, on = on)
        } else {
            said!(data.lang, "findings-limiter-wire", title = title, on = on, share = share(least))
        };
        let evidence = wire.iter().map(|(group, limits, least)| {
            let most = limits.iter().map(|limit| limit.share).fold(0.0, f64::max);
            let results = said!(data.lang, "findings-limiter-results", results = limits.len());
            bound(said!(
                data.lang,
                "findings-limiter-from-to",
                group = group.name,
                results = results,
                least = share(*least),
                most = share(most)
            ))
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    if !hosts.is_empty() {
        let factor = &data.study.factors[hosts[0].2].title;
        let on = names(hosts.iter().map(|(group, ..)| *group).collect());
        let text = said!(data.lang, "findings-limiter-hosts", title = title, on = on, factor = factor);
        let evidence = hosts.iter().flat_map(|(group, most, _, course)| {
            let limits = group.cells.iter().filter_map(|cell| data.limit(*cell, measure));
            let below = limits.filter(|limit| limit.share < FULL).count();
            [
                test(
                    &course.test(data.lang),
                    course.p(),
                    said!(
                        data.lang,
                        "findings-limiter-grows",
                        group = group.name,
                        factor = factor,
                        p = p_value(course.p())
                    ),
                ),
                bound(said!(
                    data.lang,
                    "findings-limiter-are-below",
                    group = group.name,
                    below = below,
                    count = group.cells.len(),
                    full = share(FULL),
                    most = share(*most)
                )),
            ]
        });
        found.push(finding(FindingKind::Limiter, text, evidence.collect()));
    }
    if !other.is_empty() {
        let on = names(other.iter().map(|(group, ..)| *group).collect());
        let most = share(other.iter().map(|(_, _, most)| *most).fold(0.0, f64::max));
        let text = said!(data.lang, "findings-limiter-not-the-wire", title = title, on = on, most = most);
        let evidence = other.iter().filter_map(|(group, limits, most)| {
            let best = limits.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
            Some(bound(said!(
                data.lang,
                "findings-limiter-the-best",
                group = group.name,
                best = value(data.value(best.cell, measure)?, unit),
                share = share(*most),
                limit = value(best.high, unit)
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
    let unit = data.study.measures[measure].unit;
    let which = match low.len() {
        few if few <= MOST_NAMED => {
            listed(data.lang, &low.iter().map(|limit| data.cell_name(limit.cell, &by)).collect::<Vec<_>>())
        }
        many => said!(data.lang, "findings-limiter-combinations", count = many, all = limits.len()),
    };
    let text = said!(
        data.lang,
        "findings-limiter-partly",
        title = data.study.measures[measure].title,
        on = on(data, std::slice::from_ref(&group.name)),
        which = which,
        most = share(most),
        best = share(best)
    );
    let each = low.iter().filter_map(|limit| {
        Some(said!(
            data.lang,
            "findings-words-reached-of",
            name = data.cell_name(limit.cell, &by),
            reached = value(data.value(limit.cell, measure)?, unit),
            most = value(limit.high, unit)
        ))
    });
    let each = some_of(data.lang, MOST_NAMED, &each.collect::<Vec<_>>());
    Some(finding(FindingKind::Limiter, text, vec![bound(each)]))
}

/// Where results are: a medium has them on it, anything else has them.
fn on(data: &Data<'_>, groups: &[String]) -> String {
    let names = listed(data.lang, groups);
    match data.medium_factor() {
        Some(_) => said!(data.lang, "findings-limiter-on", names = names),
        None => said!(data.lang, "findings-limiter-of", names = names),
    }
}
