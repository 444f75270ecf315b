//! Abridgement of records with thousands of results: tables have every result, words and charts some. A complete page
//! would have a hundred megabytes, which browsers open slowly.

use crate::language::Language;
use crate::said;
use linerate_model::Record;
use std::borrow::Cow;

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
    is(record).then(|| said!(lang, "abridged-notice", "The record holds {results} results: the tables of figures have all of them, words and charts {shown}, evenly \
         taken.", results = record.results.len(), shown = MOST))
}
