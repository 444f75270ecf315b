//! The list of records: newest first, filtered, a page at a time, two to be ticked and compared.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{CHANGED, ENDED, Fields, Filter, address};
use crate::shared::Shared;
use crate::watched::{self, Watched as _, WatchedList};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_model::{Headline, Limit};
use linerate_report::{Language, plain, said};
use linerate_store::{RunRow, State as RunState};
use linerate_units::grouped;
use maud::{Markup, html};
use std::sync::Arc;

/// Records on a page.
const PAGE: usize = 50;
/// Runs of the same command that are drawn before a run.
const EARLIER: usize = 9;

/// What a page of the list shows.
struct Found {
    /// Each with the runs of the same command before it, newest first.
    records: Vec<(RunRow, Vec<RunRow>)>,
    /// All that fit the filter.
    count: usize,
    kinds: Vec<String>,
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let mut filter = Filter::read(&Fields::read(query.as_deref()));
    let lang = shared.language;
    shared
        .ask(move |store| {
            let kinds = store.kinds()?;
            let asked = filter.query(lang);
            let (records, count) = match &asked {
                Ok(query) => {
                    let count = store.count(query)?;
                    filter.page = filter.page.min(count.div_ceil(PAGE).max(1));
                    let mut records = Vec::with_capacity(PAGE);
                    for run in store.list(query, (filter.page - 1) * PAGE, PAGE)? {
                        let earlier = store.earlier(&run, EARLIER)?;
                        records.push((run, earlier));
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
            Ok(Page { lang, title: &said!(lang, "view-records", "Records"), back: false, refresh: false, main }
                .answer(status))
        })
        .await
}

/// What to show, as a form that needs no script.
fn form(lang: Language, filter: &Filter, kinds: &[String]) -> Markup {
    html! {
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
            ol {
                @for (run, earlier) in &found.records { li { (row(lang, run, earlier)) } }
            }
        }
        (pages(lang, filter, found.count))
    }
}

fn row(lang: Language, run: &RunRow, earlier: &[RunRow]) -> Markup {
    let (id, before) = (&run.id.0, earlier.first());
    html! {
        input type="checkbox" name="with" value=(id) aria-label=(said!(lang, "view-compare", "Compare {id}", id = plain(id)));
        div {
            (page::record_link(lang, id, &run.command))
            p {
                time { (page::moment(run.started_unix_ns)) }
                span { (plain(id)) }
                @if run.results > 0 { span { (said!(lang, "view-results", if results == 1 { "1 result" } else { "{results} results" }, results = run.results)) } }
                @if run.trials > 0 { span { (said!(lang, "view-trials", if trials == 1 { "1 trial" } else { "{trials} trials" }, trials = run.trials)) } }
                @if let Some(headline) = &run.headline {
                    span { (plain(&headline.result)) " " (linerate_report::headline(headline)) }
                    @if let Some(share) = linerate_report::headline_share(lang, headline) { span { (share) } }
                }
                @if let Some((line, words)) = line(lang, run, earlier) {
                    a.spark href=(address("trend", &[("id", id)])) aria-label=(words) title=(words) { (line) }
                }
                @if let Some((before, change)) = before.and_then(|before| Some((before, change(run, before)?))) {
                    a href=(address("compare", &[("with", &before.id.0), ("with", id)])) { (said!(lang, "view-change", "{change} against the run before", change = change)) }
                }
                @if let Some(verdict) = run.verdict { span { (linerate_report::headline_limit(lang, verdict)) } }
                @match run.state {
                    RunState::Finished => {},
                    RunState::Running => strong { (said!(lang, "view-running", "running")) },
                    RunState::Interrupted => span.early { (said!(lang, "view-interrupted", "interrupted")) },
                    RunState::Failed => span.early { (said!(lang, "view-failed", "failed")) },
                    RunState::Killed => span.early { (said!(lang, "view-killed", "killed")) },
                }
            }
        }
    }
}

/// The figures of the runs before and of this one as a line of marks, the oldest first, and what it shows in words.
fn line(lang: Language, run: &RunRow, earlier: &[RunRow]) -> Option<(String, String)> {
    let newest = run.headline.as_ref()?;
    let runs: Vec<&Headline> = earlier.iter().rev().chain([run]).filter_map(|run| run.headline.as_ref()).collect();
    let line = linerate_report::sparkline(&runs)?;
    let (count, figure) = (line.chars().count(), linerate_report::headline(newest));
    Some((
        line,
        said!(lang, "view-runs-line", "{count} runs of this command, to {figure}", count = count, figure = figure),
    ))
}

/// Returns the change of the figure from that of the finished run before: `-15.0 %`. None unless the run ended, and both figures are
/// firm and of the same kind.
fn change(run: &RunRow, before: &RunRow) -> Option<String> {
    let share = run.headline.as_ref()?.change_from(before.headline.as_ref()?)?;
    let tenths = (share * 1_000.0).round();
    let shown = if tenths == 0.0 { "0.0 %".to_owned() } else { format!("{:+.1} %", tenths / 10.0) };
    (run.state == RunState::Finished).then_some(shown)
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
