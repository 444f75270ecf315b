//! One record: its report, or how far it is.

use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::{Shared, load};
use crate::trusted_proxy::Role;
use crate::watched::{self, Watched as _, WatchedRun};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_report::{Language, Link, plain, said};
use linerate_store::{Store, StoreError};
use maud::html;
use std::sync::Arc;

pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    Extension(role): Extension<Role>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let name = Fields::read(query.as_deref()).one("id").to_owned();
    let lang = shared.language;
    shared
        .ask(move |store| {
            let run = WatchedRun::open(store, &name, lang)?;
            Ok(if run.is_under_way() { watched(lang, &run) } else { report(store, lang, role, &run.id().0)? })
        })
        .await
}

/// The report of the record called `name`, with links to the runs of the same command before and after it.
fn report(store: &Store, lang: Language, role: Role, name: &str) -> Result<Response, StoreError> {
    let record = load(store, name)?;
    let run = store.row(name)?;
    let mut links = vec![(said!(lang, "view-all-records", "All records"), "./".to_owned())];
    if let Some(before) = store.before(&run)? {
        links.push((said!(lang, "view-run-before", "Run before"), address("record", &[("id", &before.id.0)])));
        let pair = [("with", before.id.0.as_str()), ("with", run.id.0.as_str())];
        links.push((said!(lang, "view-compare-with-before", "Compare with the run before"), address("compare", &pair)));
    }
    if let Some(after) = store.after(&run)? {
        links.push((said!(lang, "view-run-after", "Run after"), address("record", &[("id", &after.id.0)])));
    }
    links.push((said!(lang, "view-trend-of", "Trend of this command"), address("trend", &[("id", &run.id.0)])));
    if role == Role::Operator {
        links.push((said!(lang, "view-delete-record", "Delete a record"), address("delete", &[("id", &run.id.0)])));
    }
    let links: Vec<Link<'_>> = links.iter().map(|(text, address)| Link { text, address }).collect();
    let page = linerate_report::linked_html(lang, &record, &links, Some(&page::shell_command(&record.command)));
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response())
}

/// A run that goes on: what there is so far, renewed as it changes.
fn watched(lang: Language, run: &WatchedRun) -> Response {
    let id = &run.id().0;
    let (command, started_unix_ns) = run.begun();
    let main = html! {
        (watched::drawn(&address("events", &[("id", id)]), &run.parts(lang)))
        p.note { (said!(lang, "view-record-begun", "Record {id}, begun {moment}.", id = plain(id), moment = page::moment(started_unix_ns))) }
    };
    let title = page::command(command);
    Page { refresh: true, ..Page::new(lang, &title, main) }.answer(StatusCode::OK)
}
