//! Two records held against each other.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::record::load;
use crate::serve::Shared;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_model::Record;
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
        let share: Ratio = tolerance
            .parse()
            .map_err(|error| PageError::unclear(format!("The tolerance `{tolerance}` is none: {error}")))?;
        let percent = confidence.parse().ok().filter(|percent| (50.0..100.0).contains(percent)).ok_or_else(|| {
            PageError::unclear(format!("`{confidence}` is not a percentage from 50 to below 100, as in 95"))
        })?;
        Ok(Self { tolerance, confidence, share: share.as_f64(), percent })
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
                let said = format!("Tick two records to compare, not {}.", names.len());
                return Err(PageError::unclear(said));
            };
            let mut pair = [load(store, one)?, load(store, other)?];
            if pair[0].id == pair[1].id {
                return Err(PageError::unclear("Both are the same record: tick two."));
            }
            // What was measured later is compared with what was measured before, unless asked the other way round.
            pair.sort_by_key(|record| record.started_unix_ns);
            if swapped {
                pair.reverse();
            }
            let main = compared(lang, &pair, &demands, swapped);
            Ok(Page { lang, title: &said!(lang, "view-two-records-compared"), back: true, refresh: false, main }
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
            @for (word, record) in [(said!(lang, "view-before"), before), (said!(lang, "view-after"), after)] {
                dt { (word) }
                dd {
                    a href=(address("record", &[("id", &record.id.0)])) { (page::command(&record.command)) }
                    " " span.note { (page::moment(record.started_unix_ns)) ", " (plain(&record.id.0)) }
                }
            }
        }
        p { a href=(other_way) { (said!(lang, "view-the-other-way-round")) } }
        (linerate_report::comparison_html(lang, &found))
        form.filter action="compare" method="get" aria-label=(said!(lang, "view-what-counts")) {
            input type="hidden" name="with" value=(before.id.0);
            input type="hidden" name="with" value=(after.id.0);
            @if swapped { input type="hidden" name="swapped" value="yes"; }
            label { (said!(lang, "view-tolerance")) input name="tolerance" value=(demands.tolerance) required; }
            label { (said!(lang, "view-confidence")) input name="confidence" inputmode="decimal" value=(demands.confidence) required; }
            button { (said!(lang, "view-compare-again")) }
        }
    }
}
