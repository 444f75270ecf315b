//! One record: its report, or how far it is.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::serve::Shared;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_model::{Goal, Record, Repeats, SweepPlan};
use linerate_report::{Language, Link, plain, said};
use linerate_store::{RunRow, State as RunState, Store, StoreError};
use linerate_units::grouped;
use maud::{Markup, html};
use std::sync::Arc;

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let name = Fields::read(query.as_deref()).one("id").to_owned();
    let lang = shared.language;
    shared
        .ask(move |store| {
            let run = store.row(&name)?;
            let record = load(store, &run.id.0)?;
            Ok(match run.state {
                RunState::Running => watched(lang, &run, &record),
                RunState::Finished | RunState::Interrupted | RunState::Failed | RunState::Killed => {
                    report(lang, &record)
                }
            })
        })
        .await
}

/// The record called `name`, with what follows from its trials.
pub(crate) fn load(store: &Store, name: &str) -> Result<Record, StoreError> {
    let mut record = store.load(name)?;
    linerate_method::replay(&mut record);
    Ok(record)
}

fn report(lang: Language, record: &Record) -> Response {
    let all = said!(lang, "view-all-records");
    let links = [Link { text: &all, address: "./" }];
    let page = linerate_report::linked_html(lang, record, &links);
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

/// A record whose run goes on: what there is so far, renewed with each trial.
fn watched(lang: Language, run: &RunRow, record: &Record) -> Response {
    let id = &record.id.0;
    let main = html! {
        div #live data-events=(address("events", &[("id", id)])) {
            p.under-way role="status" { (progress(lang, run, record)) }
            @if let Some(latest) = latest(record) { p { (said!(lang, "view-latest-trial", name = plain(latest))) } }
            (linerate_report::so_far(lang, record))
        }
        p.note { (said!(lang, "view-record-begun", id = plain(id), moment = page::moment(record.started_unix_ns))) }
    };
    let title = page::command(&record.command);
    Page { lang, title: &title, back: true, refresh: true, main }.answer(StatusCode::OK)
}

/// `Under way: 4 of 9 trials are done, the last at 2026-11-21 09:30:05.`
fn progress(lang: Language, run: &RunRow, record: &Record) -> Markup {
    let done = run.trials as usize;
    // A device test's searches end when they end.
    let total = match &record.plan.goal {
        Goal::Sweep(SweepPlan { cells, repeats: Repeats::Times(times) }) => Some(cells.len() * *times as usize),
        _ => None,
    };
    html! {
        strong { (said!(lang, "view-under-way")) } " "
        @let (count, moment) = (grouped(done as u64), page::moment(run.changed_unix_ns));
        @match total.filter(|total| *total >= done) {
            Some(total) => (said!(lang, "view-trials-done-of", count = count, total = grouped(total as u64), moment = moment)),
            None => (said!(lang, "view-trials-done", trials = done, moment = moment)),
        }
        @if let Some(total) = total.filter(|total| *total >= done) {
            " " progress max=(total) value=(done) aria-label=(said!(lang, "view-progress")) {}
        }
    }
}

/// The name of what was measured last.
fn latest(record: &Record) -> Option<&str> {
    record.trials.last().map(|result| result.trial.name.as_str())
}
