//! What limited each result, with the evidence.

use crate::blocks::section::{Block, Entry, Folded, Section};
use crate::figures::plain;
use crate::language::Language;
use crate::sections::abridged;
use crate::subjects::{self, device, frames};
use crate::wording::verdict::{course, statement};
use crate::wording::{listed, message, sentence};
use crate::{records, said};
use linerate_model::{Measurement, Record, Verdict};

/// What limited which results, streams and transactions first; the same verdict of several stands once.
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
    let named = |(names, verdict): (Vec<String>, &Verdict)| {
        let all = alone && names.len() == shown.results.len() && names.len() > 1;
        entry(lang, if all { said!(lang, "verdicts-all-results") } else { listed(lang, &names) }, verdict)
    };
    let entries = grouped.into_iter().map(named).chain(others.into_iter().map(|(name, of)| entry(lang, name, of)));
    Section::summary("verdicts", said!(lang, "section-verdicts"), vec![Block::Entries(entries.collect())])
        .map(Section::folded)
}

fn entry(lang: Language, name: String, verdict: &Verdict) -> Entry {
    let course = verdict.steadiness.map(|steadiness| sentence(&course(lang, steadiness)));
    let why = verdict.evidence.iter().chain(&verdict.next).map(|text| message(lang, text));
    let weighed = verdict.weighed.iter().map(|weighed| {
        let (limit, support) = (lang.named("limit", weighed.limit), lang.named("support", weighed.support));
        (format!("{limit} ({support})"), message(lang, &weighed.text))
    });
    let folded = Folded { heading: said!(lang, "verdicts-weighed"), entries: weighed.collect() };
    Entry {
        folded: Some(folded).filter(|folded| !folded.entries.is_empty()),
        ..Entry::new(name, std::iter::once(sentence(&statement(lang, verdict))).chain(course).chain(why).collect())
    }
}

/// What limited a result, in a sentence; of frames that went several ways, what limited each.
pub(crate) fn in_short(lang: Language, result: &Measurement) -> Vec<String> {
    let all = of_result(lang, result);
    let named = all.len() > 1;
    let told = |(name, verdict): &(String, &Verdict)| match named {
        true => sentence(&format!("{name}: {}", statement(lang, verdict))),
        false => sentence(&statement(lang, verdict)),
    };
    all.iter().map(told).collect()
}

/// Every verdict with the name of its result.
pub(crate) fn each(lang: Language, record: &Record) -> impl Iterator<Item = (String, &Verdict)> {
    record.results.iter().flat_map(move |result| of_result(lang, result)).chain(device::verdicts(lang, record))
}

/// What limited a result; of frames that went several ways, what limited each.
fn of_result(lang: Language, result: &Measurement) -> Vec<(String, &Verdict)> {
    let flows = result.frames();
    let each: Vec<(String, &Verdict)> =
        flows.iter().filter_map(|flow| Some((frames::named(lang, flow), flow.verdict.as_ref()?))).collect();
    if flows.len() > 1 && each.len() == flows.len() { each } else { vec![(plain(&result.name), &result.verdict)] }
}
