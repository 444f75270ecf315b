//! The figure of one command from run to run.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::Shared;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_method::statistics::FALSE_ALARMS;
use linerate_report::{Language, Trend, TrendRun, plain, said};
use linerate_store::{RunOfCommand, RunRow};
use linerate_units::grouped;
use maud::{Markup, html};
use std::sync::Arc;

/// Runs that are drawn and tested, the newest.
const MOST: usize = 300;
/// Runs that are listed, the newest.
const LISTED: usize = 50;

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let name = Fields::read(query.as_deref()).one("id").to_owned();
    let lang = shared.language;
    shared
        .ask(move |store| {
            let run = store.row(&name)?;
            // One more tells whether there are older ones.
            let mut runs = store.of_command(&run, MOST + 1)?;
            let is_cut = runs.len() > MOST;
            if is_cut {
                runs.remove(0);
            }
            let main = trend(lang, &run, &runs, is_cut);
            let title = said!(lang, "view-trend", "Trend");
            Ok(Page::new(lang, &title, main).answer(StatusCode::OK))
        })
        .await
}

fn trend(lang: Language, run: &RunRow, runs: &[RunOfCommand], is_cut: bool) -> Markup {
    // Runs without a figure have no place on the chart.
    let (rows, shown): (Vec<&RunRow>, Vec<TrendRun>) =
        runs.iter().filter_map(|one| Some((&one.row, shown(one)?))).unzip();
    let trend = Trend::of(lang, &shown);
    html! {
        p.command { code lang=[lang.foreign_tag()] { (page::shell_command(&run.command)) } }
        p.answer { strong { (trend.answer) } }
        div.trend { (trend.chart(lang)) }
        @if is_cut { p.note { (said!(lang, "view-trend-newest", "Only the newest {runs} runs are shown.", runs = grouped(MOST as u64))) } }
        @if !trend.changes.is_empty() {
            h2 { (said!(lang, "view-trend-changes", "Changes of level")) }
            ul.changes {
                @for change in &trend.changes {
                    @let (before, after) = (&rows[change.before].id.0, &rows[change.after].id.0);
                    li { (change.text) " " a href=(address("compare", &[("with", before), ("with", after)])) { (said!(lang, "view-trend-compare", "compare")) } }
                }
            }
        }
        @if !trend.software.is_empty() {
            h2 { (said!(lang, "view-trend-software", "Versions")) }
            ul.changes { @for text in &trend.software { li { (text) } } }
        }
        @if !runs.is_empty() {
            h2 { (said!(lang, "view-trend-runs", "Runs, newest first")) }
            ol.runs { @for one in runs.iter().rev().take(LISTED) { li { (listed(lang, &one.row)) } } }
        }
        details {
            summary { (said!(lang, "view-trend-method", "How changes are found")) }
            p { (said!(lang, "view-trend-about", "A change of level is tested for by ranks (Mann-Whitney statistics, maximum over all splits) against \
                 random orders of the same runs. Of series without a change, at most {percent} % are said to have one. \
                 Slow drift shows as changes.", percent = format!("{:.0}", FALSE_ALARMS * 100.0))) }
        }
    }
}

fn shown(run: &RunOfCommand) -> Option<TrendRun> {
    Some(TrendRun {
        started_unix_ns: run.row.started_unix_ns,
        headline: run.row.headline.clone()?,
        version: run.version.clone(),
        systems: run.systems.clone(),
    })
}

fn listed(lang: Language, run: &RunRow) -> Markup {
    html! {
        a href=(address("record", &[("id", &run.id.0)])) { (page::moment(run.started_unix_ns)) }
        @if let Some(headline) = &run.headline {
            span { (linerate_report::headline(headline)) }
            @if let Some(share) = linerate_report::headline_share(lang, headline) { span { (share) } }
        }
        @if let Some(verdict) = run.verdict { span { (linerate_report::headline_limit(lang, verdict)) } }
        span.note { (plain(&run.id.0)) }
    }
}
