//! Pairs whose results changed, grouped by their sites.

use super::ask::{now, since};
use super::cell::{age, limit, site_name, step};
use super::matrix::pair_address;
use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::Shared;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_report::{Language, plain, said};
use linerate_store::{FleetHost, PairChange, Store};
use linerate_units::grouped;
use maud::{Markup, html};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes of a page, the newest.
const MOST: usize = 1_000;
/// Changes that a group shows before it is opened.
const MOST_SHOWN: usize = 10;

/// Changes between two sites, newest first.
struct Group {
    from: String,
    to: String,
    changes: Vec<PairChange>,
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let field = Fields::read(query.as_deref()).one("since").to_owned();
    let now = now();
    let since = since(&field, now)?;
    let lang = shared.language;
    shared
        .ask(move |store| {
            let changes = store.changed_since(since, MOST + 1)?;
            let is_cut = changes.len() > MOST;
            let groups = grouped_by_sites(changes.into_iter().take(MOST).collect(), &sites(store)?);
            let title = said!(lang, "view-fleet-changes-title", "Changes of the fleet");
            let main = html! {
                (form(lang, since))
                @if is_cut { p.problem { (said!(lang, "view-fleet-changes-cut", "Only the newest {count} changes are shown: choose a later time.", count = grouped(MOST as u64))) } }
                @if groups.is_empty() { p { (said!(lang, "view-fleet-no-change", "No result has changed since {moment}.", moment = page::minute(since))) } }
                @for group in &groups { (shown(lang, group, now)) }
            };
            Ok(Page { root: "../", fleet: true, ..Page::new(lang, &title, main) }.answer(StatusCode::OK))
        })
        .await
}

pub(crate) async fn json(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let field = Fields::read(query.as_deref()).one("since").to_owned();
    let since = since(&field, now())?;
    shared
        .ask(move |store| {
            let sites = sites(store)?;
            let changes = store.changed_since(since, MOST + 1)?;
            let listed: Vec<_> = changes.iter().take(MOST).map(|change| json_change(change, &sites)).collect();
            let body = json!({ "since_unix_ns": since, "is_cut": changes.len() > MOST, "changes": listed });
            Ok(Json(body).into_response())
        })
        .await
}

/// Returns the sites of hosts, by their names.
fn sites(store: &Store) -> Result<BTreeMap<String, String>, PageError> {
    let pair = |host: FleetHost| (host.name.clone(), host.site().to_owned());
    Ok(store.fleet_hosts()?.into_iter().map(pair).collect())
}

/// Groups changes, which are newest first: groups by their newest change, changes as they were.
fn grouped_by_sites(changes: Vec<PairChange>, sites: &BTreeMap<String, String>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places = BTreeMap::new();
    for change in changes {
        let from = sites.get(&change.from).cloned().unwrap_or_default();
        let to = sites.get(&change.to).cloned().unwrap_or_default();
        let place = *places.entry((from.clone(), to.clone())).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { from, to, changes: Vec::new() });
        }
        groups[place].changes.push(change);
    }
    groups
}

fn form(lang: Language, since: u64) -> Markup {
    let value = page::minute(since).replace(' ', "T");
    html! {
        form.filter action="changes" method="get" aria-label=(said!(lang, "view-filter", "Filter")) {
            label { (said!(lang, "view-fleet-since", "Since (UTC)")) input type="datetime-local" name="since" value=(value) required; }
            button { (said!(lang, "view-show", "Show")) }
            a href="changes?since=1h" { (said!(lang, "view-fleet-last-hour", "Last hour")) }
            a href="changes?since=6h" { (said!(lang, "view-fleet-last-hours", "Last {hours} h", hours = 6_u64)) }
            a href="changes" { (said!(lang, "view-fleet-since-yesterday", "Since yesterday")) }
            a href="changes?since=168h" { (said!(lang, "view-fleet-last-week", "Last week")) }
        }
    }
}

fn shown(lang: Language, group: &Group, now: u64) -> Markup {
    let (first, rest) = group.changes.split_at(group.changes.len().min(MOST_SHOWN));
    html! {
        section {
            h2 { (site_name(lang, &group.from)) " \u{2192} " (site_name(lang, &group.to)) }
            ul.changes { @for change in first { li { (line(lang, change, now)) } } }
            @if !rest.is_empty() {
                details {
                    summary { (said!(lang, "view-fleet-more-changes", "{count} more changes", count = grouped(rest.len() as u64))) }
                    ul.changes { @for change in rest { li { (line(lang, change, now)) } } }
                }
            }
        }
    }
}

fn line(lang: Language, change: &PairChange, now: u64) -> Markup {
    let more = change.value_before.is_some_and(|before| change.value > before);
    let is_better = more == change.quantity.more_is_better();
    html! {
        b.better[is_better].worse[!is_better] {
            @if is_better { (said!(lang, "view-fleet-better", "better")) } @else { (said!(lang, "view-fleet-worse", "worse")) }
        }
        " " a href={ "../" (pair_address(&change.test, &change.from, &change.to)) } { (plain(&change.from)) " \u{2192} " (plain(&change.to)) }
        " " strong { (step(change.quantity, change.unit, change.value_before, change.value)) }
        @if let Some(limit) = limit(lang, change.limit, change.confidence) { " " span { (said!(lang, "view-fleet-limited", "limit: {limit}", limit = limit)) } }
        " " code { (plain(&change.test)) }
        " " span.note {
            (said!(lang, "view-fleet-ago", "{moment}, {age} ago", moment = page::minute(change.started_unix_ns), age = age(lang, now, change.started_unix_ns)))
        }
        " " a href={ "../" (address("record", &[("id", &change.record.0)])) } { (said!(lang, "view-fleet-record", "record")) }
    }
}

fn json_change(change: &PairChange, sites: &BTreeMap<String, String>) -> serde_json::Value {
    json!({
        "test": change.test,
        "from": change.from,
        "to": change.to,
        "from_site": sites.get(&change.from),
        "to_site": sites.get(&change.to),
        "started_unix_ns": change.started_unix_ns,
        "value": change.value,
        "value_before": change.value_before,
        "unit": change.unit,
        "quantity": change.quantity,
        "link_share": change.link_share,
        "limit": change.limit,
        "confidence": change.confidence,
        "record": change.record,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{MeasureUnit, Quantity, RecordId};

    fn change(from: &str, to: &str, started_unix_ns: u64) -> PairChange {
        PairChange {
            test: "stream".into(),
            from: from.into(),
            to: to.into(),
            started_unix_ns,
            value: 8e8,
            value_before: Some(9e8),
            unit: MeasureUnit::BitsPerS,
            quantity: Quantity::PayloadBps,
            link_share: None,
            limit: None,
            confidence: None,
            record: RecordId(format!("{from}-{to}-{started_unix_ns}")),
        }
    }

    #[test]
    fn groups_are_ordered_by_their_newest_change() {
        let sites = [("a1", "a"), ("a2", "a"), ("b1", "b")].map(|(host, site)| (host.to_owned(), site.to_owned()));
        let changes = vec![change("b1", "a1", 9), change("a1", "b1", 8), change("b1", "a2", 7), change("x", "b1", 6)];
        let groups = grouped_by_sites(changes, &sites.into());
        let names: Vec<_> =
            groups.iter().map(|group| (group.from.as_str(), group.to.as_str(), group.changes.len())).collect();
        assert_eq!(names, [("b", "a", 2), ("a", "b", 1), ("", "b", 1)]);
    }
}
