//! Limits of results, with the evidence.

use crate::blocks::section::{Block, Entry, Folded, Section};
use crate::figures::plain;
use crate::language::Language;
use crate::sections::abridged;
use crate::subjects::{self, device, frames};
use crate::wording::verdict::{course, statement};
use crate::wording::{listed, message, sentence};
use crate::{records, said};
use linerate_model::{Measurement, Record, Verdict};

/// Returns the verdicts, those of results first; the same verdict of several results stands once.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let mut grouped: Vec<(Vec<String>, &Verdict)> = Vec::new();
    for (name, verdict) in records::with_entries(&shown).flat_map(|result| of_result(lang, result)) {
        match grouped.iter_mut().find(|(_, known)| *known == verdict) {
            Some((names, _)) => names.push(name),
            None => grouped.push((vec![name], verdict)),
        }
    }
    let others: Vec<(String, &Verdict)> = subjects::verdicts(lang, &shown);
    let alone = others.is_empty();
    let grouped_entry = |(names, verdict): (Vec<String>, &Verdict)| {
        let all = alone && names.len() == shown.results.len() && names.len() > 1;
        entry(
            lang,
            if all { said!(lang, "verdicts-all-results", "all results") } else { listed(lang, &names) },
            verdict,
        )
    };
    let entries =
        grouped.into_iter().map(grouped_entry).chain(others.into_iter().map(|(name, of)| entry(lang, name, of)));
    Section::summary(
        "verdicts",
        said!(lang, "section-verdicts", "What limited the results"),
        vec![Block::Entries(entries.collect())],
    )
    .map(Section::folded)
}

fn entry(lang: Language, name: String, verdict: &Verdict) -> Entry {
    let course = verdict.steadiness.map(|steadiness| sentence(&course(lang, steadiness)));
    let why = verdict.evidence.iter().chain(&verdict.next).map(|text| message(lang, text));
    let weighed = verdict.weighed.iter().map(|weighed| {
        let limit = lang.text(weighed.limit.text());
        let support = lang.text(weighed.support.text());
        (format!("{limit} ({support})"), message(lang, &weighed.text))
    });
    let folded = Folded { heading: said!(lang, "verdicts-weighed", "What was weighed"), entries: weighed.collect() };
    Entry {
        folded: Some(folded).filter(|folded| !folded.entries.is_empty()),
        ..Entry::new(name, std::iter::once(sentence(&statement(lang, verdict))).chain(course).chain(why).collect())
    }
}

/// Returns what limited a result as a sentence, or of frames that went several ways what limited each.
pub(crate) fn in_short(lang: Language, result: &Measurement) -> Vec<String> {
    let all = of_result(lang, result);
    let has_names = all.len() > 1;
    let text = |(name, verdict): &(String, &Verdict)| {
        if has_names {
            sentence(&format!("{name}: {}", statement(lang, verdict)))
        } else {
            sentence(&statement(lang, verdict))
        }
    };
    all.iter().map(text).collect()
}

/// Every verdict with the name of its result.
pub(crate) fn each(lang: Language, record: &Record) -> impl Iterator<Item = (String, &Verdict)> {
    record.results.iter().flat_map(move |result| of_result(lang, result)).chain(device::verdicts(lang, record))
}

/// Returns the verdict of a result, or of frames that went several ways those of each way.
fn of_result(lang: Language, result: &Measurement) -> Vec<(String, &Verdict)> {
    let flows = result.frames();
    let each: Vec<(String, &Verdict)> =
        flows.iter().filter_map(|flow| Some((frames::named(lang, flow), flow.verdict.as_ref()?))).collect();
    if flows.len() > 1 && each.len() == flows.len() { each } else { vec![(plain(&result.name), &result.verdict)] }
}
