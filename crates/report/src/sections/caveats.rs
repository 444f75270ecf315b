//! Doubts about a record's results, the same one of several results once.

use crate::blocks::section::{Block, Section};
use crate::figures::plain;
use crate::language::Language;
use crate::said;
use crate::sections::abridged;
use crate::subjects::ALL;
use crate::wording::{doubts, listed};
use linerate_model::{Caveat, CaveatKind, Measurement, Record};
use std::collections::BTreeMap;

/// Returns all caveats, or one of each kind if the record has very many results.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let all: Vec<(String, &Caveat)> = if abridged::is(record) {
        by_kind(lang, record)
    } else {
        by_results(record).into_iter().map(|(names, caveat)| (listed(lang, &names), caveat)).collect()
    };
    let all: Vec<(String, Caveat)> = all.into_iter().map(|(names, caveat)| (names, caveat.clone())).collect();
    let heading = heading(lang, &all);
    Section::answer("caveats", heading, vec![Block::Caveats(all)]).map(Section::folded)
}

/// Returns the number of caveats, and their kinds in a few words.
pub(crate) fn heading(lang: Language, all: &[(String, Caveat)]) -> String {
    let short = lang.list(&doubts::in_short(lang, all.iter().map(|(_, caveat)| caveat)));
    said!(lang, "caveats-heading", "Caveats ({count}): {short}", count = all.len(), short = short)
}

/// Returns the number of caveats; a caveat of several results counts once.
pub(crate) fn count(record: &Record) -> usize {
    by_results(record).len()
}

/// The doubts about a result, and about each way of its frames.
pub(crate) fn of_result(result: &Measurement) -> impl Iterator<Item = &Caveat> {
    result.caveats.iter().chain(result.frames().iter().flat_map(|flow| &flow.caveats))
}

/// Returns caveats with the names of their results, each caveat once. Caveats of the run, and of all its results, have
/// no names.
fn by_results(record: &Record) -> Vec<(Vec<String>, &Caveat)> {
    let mut grouped: Vec<(Vec<String>, &Caveat)> = Vec::new();
    for caveat in record.caveats.iter().chain(ALL.iter().flat_map(|subject| subject.caveats(record))) {
        if !grouped.iter().any(|(_, known)| *known == caveat) {
            grouped.push((Vec::new(), caveat));
        }
    }
    for result in &record.results {
        for caveat in of_result(result) {
            let name = plain(&result.name);
            match grouped.iter_mut().find(|(_, known)| *known == caveat) {
                // The run's own doubt holds for every result: no name to add.
                Some((names, _)) if names.is_empty() || names.contains(&name) => {}
                Some((names, _)) => names.push(name),
                None => grouped.push((vec![name], caveat)),
            }
        }
    }
    for (names, _) in &mut grouped {
        if names.len() > 1 && names.len() == record.results.len() {
            names.clear();
        }
    }
    grouped
}

/// Doubts by kind, the first of each kind with the number of results that it or another of its kind is about.
fn by_kind(lang: Language, record: &Record) -> Vec<(String, &Caveat)> {
    let mut kinds: BTreeMap<CaveatKind, (usize, &Caveat)> = BTreeMap::new();
    for result in &record.results {
        let mut counted = Vec::new();
        for caveat in of_result(result) {
            let (count, _) = kinds.entry(caveat.kind).or_insert((0, caveat));
            if !counted.contains(&caveat.kind) {
                *count += 1;
                counted.push(caveat.kind);
            }
        }
    }
    let of_results = kinds.into_values().map(|(count, caveat)| {
        let names = if count == record.results.len() {
            String::new()
        } else {
            said!(
                lang,
                "abridged-caveat-of",
                if results == 1 { "One result" } else { "One of {results} results" },
                results = count
            )
        };
        (names, caveat)
    });
    record.caveats.iter().map(|caveat| (String::new(), caveat)).chain(of_results).collect()
}
