//! A verdict in words.

use crate::language::Language;
use crate::said;
use crate::wording::listed;
use linerate_model::{Confidence, Limit, LimitPlace, Steadiness, Verdict};
use linerate_units::BitRate;

/// `Limited by the wire (high confidence)`, with the place where it is known, and the limits that were reached as well.
pub(crate) fn statement(lang: Language, verdict: &Verdict) -> String {
    let confidence = match verdict.confidence {
        Confidence::Low => said!(lang, "verdicts-confidence-low", "low"),
        Confidence::Medium => said!(lang, "verdicts-confidence-medium", "medium"),
        Confidence::High => said!(lang, "verdicts-confidence-high", "high"),
    };
    let named: Vec<String> = verdict.also.iter().map(|limit| lang.text(limit.text())).collect();
    let others = listed(lang, &named);
    let said = match verdict.limit {
        Limit::CannotTell if named.is_empty() => {
            return said!(lang, "verdicts-cannot-tell", "what limited it cannot be told");
        }
        Limit::CannotTell => {
            return said!(
                lang,
                "verdicts-cannot-tell-which",
                "what limited it cannot be told; possible: {others}",
                others = others
            );
        }
        limit => {
            let named = lang.text(limit.text());
            match told_place(verdict).map(|place| lang.text(place.text())) {
                Some(place) => {
                    said!(
                        lang,
                        "verdicts-limited-at",
                        "limited by the {named} ({confidence} confidence, at: {place})",
                        named = named,
                        place = place,
                        confidence = confidence
                    )
                }
                None => said!(
                    lang,
                    "verdicts-limited-by",
                    "limited by the {named} ({confidence} confidence)",
                    named = named,
                    confidence = confidence
                ),
            }
        }
    };
    if named.is_empty() {
        said
    } else {
        said!(lang, "verdicts-and-also", "{said}; the {others} was reached as well", said = said, others = others)
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
