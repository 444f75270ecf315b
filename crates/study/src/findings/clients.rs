//! Several clients at the same time against one.

use super::data::{Data, Pair};
use super::words::{listed, times};
use super::{bound, finding};
use crate::finding::{Evidence, Finding, FindingKind};
use linerate_report::parts::values::value;
use linerate_report::said;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    for (factor, named) in data.study.factors.iter().enumerate() {
        let with = |several: bool| {
            let is = move |clients: u32| (clients > 1) == several;
            (0..named.levels.len()).filter(move |level| named.levels[*level].clients.is_some_and(is))
        };
        for many in with(true) {
            found.extend(with(false).filter_map(|one| against(data, measure, factor, many, one)));
        }
    }
    found
}

/// Compares many clients with one, in cells that differ in nothing else.
fn against(data: &Data<'_>, measure: usize, factor: usize, many: usize, one: usize) -> Option<Finding> {
    let clients = data.study.factors[factor].levels[many].clients?;
    let pairs = data.pairs(factor, many, one, measure).into_iter();
    let pairs: Vec<Pair> = pairs.filter(|pair| pair.a.1 > 0.0 && pair.b.1 > 0.0).collect();
    if pairs.is_empty() {
        return None;
    }
    let clause = |pair: &Pair| {
        let (ratio, name) = (times(data.lang, pair.a.1 / pair.b.1), data.cell_name(pair.a.0, &[factor]));
        said!(data.lang, "findings-clients-ratio", "{times} with {name}", times = ratio, name = name)
    };
    let clauses: Vec<String> = pairs.iter().map(clause).collect();
    let mut text = said!(
        data.lang,
        "findings-clients-have",
        "{title} of {many} against {one}: {clauses}.",
        many = data.name_of(factor, many),
        one = data.name_of(factor, one),
        clauses = listed(data.lang, &clauses),
        title = data.study.measures[measure].title
    );
    if pairs.iter().all(|pair| pair.a.1 < f64::from(clients) * pair.b.1) {
        text.push_str(&said!(
            data.lang,
            "findings-clients-less",
            " That is less than {clients} times, so something that the clients share costs part of it, if the clients \
             are alike.",
            clients = clients
        ));
    }
    let evidence = pairs.iter().map(|pair| evidence(data, measure, factor, clients, pair)).collect();
    Some(finding(FindingKind::Clients, text, evidence))
}

/// Returns both results, and whether the medium could carry the rate of one client times their number.
fn evidence(data: &Data<'_>, measure: usize, factor: usize, clients: u32, pair: &Pair) -> Evidence {
    let unit = data.study.measures[measure].unit;
    let all = f64::from(clients) * pair.b.1;
    let limit = data.limit(pair.a.0, measure).map(|limit| limit.high);
    let could = match limit {
        Some(limit) if limit < all => {
            said!(
                data.lang,
                "findings-clients-more-than-carried",
                "; as many times as there are clients would be {all}, more than the {limit} that the medium can carry",
                all = value(all, unit),
                limit = value(limit, unit)
            )
        }
        Some(limit) => {
            said!(
                data.lang,
                "findings-clients-could-be-carried",
                "; as many times as there are clients would be {all}, and the medium can carry {limit}",
                all = value(all, unit),
                limit = value(limit, unit)
            )
        }
        None => String::new(),
    };
    bound(said!(
        data.lang,
        "findings-clients-both",
        "{name}: {many} against {one}{could}.",
        name = data.cell_name(pair.a.0, &[factor]),
        many = value(pair.a.1, unit),
        one = value(pair.b.1, unit),
        could = could
    ))
}
