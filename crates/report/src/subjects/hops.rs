//! Probes along a path: round trip to the far end, path MTU and one-way delay.

use crate::figures::{nanos, percent, plain};
use crate::language::Language;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate};
use crate::wording::verdict::hop;
use linerate_model::{DelayChange, Measurement, MtuProof, PathEffect, PathMtu, PathSection, Record, WayFigures, text};

/// Probes along a path.
pub(crate) struct Hops;

const LIVE: Live =
    Live::new(LiveRate::Requests, text!("live-panel-probes", "Probes"), &[LiveColumn::Transactions], CHARTS);

const CHARTS: &[LiveChart] = &[live::operations(text!("charts-axis-probes", "probes"))];

impl Subject for Hops {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, _record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        let answers: Vec<String> = result.ways().iter().map(|way| answer(lang, way)).collect();
        let lead = answers.len();
        (answers, lead)
    }
}

/// Returns the length of a way and the round trip to its far end.
fn answer(lang: Language, way: &WayFigures) -> String {
    let far_end = way.hops.last().filter(|hop| hop.is_far_end);
    let delay = far_end.and_then(|hop| Some((hop.ttl, hop.idle?.p50?)));
    match delay {
        Some((hops, p50)) => said!(
            lang,
            "hops-answer",
            if hops == 1 {
                "{from} reaches {to} without a router: round trip {p50} at p50."
            } else {
                "{from} reaches {to} in {hops} hops: round trip {p50} at p50."
            },
            hops = u64::from(hops),
            from = way.from.to_string(),
            to = way.to.to_string(),
            p50 = nanos(p50.get())
        ),
        None => said!(
            lang,
            "hops-no-far-end",
            "{to} did not answer {from}; {hops} hops were probed.",
            to = way.to.to_string(),
            from = way.from.to_string(),
            hops = way.hops.len() as u64
        ),
    }
}

/// Returns what the probes of a way show beyond the verdict of `result`: further sections where delay or loss begins, and a path MTU
/// below that of the first link.
pub(crate) fn findings(lang: Language, result: &Measurement, way: &WayFigures) -> Vec<String> {
    let further = way.sections.iter().filter(|section| result.verdict.section.as_ref() != Some(section));
    let mut all: Vec<String> = further.map(|section| finding(lang, section)).collect();
    let name = said!(lang, "hops-caption", "{from} to {to}", from = plain(&way.from.0), to = plain(&way.to.0));
    let limited = way.path_mtu.as_ref().filter(|mtu| mtu.bytes != Some(mtu.link_mtu));
    all.extend(limited.map(|mtu| path_mtu(lang, &name, mtu)));
    all.extend(way.changes.iter().map(|change| delay_change(lang, &name, change)));
    all
}

fn delay_change(lang: Language, way: &str, change: &DelayChange) -> String {
    let [at, before, after] = [change.at, change.before, change.after].map(|time| nanos(time.get()));
    match &change.first_hop {
        Some(first) => said!(
            lang,
            "hops-change",
            "{way}: after {at} the round trip changed from {before} to {after}, on the link before {hop}.",
            way = way,
            at = at,
            before = before,
            after = after,
            hop = hop(lang, first)
        ),
        None => said!(
            lang,
            "hops-change-somewhere",
            "{way}: after {at} the round trip changed from {before} to {after}.",
            way = way,
            at = at,
            before = before,
            after = after
        ),
    }
}

fn finding(lang: Language, section: &PathSection) -> String {
    let after = hop(lang, &section.after);
    let before = hop(lang, &section.before);
    match section.effect {
        PathEffect::Queue => said!(
            lang,
            "hops-finding-queue",
            "A queue between {after} and {before} adds {added} under load.",
            after = after,
            before = before,
            added = nanos(section.amount as u64)
        ),
        PathEffect::Loss => said!(
            lang,
            "hops-finding-loss",
            "{share} of the packets are lost between {after} and {before}.",
            share = percent(section.amount).unwrap_or_default(),
            after = after,
            before = before
        ),
        PathEffect::BlackHole => said!(
            lang,
            "hops-finding-black-hole",
            "Packets of {bytes} bytes and more are lost between {after} and {before} without an ICMP message: an MTU black hole.",
            bytes = section.amount as u64,
            after = after,
            before = before
        ),
    }
}

fn path_mtu(lang: Language, way: &str, mtu: &PathMtu) -> String {
    let proof = lang.text(mtu.found_by.text());
    match mtu.bytes {
        Some(bytes) if mtu.found_by != MtuProof::Nothing => said!(
            lang,
            "hops-mtu",
            "{way}: path MTU {bytes} bytes, {proof}; the first link carries {link}.",
            way = way,
            bytes = u64::from(bytes),
            proof = proof,
            link = u64::from(mtu.link_mtu)
        ),
        _ => said!(
            lang,
            "hops-mtu-unknown",
            "{way}: the path MTU is not known, as neither the far end nor a router answered large packets.",
            way = way
        ),
    }
}
