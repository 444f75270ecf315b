//! The list of records: newest first, filtered, a page at a time, two to be ticked and compared.

use crate::page::{self, Page};
use crate::query::{ENDED, Fields, Filter, address};
use crate::refusal::Refusal;
use crate::serve::Shared;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_report::{Language, plain, said};
use linerate_store::{Listed, Stage};
use linerate_units::grouped;
use maud::{Markup, html};
use std::sync::Arc;

/// Records on a page.
const PAGE: usize = 50;

/// What a page of the list shows.
struct Found {
    records: Vec<Listed>,
    /// All that fit the filter.
    count: usize,
    kinds: Vec<String>,
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, Refusal> {
    let mut filter = Filter::read(&Fields::read(query.as_deref()));
    let lang = shared.language;
    shared
        .ask(move |store| {
            let kinds = store.kinds()?;
            let asked = filter.query();
            let (records, count) = match &asked {
                Ok(query) => {
                    let count = store.count(query)?;
                    filter.page = filter.page.min(count.div_ceil(PAGE).max(1));
                    (store.find(query, (filter.page - 1) * PAGE, PAGE)?, count)
                }
                Err(_) => (Vec::new(), 0),
            };
            let found = Found { records, count, kinds };
            let status = if asked.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
            let main = html! {
                (form(lang, &filter, &found.kinds))
                @match &asked {
                    Err(problem) => p.problem role="alert" { (plain(problem)) },
                    Ok(_) => (records_of(lang, &filter, &found)),
                }
            };
            Ok(Page { lang, title: &said!(lang, "view-records"), back: false, refresh: false, main }.answer(status))
        })
        .await
}

/// What to show, as a form that needs no script.
fn form(lang: Language, filter: &Filter, kinds: &[String]) -> Markup {
    html! {
        form.filter action="./" method="get" role="search" aria-label=(said!(lang, "view-filter")) {
            label.text { (said!(lang, "view-words")) input type="search" name="text" value=(filter.text) {} }
            label { (said!(lang, "view-kind"))
                select name="kind" {
                    option value="" { (said!(lang, "view-all")) }
                    @for kind in kinds.iter().filter(|kind| !kind.is_empty()) {
                        option value=(kind) selected[*kind == filter.kind] { (plain(kind)) }
                    }
                }
            }
            label { (said!(lang, "view-from")) input type="date" name="from" value=(filter.from) {} }
            label { (said!(lang, "view-to")) input type="date" name="to" value=(filter.to) {} }
            label { (said!(lang, "view-ended"))
                select name="ended" {
                    @for (value, _, words) in ENDED { option value=(value) selected[value == filter.ended] { (lang.tell(words, &[])) } }
                }
            }
            button { (said!(lang, "view-show")) }
            @if !filter.is_empty() { a href="./" { (said!(lang, "view-show-all")) } }
        }
    }
}

fn records_of(lang: Language, filter: &Filter, found: &Found) -> Markup {
    if found.records.is_empty() {
        return html! {
            p {
                @if filter.is_empty() { (said!(lang, "view-nothing-kept")) }
                @else { (said!(lang, "view-no-record-fits")) }
            }
        };
    }
    let first = (filter.page - 1) * PAGE + 1;
    let last = first + found.records.len() - 1;
    let range = said!(
        lang,
        "view-range",
        first = grouped(first as u64),
        last = grouped(last as u64),
        count = grouped(found.count as u64)
    );
    let now = page::now_unix_ns();
    html! {
        form.records action="compare" method="get" aria-label=(said!(lang, "view-records")) {
            p.bar {
                span role="status" { (range) }
                button { (said!(lang, "view-compare-two")) }
                span #ticked.note role="status" data-two=(said!(lang, "view-tick-two")) data-one=(said!(lang, "view-tick-one-more"))
                    data-many=(said!(lang, "view-too-many-ticked")) {}
            }
            ol {
                @for listed in &found.records { li { (row(lang, listed, now)) } }
            }
        }
        (pages(lang, filter, found.count))
    }
}

fn row(lang: Language, listed: &Listed, now: u64) -> Markup {
    let id = &listed.id.0;
    let command = page::command(&listed.command);
    html! {
        input type="checkbox" name="with" value=(id) aria-label=(said!(lang, "view-compare", id = plain(id)));
        div {
            a href=(address("record", &[("id", id)])) { (command) }
            p {
                time { (page::moment(listed.started_unix_ns)) }
                span { (plain(id)) }
                @if listed.cells > 0 { span { (said!(lang, "view-results", results = listed.cells)) } }
                @if listed.trials > 0 { span { (said!(lang, "view-trials", trials = listed.trials)) } }
                @match listed.stage(now) {
                    Stage::Finished => {},
                    Stage::UnderWay => strong { (said!(lang, "view-is-under-way")) },
                    Stage::EndedEarly => span.early { (said!(lang, "view-ended-early")) },
                }
            }
        }
    }
}

/// Links to the pages beside this one.
fn pages(lang: Language, filter: &Filter, count: usize) -> Markup {
    let last = count.div_ceil(PAGE);
    if last < 2 {
        return html! {};
    }
    let at = filter.page;
    let link = |page: usize, words: String, rel: Option<&str>| {
        html! {
            @if page == at || page == 0 || page > last { span aria-disabled="true" { (words) } }
            @else { a href=(filter.address(page)) rel=[rel] { (words) } }
        }
    };
    html! {
        nav.pages aria-label=(said!(lang, "view-pages")) {
            (link(1, said!(lang, "view-newest"), None))
            (link(at - 1, said!(lang, "view-newer"), Some("prev")))
            span { (said!(lang, "view-page-of", page = grouped(at as u64), last = grouped(last as u64))) }
            (link(at + 1, said!(lang, "view-older"), Some("next")))
            (link(last, said!(lang, "view-oldest"), None))
        }
    }
}
