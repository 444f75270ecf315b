//! What limited each result, with the evidence.

use crate::abridged;
use crate::document::{Block, Entry, Folded, Section};
use crate::figures::plain;
use crate::language::Language;
use crate::sentences::{listed, sentence};
use crate::{device, frames, nfs, said};
use linerate_model::{Confidence, Limit, Measurement, Record, Verdict};

/// What limited which results, streams and transactions first; the same verdict of several stands once.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let shown = abridged::shown(record);
    let mut grouped: Vec<(Vec<String>, &Verdict)> = Vec::new();
    for (name, verdict) in nfs::told(&shown).flat_map(|result| of_result(lang, result)) {
        match grouped.iter_mut().find(|(_, known)| *known == verdict) {
            Some((names, _)) => names.push(name),
            None => grouped.push((vec![name], verdict)),
        }
    }
    let others: Vec<(String, &Verdict)> =
        nfs::judged(lang, &shown).into_iter().chain(device::judged(lang, &shown)).collect();
    let alone = others.is_empty();
    let named = |(names, verdict): (Vec<String>, &Verdict)| {
        let all = alone && names.len() == shown.results.len() && names.len() > 1;
        entry(lang, if all { said!(lang, "verdicts-all-results") } else { listed(lang, &names) }, verdict)
    };
    let entries = grouped.into_iter().map(named).chain(others.into_iter().map(|(name, of)| entry(lang, name, of)));
    Section::summary("verdicts", said!(lang, "section-verdicts"), vec![Block::Entries(entries.collect())])
}

fn entry(lang: Language, name: String, verdict: &Verdict) -> Entry {
    let why = verdict.evidence.iter().chain(&verdict.next).map(|text| sentence(text));
    let weighed = verdict.weighed.iter().map(|weighed| {
        let (limit, support) = (lang.named("limit", weighed.limit), lang.named("support", weighed.support));
        (format!("{limit} ({support})"), sentence(&weighed.text))
    });
    let folded = Folded { heading: said!(lang, "verdicts-weighed"), entries: weighed.collect() };
    Entry {
        folded: Some(folded).filter(|folded| !folded.entries.is_empty()),
        ..Entry::new(name, std::iter::once(sentence(&statement(lang, verdict))).chain(why).collect())
    }
}

/// Every verdict with the name of its result.
pub(crate) fn each(lang: Language, record: &Record) -> impl Iterator<Item = (String, &Verdict)> {
    record.results.iter().flat_map(move |result| of_result(lang, result)).chain(device::judged(lang, record))
}

/// What limited a result; of frames that went several ways, what limited each.
fn of_result(lang: Language, result: &Measurement) -> Vec<(String, &Verdict)> {
    let flows = result.frames();
    let each: Vec<(String, &Verdict)> =
        flows.iter().filter_map(|flow| Some((frames::named(lang, flow), flow.verdict.as_ref()?))).collect();
    if flows.len() > 1 && each.len() == flows.len() { each } else { vec![(plain(&result.name), &result.verdict)] }
}

/// `Limited by the wire (high confidence)`.
pub(crate) fn statement(lang: Language, verdict: &Verdict) -> String {
    let confidence = match verdict.confidence {
        Confidence::Low => said!(lang, "verdicts-confidence-low"),
        Confidence::Medium => said!(lang, "verdicts-confidence-medium"),
        Confidence::High => said!(lang, "verdicts-confidence-high"),
    };
    match verdict.limit {
        Limit::CannotTell => said!(lang, "verdicts-cannot-tell"),
        named => said!(lang, "verdicts-limited-by", named = lang.named("limit", named), confidence = confidence),
    }
}
