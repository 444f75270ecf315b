//! The list of records: newest first, filtered, a page at a time, two to be ticked and compared.

use crate::fleet;
use crate::page::Page;
use crate::page_error::PageError;
use crate::query::{CHANGED, ENDED, Fields, Filter};
use crate::shared::Shared;
use crate::table::{Listed, table};
use crate::watched::{self, Watched as _, WatchedList};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_model::{Headline, Limit};
use linerate_report::{Language, plain, said};
use linerate_units::grouped;
use maud::{Markup, html};
use std::sync::Arc;

/// Records on a page.
const PAGE: usize = 50;
/// Runs of the same command that are drawn before a run.
const EARLIER: usize = 9;

/// What a page of the list shows.
struct Found {
    records: Vec<Listed>,
    /// Number of all records that fit the filter.
    count: usize,
    kinds: Vec<String>,
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let mut filter = Filter::read(&Fields::read(query.as_deref()));
    let lang = shared.language;
    shared
        .ask(move |store| {
            let kinds = store.kinds()?;
            let asked = filter.query(lang, &kinds);
            let (records, count) = match &asked {
                Ok(query) => {
                    let count = store.count(query)?;
                    filter.page = filter.page.min(count.div_ceil(PAGE).max(1));
                    let mut records = Vec::with_capacity(PAGE);
                    let runs = store.list(query, (filter.page - 1) * PAGE, PAGE)?;
                    let mut hosts = store.hosts(&runs)?;
                    for run in runs {
                        let earlier = store.earlier(&run, EARLIER)?;
                        let hosts = hosts.remove(&run.id).unwrap_or_default();
                        records.push(Listed { run, earlier, hosts });
                    }
                    (records, count)
                }
                Err(_) => (Vec::new(), 0),
            };
            let mut under_way = WatchedList::default();
            if filter.is_first() {
                under_way.look(store, lang)?;
            }
            let found = Found { records, count, kinds };
            let status = if asked.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
            let main = html! {
                // A list where nothing is under way waits for nothing.
                @if under_way.is_under_way() { (watched::drawn("events", &under_way.parts(lang))) }
                (form(lang, &filter, &found.kinds))
                @match &asked {
                    Err(problem) => p.problem role="alert" { (plain(problem)) },
                    Ok(_) => (records_of(lang, &filter, &found)),
                }
            };
            let title = said!(lang, "view-records", "Records");
            Ok(Page { back: false, fleet: fleet::is_shown(store)?, ..Page::new(lang, &title, main) }.answer(status))
        })
        .await
}

/// What to show, as a form that needs no script.
fn form(lang: Language, filter: &Filter, kinds: &[String]) -> Markup {
    // An active filter is never folded away. Where there is room, the style sheet shows the content of one that is folded.
    html! {
        details.filters open[!filter.is_empty()] {
            summary { (said!(lang, "view-filter", "Filter")) }
            form.filter action="./" method="get" role="search" aria-label=(said!(lang, "view-filter", "Filter")) {
                label.text { (said!(lang, "view-words", "Words in command, host or name")) input type="search" name="text" value=(filter.text) {} }
                label { (said!(lang, "view-kind", "Kind"))
                    select name="kind" {
                        option value="" { (said!(lang, "view-all", "all")) }
                        @for kind in kinds.iter().filter(|kind| !kind.is_empty()) {
                            option value=(kind) selected[*kind == filter.kind] { (plain(kind)) }
                        }
                    }
                }
                label { (said!(lang, "view-from", "From")) input type="date" name="from" value=(filter.from) {} }
                label { (said!(lang, "view-to", "To")) input type="date" name="to" value=(filter.to) {} }
                label { (said!(lang, "view-limit", "Limit"))
                    select name="limit" {
                        option value="" { (said!(lang, "view-all", "all")) }
                        @for limit in Limit::ALL {
                            option value=(limit.name()) selected[limit.name() == filter.limit] { (lang.text(limit.text())) }
                        }
                    }
                }
                label { (said!(lang, "view-changed", "Figure"))
                    select name="changed" {
                        @for (value, _, words) in CHANGED {
                            option value=(value) selected[value == filter.changed] { (said!(lang, words, percent = changed_percent())) }
                        }
                    }
                }
                label { (said!(lang, "view-ended", "Ended"))
                    select name="ended" {
                        @for (value, _, words) in ENDED { option value=(value) selected[value == filter.ended] { (lang.text(words)) } }
                    }
                }
                button { (said!(lang, "view-show", "Show")) }
                @if !filter.is_empty() { a href="./" { (said!(lang, "view-show-all", "Show all")) } }
            }
        }
        @if !filter.changed.is_empty() { p.note { (said!(lang, "view-changed-about", "These are the runs whose figure differs by more than {percent} % from that of the run before: the latest \
             earlier run of the same command that finished. Both figures are firm and of the same kind.", percent = changed_percent())) } }
    }
}

fn records_of(lang: Language, filter: &Filter, found: &Found) -> Markup {
    if found.records.is_empty() {
        return html! {
            p {
                @if filter.is_empty() { (said!(lang, "view-nothing-kept", "Nothing is kept yet: measure something first, as with `linerate lab`.")) }
                @else { (said!(lang, "view-no-record-fits", "No record fits.")) }
            }
        };
    }
    let first = (filter.page - 1) * PAGE + 1;
    let last = first + found.records.len() - 1;
    let range = said!(
        lang,
        "view-range",
        "{first} to {last} of {count}, newest first",
        first = grouped(first as u64),
        last = grouped(last as u64),
        count = grouped(found.count as u64)
    );
    html! {
        form.records action="compare" method="get" aria-label=(said!(lang, "view-records", "Records")) {
            p.bar {
                span role="status" { (range) }
                button { (said!(lang, "view-compare-two", "Compare two")) }
                span #ticked.note role="status" data-two=(said!(lang, "view-tick-two", "tick two")) data-one=(said!(lang, "view-tick-one-more", "tick one more"))
                    data-many=(said!(lang, "view-too-many-ticked", "are ticked, tick two")) {}
            }
            (table(lang, &found.records, EARLIER))
        }
        (pages(lang, filter, found.count))
        // The script shows it: without one there are no such keys.
        p #keys.note hidden { (said!(lang, "view-keys", "Keys: j and k go to the next and the previous record, Enter opens it, / goes to the search.")) }
    }
}

/// From how many percent on a figure counts as changed.
fn changed_percent() -> String {
    format!("{:.0}", Headline::CHANGED * 100.0)
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
        nav.pages aria-label=(said!(lang, "view-pages", "Pages")) {
            (link(1, said!(lang, "view-newest", "Newest"), None))
            (link(at - 1, said!(lang, "view-newer", "Newer"), Some("prev")))
            span { (said!(lang, "view-page-of", "Page {page} of {last}", page = grouped(at as u64), last = grouped(last as u64))) }
            (link(at + 1, said!(lang, "view-older", "Older"), Some("next")))
            (link(last, said!(lang, "view-oldest", "Oldest"), None))
        }
    }
}
