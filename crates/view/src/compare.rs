//! Two records held against each other.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::{Shared, load};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_model::{HeadlineVerdict, Measurement, Record, Verdict};
use linerate_report::{Language, plain, said};
use linerate_units::Ratio;
use maud::{Markup, html};
use std::sync::Arc;

/// What a difference is held against, as typed and as read.
struct Demands {
    tolerance: String,
    confidence: String,
    share: f64,
    percent: f64,
}

impl Demands {
    fn read(fields: &Fields) -> Result<Self, PageError> {
        let typed = |name, default: &str| match fields.one(name) {
            "" => default.to_owned(),
            typed => typed.to_owned(),
        };
        let (tolerance, confidence) = (typed("tolerance", "2%"), typed("confidence", "95"));
        let share = match tolerance.parse::<Ratio>() {
            Ok(share) => share.as_f64(),
            Err(error) => return Err(PageError::Tolerance { typed: tolerance, error: error.to_string() }),
        };
        let percent = confidence.parse().ok().filter(|percent| (50.0..100.0).contains(percent));
        match percent {
            Some(percent) => Ok(Self { tolerance, confidence, share, percent }),
            None => Err(PageError::Confidence(confidence)),
        }
    }
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let fields = Fields::read(query.as_deref());
    let names: Vec<String> = fields.all("with").map(str::to_owned).collect();
    let swapped = !fields.one("swapped").is_empty();
    let demands = Demands::read(&fields)?;
    let lang = shared.language;
    shared
        .ask(move |store| {
            let [one, other] = names.as_slice() else {
                return Err(PageError::NotTwo(names.len()));
            };
            let mut pair = [load(store, one)?, load(store, other)?];
            if pair[0].id == pair[1].id {
                return Err(PageError::Same);
            }
            // What was measured later is compared with what was measured before, unless asked the other way round.
            pair.sort_by_key(|record| record.started_unix_ns);
            if swapped {
                pair.reverse();
            }
            let main = compared(lang, &pair, &demands, swapped);
            Ok(Page::new(lang, &said!(lang, "view-two-records-compared", "Two records compared"), main)
                .answer(StatusCode::OK))
        })
        .await
}

fn compared(lang: Language, [before, after]: &[Record; 2], demands: &Demands, swapped: bool) -> Markup {
    let against = linerate_method::Demands::once(demands.share, demands.percent);
    let found = linerate_method::compare(std::slice::from_ref(before), std::slice::from_ref(after), &against);
    let other_way = address(
        "compare",
        &[
            ("with", &before.id.0),
            ("with", &after.id.0),
            ("tolerance", &demands.tolerance),
            ("confidence", &demands.confidence),
            ("swapped", if swapped { "" } else { "yes" }),
        ],
    );
    html! {
        dl.pair {
            @for (word, record) in [(said!(lang, "view-before", "Before"), before), (said!(lang, "view-after", "After"), after)] {
                dt { (word) }
                dd {
                    (page::record_link(lang, &record.id.0, &record.command))
                    " " span.note { (page::moment(record.started_unix_ns)) ", " (plain(&record.id.0)) }
                }
            }
        }
        (verdicts(lang, before, after))
        p { a href=(other_way) { (said!(lang, "view-the-other-way-round", "The other way round")) } }
        (linerate_report::comparison_charts(lang, before, after))
        (linerate_report::comparison_html(lang, &found))
        form.filter action="compare" method="get" aria-label=(said!(lang, "view-what-counts", "What counts as a difference")) {
            input type="hidden" name="with" value=(before.id.0);
            input type="hidden" name="with" value=(after.id.0);
            @if swapped { input type="hidden" name="swapped" value="yes"; }
            label { (said!(lang, "view-tolerance", "Differences up to this do not matter")) input name="tolerance" value=(demands.tolerance) required; }
            label { (said!(lang, "view-confidence", "Confidence, percent")) input name="confidence" inputmode="decimal" value=(demands.confidence) required; }
            button { (said!(lang, "view-compare-again", "Compare again")) }
        }
    }
}

/// What limited each result that both records have: first those whose limit changed.
fn verdicts(lang: Language, before: &Record, after: &Record) -> Markup {
    /// Results that are told; of more the table of figures has all.
    const MOST: usize = 12;
    let told = |result: &Measurement| {
        let Verdict { limit, confidence, .. } = result.verdict;
        linerate_report::headline_limit(lang, HeadlineVerdict { limit, confidence })
    };
    let both = before.results.iter().filter_map(|one| Some((one, after.result(&one.name)?)));
    let (changed, same): (Vec<_>, Vec<_>) = both.partition(|(one, other)| one.verdict.limit != other.verdict.limit);
    let said = |(one, other): &(&Measurement, &Measurement)| {
        let (name, was, is) = (plain(&one.name), told(one), told(other));
        match was == is {
            true => said!(lang, "view-verdict-same", "{name}: {verdict} before and after", name = name, verdict = is),
            false => {
                said!(lang, "view-verdict-changed", "{name}: {before} → {after}", name = name, before = was, after = is)
            }
        }
    };
    html! {
        ul.verdicts aria-label=(said!(lang, "section-verdicts", "What limited the results")) {
            @for pair in changed.iter().take(MOST) { li { strong { (said(pair)) } } }
            @for pair in same.iter().take(MOST.saturating_sub(changed.len())) { li { (said(pair)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Confidence, CopyFigures, Detail, Limit, Plan, Quantity, RecordId, Repeats, Summary};

    fn record(verdicts: &[(&str, Limit)]) -> Record {
        let result = |(name, limit): &(&str, Limit)| Measurement {
            name: (*name).to_owned(),
            quantity: Quantity::PayloadBps,
            main: Summary { median: 1.0, low: 1.0, high: 1.0, runs: 1, values: vec![1.0], interval: None },
            tester_limit: None,
            verdict: Verdict::new(*limit, Confidence::High, Vec::new()),
            caveats: Vec::new(),
            detail: Detail::Copy(Box::<CopyFigures>::default()),
        };
        let plan = Plan::sweep(Vec::new(), Repeats::Times(1));
        Record { results: verdicts.iter().map(result).collect(), ..Record::new(RecordId("x".into()), plan) }
    }

    #[test]
    fn a_limit_that_changed_comes_first() {
        let before = record(&[("udp", Limit::Wire), ("tcp", Limit::Wire), ("gone", Limit::Wire)]);
        let after = record(&[("udp", Limit::Wire), ("tcp", Limit::Shaper)]);
        let told = verdicts(Language::English, &before, &after).into_string();
        let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("`{text}` is missing in {told}"));
        let shaper = Language::English.text(Limit::Shaper.text());
        assert!(
            at(&format!("<strong>tcp: wire (high) \u{2192} {shaper} (high)</strong>"))
                < at("<li>udp: wire (high) before and after</li>")
        );
        assert!(!told.contains("gone"));
    }
}
