//! Each result with its one figure and what there is to say of it.

use crate::abridged;
use crate::document::{Block, Entry, Section};
use crate::figures::{per_second, plain, rate};
use crate::language::Language;
use crate::{copy, nfs, said, sentences};
use linerate_model::{Measurement, Record, WorkloadKind};

/// The results, most important first: figure, share of the limit, what went missing, what it cost.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let entry = |result: &Measurement| {
        Entry::new(plain(&result.name), sentences::main(lang, &shown, result)).with_figure(figure(result))
    };
    let entries = nfs::told(&shown).map(entry).chain(nfs::answer(lang, &shown)).chain(copy::answer(lang, &shown));
    let entries: Vec<Entry> = entries.collect();
    let mut notices: Vec<String> = abridged::notice(lang, record).into_iter().collect();
    if record.results.is_empty() && record.outcome.is_none() {
        notices.push(said!(lang, "results-none"));
    }
    let blocks = vec![Block::Sentences(notices), Block::Entries(entries)];
    Section::summary("results", said!(lang, "section-results"), blocks)
}

/// What a reader may want to know of each result besides.
pub(crate) fn further(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let entry = |result: &Measurement| {
        let further = sentences::further(lang, result);
        (!further.is_empty()).then(|| Entry::new(plain(&result.name), further))
    };
    let entries = nfs::told(&shown).filter_map(entry).collect();
    Section::full("further", said!(lang, "section-further"), vec![Block::Entries(entries)])
}

/// The one figure of a result.
fn figure(result: &Measurement) -> Option<String> {
    match result.workload {
        WorkloadKind::Stream => rate(result.received.as_ref()?.payload_bps.median, "bit/s"),
        WorkloadKind::Transact | WorkloadKind::Rpc | WorkloadKind::Nfs => {
            Some(format!("{} /s", per_second(result.transactions_per_s.as_ref()?.median)?))
        }
    }
}
