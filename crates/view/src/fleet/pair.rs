//! One pair of hosts: its results over time, and what limits the newest.

use super::ask::{self, now};
use super::cell::{age, figure, headline, limit, step};
use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::{Shared, load};
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_report::parts::figures::{MISSING, percent};
use linerate_report::{Language, Trend, TrendRun, plain, said};
use linerate_store::{Level, MatrixCell, MatrixQuery, PairPoint, Selection, Store, StoreError};
use linerate_units::grouped;
use maud::{Markup, html};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Results that are drawn and tested, the newest.
const MOST: usize = 300;
/// Results that are listed, the newest.
const LISTED: usize = 50;

/// The results of a pair.
struct Pair {
    test: String,
    newest: MatrixCell,
    /// Oldest first.
    points: Vec<PairPoint>,
    now: u64,
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let fields = Fields::read(query.as_deref());
    let lang = shared.language;
    shared
        .ask(move |store| {
            let pair = Pair::read(store, &fields)?;
            let title = format!("{} \u{2192} {}", plain(&pair.newest.from), plain(&pair.newest.to));
            let main = pair.main(lang, store)?;
            let page = Page { root: "../", fleet: true, ..Page::new(lang, &title, main) };
            Ok(page.answer(StatusCode::OK))
        })
        .await
}

pub(crate) async fn json(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let fields = Fields::read(query.as_deref());
    shared.ask(move |store| Ok(Json(Pair::read(store, &fields)?.json()).into_response())).await
}

impl Pair {
    fn read(store: &Store, fields: &Fields) -> Result<Self, PageError> {
        let from = fields.one("from").to_owned();
        let to = fields.one("to").to_owned();
        let (_, test) = ask::test(store, fields.one("test"))?;
        let none = || PageError::NoPair { from: from.clone(), to: to.clone() };
        let test = test.ok_or_else(none)?;
        let query = MatrixQuery {
            test: Some(test.clone()),
            from: Selection::Hosts(vec![from.clone()]),
            to: Selection::Hosts(vec![to.clone()]),
            ..MatrixQuery::all(Level::Host)
        };
        let matrix = store.matrix(&query)?;
        if matrix.all_rows == 0 {
            return Err(PageError::NoHost(from));
        }
        if matrix.all_columns == 0 {
            return Err(PageError::NoHost(to));
        }
        let newest = matrix.cells.into_iter().next().ok_or_else(none)?;
        let points = store.pair_history(&from, &to, &test, 0, MOST)?;
        Ok(Self { test, newest, points, now: now() })
    }

    fn main(&self, lang: Language, store: &Store) -> Result<Markup, PageError> {
        let runs: Vec<TrendRun> = self.points.iter().map(|point| self.run(point)).collect();
        let trend = Trend::of(lang, &runs);
        let verdict = self.verdict(lang, store)?;
        let newest = &self.newest;
        Ok(html! {
            p.command { code lang=[lang.foreign_tag()] { (plain(&self.test)) } }
            p.answer {
                strong { (figure(newest.quantity, newest.unit, newest.value)) }
                @if let Some(share) = newest.link_share.and_then(percent) { ", " (said!(lang, "view-of-link", "{share} of link", share = share)) }
                @if let Some(limit) = limit(lang, newest.limit, newest.confidence) { ", " (said!(lang, "view-fleet-limited", "limit: {limit}", limit = limit)) }
                ", " (said!(lang, "view-fleet-measured", "measured {age} ago", age = age(lang, self.now, newest.started_unix_ns))) "."
            }
            @if let Some((before, after)) = self.change() {
                p {
                    b.mark { "\u{25b2} " (said!(lang, "view-fleet-last-change", "Last change at {moment}: {step}.", moment = page::minute(after.unix_ns),
                        step = step(newest.quantity, newest.unit, Some(before.value), after.value))) }
                }
            }
            p { (trend.answer) }
            div.trend { (trend.chart(lang)) }
            @if !trend.changes.is_empty() {
                h2 { (said!(lang, "view-trend-changes", "Changes of level")) }
                ul.changes { @for change in &trend.changes { li { (change.text) " " (self.comparison(lang, change.before, change.after)) } } }
            }
            h2 { (said!(lang, "view-fleet-verdict", "What limits the newest result")) }
            (verdict)
            p {
                a href=(address("pair", &[("from", &newest.to), ("to", &newest.from), ("test", &self.test)])) { (said!(lang, "view-fleet-reverse", "The other direction")) }
            }
            h2 { (said!(lang, "view-trend-runs", "Runs, newest first")) }
            (self.table(lang))
            @if self.points.len() > LISTED {
                p.note { (said!(lang, "view-fleet-listed", "The newest {listed} of {count} results are listed.", listed = grouped(LISTED as u64), count = grouped(self.points.len() as u64))) }
            }
        })
    }

    /// Returns the newest result that differs from the one before, after that one.
    fn change(&self) -> Option<(&PairPoint, &PairPoint)> {
        let steps = self.points.iter().zip(self.points.iter().skip(1));
        steps.rev().find(|(_, after)| after.changes > 0)
    }

    /// Returns a point as a run of a trend. An hour whose runs are gone is one run with their range.
    fn run(&self, point: &PairPoint) -> TrendRun {
        let Self { newest, test, .. } = self;
        let mut headline = headline(test, newest.quantity, point.unit.unwrap_or(newest.unit), point.value);
        headline.range = Some((point.low, point.high)).filter(|(low, high)| low < high);
        headline.link_share = point.link_share;
        TrendRun { started_unix_ns: point.unix_ns, headline, version: String::new(), systems: BTreeMap::new() }
    }

    fn comparison(&self, lang: Language, before: usize, after: usize) -> Markup {
        let record = |at: usize| self.points.get(at).and_then(|point| point.record.as_ref());
        html! {
            @if let (Some(before), Some(after)) = (record(before), record(after)) {
                a href={ "../" (address("compare", &[("with", &before.0), ("with", &after.0)])) } { (said!(lang, "view-trend-compare", "compare")) }
            }
        }
    }

    /// The verdict of the newest record with its evidence.
    fn verdict(&self, lang: Language, store: &Store) -> Result<Markup, PageError> {
        let Some(id) = &self.newest.record else { return Ok(record_gone(lang)) };
        let record = match load(store, &id.0) {
            Ok(record) => record,
            // Deleted by another program in the meantime.
            Err(StoreError::Unknown { .. }) => return Ok(record_gone(lang)),
            Err(error) => return Err(error.into()),
        };
        Ok(html! {
            (linerate_report::verdicts(lang, &record))
            p { a href={ "../" (address("record", &[("id", &id.0)])) } { (said!(lang, "view-fleet-open-record", "Open the record")) } }
        })
    }

    fn table(&self, lang: Language) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(said!(lang, "view-trend-runs", "Runs, newest first")) {
                table.pair-runs {
                    thead {
                        tr {
                            th scope="col" { (said!(lang, "view-column-when", "When")) }
                            th scope="col" { (said!(lang, "view-column-figure", "Figure")) }
                            th scope="col" { (said!(lang, "view-column-share", "Of link")) }
                            th scope="col" { (said!(lang, "view-limit", "Limit")) }
                            th scope="col" { (said!(lang, "view-column-change", "Change")) }
                        }
                    }
                    tbody { @for point in self.points.iter().rev().take(LISTED) { (self.row(lang, point)) } }
                }
            }
        }
    }

    fn row(&self, lang: Language, point: &PairPoint) -> Markup {
        let when = page::moment(point.unix_ns);
        html! {
            tr {
                th scope="row" {
                    @match &point.record {
                        Some(record) => a href={ "../" (address("record", &[("id", &record.0)])) } { (when) },
                        None => (said!(lang, "view-fleet-hour", "hour from {moment}, mean of {count}", moment = when, count = point.results)),
                    }
                }
                td { (figure(self.newest.quantity, point.unit.unwrap_or(self.newest.unit), point.value)) }
                td { (point.link_share.and_then(percent).unwrap_or_else(|| MISSING.to_owned())) }
                td { (limit(lang, point.limit, point.confidence).unwrap_or_else(|| MISSING.to_owned())) }
                td { @if point.changes > 0 { b.mark { "\u{25b2} " (said!(lang, "view-fleet-is-changed", "changed")) } } }
            }
        }
    }

    fn json(&self) -> serde_json::Value {
        let points = self.points.iter().map(|point| {
            json!({
                "unix_ns": point.unix_ns,
                "value": point.value,
                "low": point.low,
                "high": point.high,
                "results": point.results,
                "changes": point.changes,
                "link_share": point.link_share,
                "limit": point.limit,
                "confidence": point.confidence,
                "record": point.record,
            })
        });
        json!({
            "test": self.test,
            "from": self.newest.from,
            "to": self.newest.to,
            "unit": self.newest.unit,
            "quantity": self.newest.quantity,
            "points": points.collect::<Vec<_>>(),
        })
    }
}

fn record_gone(lang: Language) -> Markup {
    html! { p { (said!(lang, "view-fleet-record-gone", "The record of the newest result is no longer stored, so its evidence is not known.")) } }
}
