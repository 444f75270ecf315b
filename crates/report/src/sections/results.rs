//! Each result with its one figure and what there is to say of it.

use crate::blocks::section::{Block, Entry, Section};
use crate::figures::{self, plain};
use crate::language::Language;
use crate::sections::{abridged, directions, verdicts};
use crate::subjects::{ALL, flow_sentences, lines, subject};
use crate::{records, said};
use linerate_model::{Measurement, Outcome, Record};

/// Results that have an entry each; more of them are rows of a table.
const MAX_ENTRIES: usize = 2;

/// The answer: each result with its figure, its share of the limit and what limited it; of many results what they have in
/// common.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let mut sentences: Vec<String> = abridged::notice(lang, record).into_iter().collect();
    if record.results.is_empty() && record.outcome == Outcome::Sweep {
        sentences.push(said!(lang, "results-none", "Nothing was measured."));
    }
    let mut entries: Vec<Entry> = Vec::new();
    // A ladder is the answer by itself.
    if record.ladder().is_some() {
        return Section::answer(
            "results",
            said!(lang, "section-results", "Results"),
            vec![Block::Sentences(sentences)],
        );
    }
    // A doubt about the figures comes before them.
    sentences.extend(ALL.iter().flat_map(|subject| subject.not_firm(lang, record)));
    if are_entries(record) {
        entries.extend(records::with_entries(&shown).map(|result| entry(lang, &shown, result)));
    } else {
        sentences.extend(lines::answer(lang, record));
    }
    sentences.extend(ALL.iter().flat_map(|subject| subject.in_common(lang, record, MAX_ENTRIES)));
    entries.extend(ALL.iter().flat_map(|subject| subject.entries(lang, &shown, MAX_ENTRIES)));
    let joint = directions::joint(lang, record).into_iter().collect();
    let blocks = vec![Block::Sentences(sentences), Block::Entries(entries), Block::Sentences(joint)];
    Section::answer("results", said!(lang, "section-results", "Results"), blocks)
}

/// Each of many results in words.
pub(crate) fn in_words(lang: Language, record: &Record) -> Option<Section> {
    if are_entries(record) {
        return None;
    }
    let shown = abridged::shown(record);
    let entries = records::with_entries(&shown).map(|result| entry(lang, &shown, result)).collect();
    Section::summary("in-words", said!(lang, "section-in-words", "Each result in words"), vec![Block::Entries(entries)])
        .map(Section::folded)
}

fn are_entries(record: &Record) -> bool {
    record.ladder().is_none() && records::with_entries(record).count() <= MAX_ENTRIES
}

/// Returns a result with its figure and its sentences. The limit comes right after the figure.
fn entry(lang: Language, record: &Record, result: &Measurement) -> Entry {
    let (mut sentences, lead) = subject(result.task()).sentences(lang, record, result);
    let lead = lead.min(sentences.len());
    let limits = verdicts::in_short(lang, result);
    let all = lead + limits.len();
    sentences.splice(lead..lead, limits);
    Entry::new(plain(&result.name), sentences).led_by(all).with_figure(figures::main(result))
}

/// Returns further details of each result.
pub(crate) fn further(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let entry = |result: &Measurement| {
        let further = flow_sentences::further(lang, result);
        (!further.is_empty()).then(|| Entry::new(plain(&result.name), further))
    };
    let entries = records::with_entries(&shown).filter(|result| result.flows().is_some()).filter_map(entry).collect();
    Section::full("further", said!(lang, "section-further", "Further figures"), vec![Block::Entries(entries)])
        .map(Section::folded)
}
