//! Each result with its one figure and what there is to say of it.

use crate::abridged;
use crate::document::{Block, Entry, Section};
use crate::figures::{per_second, plain, rate};
use crate::flow_result::FlowResult;
use crate::language::Language;
use crate::{copy, frames, nfs, said, sentences};
use linerate_model::{Detail, Measurement, Outcome, Quantity, Record};

/// The results, most important first: figure, share of the limit, what went missing, what it cost.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let entry = |result: &Measurement| {
        Entry::new(plain(&result.name), sentences::main(lang, &shown, result)).with_figure(figure(result))
    };
    let entries = nfs::told(&shown).map(entry).chain(nfs::answer(lang, &shown)).collect();
    let mut notices: Vec<String> = abridged::notice(lang, record).into_iter().collect();
    if record.results.is_empty() && record.outcome == Outcome::Sweep {
        notices.push(said!(lang, "results-none"));
    }
    let blocks = vec![Block::Sentences(notices), Block::Entries(entries)];
    Section::summary("results", said!(lang, "section-results"), blocks)
}

/// What a reader may want to know of each result besides.
pub(crate) fn further(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let entry = |result: FlowResult<'_>| {
        let further = sentences::further(lang, &result);
        (!further.is_empty()).then(|| Entry::new(plain(result.name), further))
    };
    let entries = nfs::told(&shown).filter_map(FlowResult::of).filter_map(entry).collect();
    Section::full("further", said!(lang, "section-further"), vec![Block::Entries(entries)])
}

/// The one figure of a result.
pub(crate) fn figure(result: &Measurement) -> Option<String> {
    match &result.detail {
        Detail::Copy(found) => copy::bytes_per_s(found.bytes_per_s),
        Detail::Frames { .. } => frames::frames_per_s(result.main.median),
        Detail::Flows(_) if result.quantity == Quantity::PayloadBps => rate(result.main.median, "bit/s"),
        Detail::Flows(_) => Some(format!("{} /s", per_second(result.main.median)?)),
    }
}
