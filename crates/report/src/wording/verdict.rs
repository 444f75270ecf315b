//! A verdict in words.

use crate::language::Language;
use crate::said;
use crate::wording::listed;
use linerate_model::{Confidence, HopRef, Limit, LimitPlace, Steadiness, Verdict};
use linerate_units::BitRate;

/// `Limited by the wire (high confidence)`, with the place where it is known, and the limits that were reached as well.
pub(crate) fn statement(lang: Language, verdict: &Verdict) -> String {
    let others: Vec<String> = verdict.also.iter().map(|limit| lang.text(limit.text())).collect();
    let others = if others.is_empty() { None } else { Some(listed(lang, &others)) };
    match (verdict.limit, others) {
        (Limit::CannotTell, None) => said!(lang, "verdicts-cannot-tell", "what limited it cannot be told"),
        (Limit::CannotTell, Some(others)) => said!(
            lang,
            "verdicts-cannot-tell-which",
            "what limited it cannot be told; possible: {others}",
            others = others
        ),
        (_, None) => limited(lang, verdict),
        (_, Some(others)) => said!(
            lang,
            "verdicts-and-also",
            "{said}; the {others} was reached as well",
            said = limited(lang, verdict),
            others = others
        ),
    }
}

/// Returns the limit with its confidence and its place.
fn limited(lang: Language, verdict: &Verdict) -> String {
    let named = lang.text(verdict.limit.text());
    let confidence = confidence(lang, verdict.confidence);
    if let Some(section) = &verdict.section {
        return said!(
            lang,
            "verdicts-limited-between",
            "limited by the {named} between {after} and {before} ({confidence} confidence; the place: {place})",
            named = named,
            after = hop(lang, &section.after),
            before = hop(lang, &section.before),
            confidence = confidence,
            place = self::confidence(lang, section.confidence)
        );
    }
    match told_place(verdict).map(|place| lang.text(place.text())) {
        Some(place) => said!(
            lang,
            "verdicts-limited-at",
            "limited by the {named} ({confidence} confidence, at: {place})",
            named = named,
            place = place,
            confidence = confidence
        ),
        None => said!(
            lang,
            "verdicts-limited-by",
            "limited by the {named} ({confidence} confidence)",
            named = named,
            confidence = confidence
        ),
    }
}

fn confidence(lang: Language, confidence: Confidence) -> String {
    match confidence {
        Confidence::Low => said!(lang, "verdicts-confidence-low", "low"),
        Confidence::Medium => said!(lang, "verdicts-confidence-medium", "medium"),
        Confidence::High => said!(lang, "verdicts-confidence-high", "high"),
    }
}

/// Returns the name of a hop, as in `hop 3 (198.18.4.1)`.
pub(crate) fn hop(lang: Language, hop: &HopRef) -> String {
    match hop.address {
        _ if hop.ttl == 0 => said!(lang, "verdicts-hop-self", "the sending host"),
        Some(address) => said!(
            lang,
            "verdicts-hop",
            "hop {ttl} ({address})",
            ttl = u64::from(hop.ttl),
            address = address.to_string()
        ),
        None => said!(lang, "verdicts-hop-silent", "hop {ttl} (no answer)", ttl = u64::from(hop.ttl)),
    }
}

/// The place of a limit that may be in several: the names of the others say where they are.
fn told_place(verdict: &Verdict) -> Option<LimitPlace> {
    let anywhere = match verdict.limit {
        Limit::Shaper | Limit::SoftirqCpu => true,
        Limit::PathLoss => verdict.place == Some(LimitPlace::ReturnPath),
        _ => false,
    };
    verdict.place.filter(|_| anywhere)
}

/// Returns how steady the result was within the window.
pub(crate) fn course(lang: Language, steadiness: Steadiness) -> String {
    let rate = |bps: f64| BitRate::per_second(bps.max(0.0) as u64).to_string();
    match steadiness {
        Steadiness::Steady => said!(lang, "verdicts-steady", "The rate was steady within the window"),
        Steadiness::Varying { p5_bps, p95_bps } => {
            said!(
                lang,
                "verdicts-varying",
                "The rate varied within the window: 5 % of the intervals were below {low}, and 5 % above {high}",
                low = rate(p5_bps),
                high = rate(p95_bps)
            )
        }
        Steadiness::Rising { growth } => said!(
            lang,
            "verdicts-rising",
            "The rate still rose when the window closed: its last third had {growth} times the rate of its first third",
            growth = format!("{growth:.1}")
        ),
    }
}
