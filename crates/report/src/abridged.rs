//! What a page shows of a record of thousands of results: every one in the tables of figures, some in words and charts. With
//! all that is known of each it would have a hundred megabytes, and no browser would like to open it.

use crate::caveats;
use crate::language::Language;
use crate::said;
use linerate_model::{Caveat, CaveatKind, Record};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Cap on the results that have sentences and charts: a page with more is slow to open.
const MOST: usize = 300;

/// The record with at most [`MOST`] results, evenly taken in the plan's order. Without its trials, if any was left out.
pub(crate) fn shown(record: &Record) -> Cow<'_, Record> {
    let count = record.results.len();
    if !is(record) {
        return Cow::Borrowed(record);
    }
    let results = (0..MOST).map(|index| record.results[index * count / MOST].clone()).collect();
    // Field by field: a copy of the trials, only to be dropped, takes longer than all the rest.
    Cow::Owned(Record {
        schema: record.schema.clone(),
        version: record.version.clone(),
        command: record.command.clone(),
        study: record.study.clone(),
        group: record.group.clone(),
        started_unix_ns: record.started_unix_ns,
        hosts: record.hosts.clone(),
        results,
        outcome: record.outcome.clone(),
        caveats: record.caveats.clone(),
        ..Record::new(record.id.clone(), record.plan.clone())
    })
}

/// Whether some results are left out of words and charts.
pub(crate) fn is(record: &Record) -> bool {
    record.results.len() > MOST
}

/// Tells a reader that there is more; nothing of a record that is shown whole.
pub(crate) fn notice(lang: Language, record: &Record) -> Option<String> {
    is(record).then(|| said!(lang, "abridged-notice", results = record.results.len(), shown = MOST))
}

/// Doubts by kind, the first of each kind with the number of results that it or another of its kind is about.
pub(crate) fn caveats_by_kind(lang: Language, record: &Record) -> Vec<(String, &Caveat)> {
    let mut kinds: BTreeMap<CaveatKind, (usize, &Caveat)> = BTreeMap::new();
    for result in &record.results {
        let mut counted = Vec::new();
        for caveat in caveats::of_result(result) {
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
            said!(lang, "abridged-caveat-of", results = count)
        };
        (names, caveat)
    });
    record.caveats.iter().map(|caveat| (String::new(), caveat)).chain(of_results).collect()
}
