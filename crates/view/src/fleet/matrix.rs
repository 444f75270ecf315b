//! The matrix of a test: rows from, columns to, by sites or by hosts.

use super::ask::{self, MatrixFields, now};
use super::cell::{Grade, HOUR, Typical, age, figure, limit, site_field, site_name};
use crate::page::{self, Page};
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::Shared;
use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use linerate_report::{Language, plain, said};
use linerate_store::{Level, Matrix, MatrixCell, MatrixQuery, Selection, Store};
use linerate_units::grouped;
use maud::{Markup, html};
use serde_json::json;
use std::sync::Arc;

/// Rows and columns of a page.
const SIZE: usize = 60;
/// Cells that are listed above the matrix, the worst.
const MOST_WORST: usize = 5;
/// A result that changed within this time is marked.
const CHANGED_HOURS: u64 = 24;

/// A part of the matrix of a test.
struct Part {
    fields: MatrixFields,
    tests: Vec<String>,
    by: Level,
    matrix: Matrix,
    now: u64,
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let fields = MatrixFields::read(&Fields::read(query.as_deref()))?;
    let lang = shared.language;
    shared
        .ask(move |store| {
            let part = Part::read(store, fields)?;
            let title = said!(lang, "view-fleet-title", "Fleet");
            let page = Page { back: true, fleet: true, wide: true, ..Page::new(lang, &title, part.main(lang)) };
            Ok(page.answer(StatusCode::OK))
        })
        .await
}

pub(crate) async fn json(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let fields = MatrixFields::read(&Fields::read(query.as_deref()))?;
    shared.ask(move |store| Ok(Json(Part::read(store, fields)?.json()).into_response())).await
}

impl Part {
    /// Reads the part that the fields ask for. Pages past the end are the last page.
    fn read(store: &Store, mut fields: MatrixFields) -> Result<Self, PageError> {
        let (tests, test) = ask::test(store, &fields.test)?;
        fields.test = test.clone().unwrap_or_default();
        let by = match fields.by {
            Some(by) => by,
            None if fields.from.is_some() || fields.to.is_some() || !fields.text.is_empty() => Level::Host,
            None => default_level(store, test.clone())?,
        };
        let hosts = hosts_with(store, by, &fields.text)?;
        let selection = |site: &Option<String>| match (site, &hosts) {
            (Some(site), _) => Selection::Sites(vec![site.clone()]),
            (None, Some(hosts)) => Selection::Hosts(hosts.clone()),
            (None, None) => Selection::All,
        };
        let mut query = MatrixQuery {
            test,
            by,
            from: selection(&fields.from),
            to: selection(&fields.to),
            rows: page_of(fields.row),
            columns: page_of(fields.column),
        };
        let mut matrix = store.matrix(&query)?;
        if !tests.is_empty() {
            check_axis(fields.from.as_deref(), &fields.text, matrix.all_rows)?;
            check_axis(fields.to.as_deref(), &fields.text, matrix.all_columns)?;
        }
        let rows = fields.row.min(pages(matrix.all_rows));
        let columns = fields.column.min(pages(matrix.all_columns));
        if (rows, columns) != (fields.row, fields.column) {
            fields.row = rows;
            fields.column = columns;
            query.rows = page_of(rows);
            query.columns = page_of(columns);
            matrix = store.matrix(&query)?;
        }
        Ok(Self { fields, tests, by, matrix, now: now() })
    }

    fn is_old(&self, cell: &MatrixCell) -> bool {
        self.now.saturating_sub(cell.last_unix_ns) > self.fields.old_hours * HOUR
    }

    fn has_changed(&self, cell: &MatrixCell) -> bool {
        cell.changed_unix_ns.is_some_and(|changed| self.now.saturating_sub(changed) <= CHANGED_HOURS * HOUR)
    }

    /// Address of a page of the matrix.
    fn address(&self, row: usize, column: usize) -> String {
        let number = |page: usize| if page > 1 { page.to_string() } else { String::new() };
        let site = |site: &Option<String>| site.as_deref().map_or(String::new(), |site| site_field(site).to_owned());
        address(
            "fleet",
            &[
                ("test", &self.fields.test),
                ("by", by_field(self.by)),
                ("from", &site(&self.fields.from)),
                ("to", &site(&self.fields.to)),
                ("text", &self.fields.text),
                ("old", &self.fields.old_hours.to_string()),
                ("row", &number(row)),
                ("column", &number(column)),
            ],
        )
    }

    /// Address that a cell leads to: the hosts of two sites, or the history of two hosts.
    fn cell_address(&self, cell: &MatrixCell) -> String {
        match self.by {
            Level::Site => address(
                "fleet",
                &[
                    ("test", &self.fields.test),
                    ("by", "host"),
                    ("from", site_field(&self.matrix.rows[cell.row])),
                    ("to", site_field(&self.matrix.columns[cell.column])),
                ],
            ),
            Level::Host => pair_address(&self.fields.test, &cell.from, &cell.to),
        }
    }

    fn main(&self, lang: Language) -> Markup {
        if self.tests.is_empty() {
            return html! {
                p { (said!(lang, "view-fleet-empty", "The store has no results of pairs yet: measure from one host to another, as with `linerate stream A B`, or start a fleet with `linerate fleet run`.")) }
            };
        }
        let typical = Typical::of(&self.matrix.cells);
        html! {
            (self.form(lang))
            (self.trail(lang))
            (self.worst(lang, &typical))
            (self.table(lang, &typical))
            (self.paging(lang))
            (self.legend(lang))
        }
    }

    fn form(&self, lang: Language) -> Markup {
        html! {
            form.filter action="fleet" method="get" role="search" aria-label=(said!(lang, "view-filter", "Filter")) {
                label { (said!(lang, "view-fleet-test", "Test"))
                    select name="test" {
                        @for test in &self.tests { option value=(test) selected[*test == self.fields.test] { (plain(test)) } }
                    }
                }
                label { (said!(lang, "view-fleet-by", "Rows and columns"))
                    select name="by" {
                        option value="site" selected[self.by == Level::Site] { (said!(lang, "view-fleet-by-site", "sites")) }
                        option value="host" selected[self.by == Level::Host] { (said!(lang, "view-fleet-by-host", "hosts")) }
                    }
                }
                label.text { (said!(lang, "view-fleet-host", "Text in the names of hosts")) input type="search" name="text" value=(self.fields.text); }
                label { (said!(lang, "view-fleet-old", "Old after, hours")) input type="number" name="old" min="1" max="8760" value=(self.fields.old_hours); }
                button { (said!(lang, "view-show", "Show")) }
            }
        }
    }

    /// Says which part is shown, with a way back to all sites.
    fn trail(&self, lang: Language) -> Markup {
        let side = |site: &Option<String>| site.as_deref().map(|site| site_name(lang, site));
        let [from, to] = [side(&self.fields.from), side(&self.fields.to)];
        let all = said!(lang, "view-fleet-all-sites", "all sites");
        html! {
            p.trail {
                @if from.is_some() || to.is_some() {
                    a href=(address("fleet", &[("test", &self.fields.test), ("by", "site")])) { (said!(lang, "view-fleet-all", "All sites")) }
                    " \u{203a} "
                    (said!(lang, "view-fleet-between", "from {from} to {to}", from = from.unwrap_or_else(|| all.clone()), to = to.unwrap_or(all)))
                    ". "
                }
                (self.range(lang))
            }
        }
    }

    fn range(&self, lang: Language) -> String {
        let Matrix { all_rows, all_columns, rows, columns, .. } = &self.matrix;
        let shown = |skipped: usize, count: usize| {
            format!("{}\u{2013}{}", grouped(skipped as u64 + 1), grouped((skipped + count) as u64))
        };
        if rows.len() == *all_rows && columns.len() == *all_columns {
            said!(
                lang,
                "view-fleet-range-all",
                "{rows} rows, {columns} columns.",
                rows = grouped(*all_rows as u64),
                columns = grouped(*all_columns as u64)
            )
        } else {
            said!(
                lang,
                "view-fleet-range",
                "Rows {rows} of {all_rows}, columns {columns} of {all_columns}.",
                rows = shown((self.fields.row - 1) * SIZE, rows.len()),
                all_rows = grouped(*all_rows as u64),
                columns = shown((self.fields.column - 1) * SIZE, columns.len()),
                all_columns = grouped(*all_columns as u64)
            )
        }
    }

    /// The worst cells in sentences: what is slow, what limits it, how old it is.
    fn worst(&self, lang: Language, typical: &Typical) -> Markup {
        let mut scored: Vec<(f64, &MatrixCell)> =
            self.matrix.cells.iter().filter_map(|cell| Some((typical.score(cell)?, cell))).collect();
        scored.retain(|(score, _)| Grade::of(*score) != Grade::Good);
        scored.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        html! {
            @if !self.matrix.cells.is_empty() {
                h2 { (said!(lang, "view-fleet-worst", "Worst pairs shown")) }
                @if scored.is_empty() {
                    p { (said!(lang, "view-fleet-all-good", "All cells shown are good.")) }
                } @else {
                    ol.worst {
                        @for (score, cell) in scored.iter().take(MOST_WORST) { li { (self.worst_cell(lang, typical, *score, cell)) } }
                    }
                    @if scored.len() > MOST_WORST {
                        p.note { (said!(lang, "view-fleet-worst-more", "{count} more cells are fair or poor.", count = grouped((scored.len() - MOST_WORST) as u64))) }
                    }
                }
            }
        }
    }

    fn worst_cell(&self, lang: Language, typical: &Typical, score: f64, cell: &MatrixCell) -> Markup {
        let grade = Grade::of(score);
        html! {
            span class={ "grade " (grade.class()) } { (grade.word(lang)) } " "
            a href=(pair_address(&self.fields.test, &cell.from, &cell.to)) { (plain(&cell.from)) " \u{2192} " (plain(&cell.to)) }
            " " strong { (figure(cell.quantity, cell.unit, cell.value)) }
            @if let Some(relation) = typical.relation(lang, cell) { " " span { (relation) } }
            @if let Some(limit) = limit(lang, cell.limit, cell.confidence) { " " span { (said!(lang, "view-fleet-limited", "limit: {limit}", limit = limit)) } }
            " " span.note { (said!(lang, "view-fleet-measured", "measured {age} ago", age = age(lang, self.now, cell.started_unix_ns))) }
            @if self.has_changed(cell) { " " b.mark { (said!(lang, "view-fleet-changed-at", "changed {moment}", moment = page::minute(cell.changed_unix_ns.unwrap_or_default()))) } }
            @if let Some(record) = &cell.record { " " a href=(address("record", &[("id", &record.0)])) { (said!(lang, "view-fleet-record", "record")) } }
        }
    }

    fn table(&self, lang: Language, typical: &Typical) -> Markup {
        let mut cells = self.matrix.cells.iter().peekable();
        let caption = match self.by {
            Level::Site => said!(
                lang,
                "view-fleet-caption-site",
                "Worst newest result between two sites of {test}: rows from, columns to",
                test = plain(&self.fields.test)
            ),
            Level::Host => said!(
                lang,
                "view-fleet-caption-host",
                "Newest result between two hosts of {test}: rows from, columns to",
                test = plain(&self.fields.test)
            ),
        };
        html! {
            div.scroll tabindex="0" role="region" aria-label=(said!(lang, "view-fleet-matrix", "Matrix")) {
                table.matrix {
                    caption { (caption) }
                    thead {
                        tr {
                            th scope="col" { (said!(lang, "view-fleet-corner", "from \\ to")) }
                            @for name in &self.matrix.columns { th scope="col" { (self.name(lang, name)) } }
                        }
                    }
                    tbody {
                        @for (row, name) in self.matrix.rows.iter().enumerate() {
                            tr {
                                th scope="row" { (self.name(lang, name)) }
                                @for (column, other) in self.matrix.columns.iter().enumerate() {
                                    @match cells.next_if(|cell| (cell.row, cell.column) == (row, column)) {
                                        Some(cell) => (self.cell(lang, typical, cell)),
                                        None if self.by == Level::Host && name == other => td.self-pair { span.unseen { (said!(lang, "view-fleet-self", "the same host")) } },
                                        None => td.missing { (said!(lang, "view-fleet-missing", "no result")) },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn name(&self, lang: Language, name: &str) -> String {
        match self.by {
            Level::Site => site_name(lang, name),
            Level::Host => plain(name),
        }
    }

    fn cell(&self, lang: Language, typical: &Typical, cell: &MatrixCell) -> Markup {
        let grade = typical.score(cell).map(Grade::of);
        html! {
            td class=(grade.map_or("ungraded", Grade::class)) {
                a href=(self.cell_address(cell)) { (figure(cell.quantity, cell.unit, cell.value)) }
                @if let Some(relation) = typical.relation(lang, cell) { " " span { (relation) } }
                @if let Some(limit) = cell.limit { " " span { (lang.text(limit.text())) } }
                " " span.age { (age(lang, self.now, cell.last_unix_ns)) @if self.is_old(cell) { " " b { (said!(lang, "view-fleet-is-old", "old")) } } }
                @if let Some(grade) = grade.filter(|grade| *grade != Grade::Good) { " " b.grade { (grade.word(lang)) } }
                @if self.has_changed(cell) { " " b.mark { "\u{25b2} " (said!(lang, "view-fleet-is-changed", "changed")) } }
                @if cell.pairs > 1 { " " span.age { (said!(lang, "view-fleet-pairs", "worst of {count} pairs", count = grouped(u64::from(cell.pairs)))) } }
            }
        }
    }

    fn paging(&self, lang: Language) -> Markup {
        let Matrix { all_rows, all_columns, .. } = self.matrix;
        let at = (self.fields.row, self.fields.column);
        let link = |(row, column): (usize, usize), words: String| {
            let exists = row > 0 && column > 0 && row <= pages(all_rows) && column <= pages(all_columns);
            html! {
                @if exists { a href=(self.address(row, column)) { (words) } }
                @else { span aria-disabled="true" { (words) } }
            }
        };
        html! {
            @if pages(all_rows) > 1 || pages(all_columns) > 1 {
                nav.pages aria-label=(said!(lang, "view-pages", "Pages")) {
                    (link((at.0 - 1, at.1), said!(lang, "view-fleet-rows-before", "\u{2191} Rows before")))
                    (link((at.0 + 1, at.1), said!(lang, "view-fleet-rows-after", "\u{2193} Rows after")))
                    (link((at.0, at.1 - 1), said!(lang, "view-fleet-columns-before", "\u{2190} Columns before")))
                    (link((at.0, at.1 + 1), said!(lang, "view-fleet-columns-after", "\u{2192} Columns after")))
                }
            }
        }
    }

    fn legend(&self, lang: Language) -> Markup {
        html! {
            p.note { (said!(lang, "view-fleet-legend", "Good: at least 80 % of the link, fair: at least 50 %, poor: less. Without a known link speed, the median of the cells shown takes its place. \
                A mark shows that the newest result differs by more than {percent} % from the one before and is at most {hours} h old. Old: no result for more than {old} h.",
                percent = format!("{:.0}", linerate_model::Headline::CHANGED * 100.0), hours = CHANGED_HOURS, old = self.fields.old_hours)) }
        }
    }

    fn json(&self) -> serde_json::Value {
        let cells: Vec<_> = self.matrix.cells.iter().map(|cell| self.json_cell(cell)).collect();
        json!({
            "test": self.matrix.test,
            "by": by_field(self.by),
            "rows": self.matrix.rows,
            "columns": self.matrix.columns,
            "all_rows": self.matrix.all_rows,
            "all_columns": self.matrix.all_columns,
            "row_page": self.fields.row,
            "column_page": self.fields.column,
            "page_size": SIZE,
            "cells": cells,
        })
    }

    fn json_cell(&self, cell: &MatrixCell) -> serde_json::Value {
        json!({
            "row": cell.row,
            "column": cell.column,
            "from": cell.from,
            "to": cell.to,
            "value": cell.value,
            "unit": cell.unit,
            "quantity": cell.quantity,
            "link_share": cell.link_share,
            "limit": cell.limit,
            "confidence": cell.confidence,
            "started_unix_ns": cell.started_unix_ns,
            "last_unix_ns": cell.last_unix_ns,
            "changed_unix_ns": cell.changed_unix_ns,
            "pairs": cell.pairs,
            "results": cell.results,
            "record": cell.record,
            "old": self.is_old(cell),
        })
    }
}

/// Returns the address of the history of a pair.
pub(super) fn pair_address(test: &str, from: &str, to: &str) -> String {
    address("fleet/pair", &[("from", from), ("to", to), ("test", test)])
}

fn by_field(by: Level) -> &'static str {
    match by {
        Level::Site => "site",
        Level::Host => "host",
    }
}

fn page_of(number: usize) -> linerate_store::Page {
    linerate_store::Page { skipped: number.saturating_sub(1).saturating_mul(SIZE).min(i64::MAX as usize), limit: SIZE }
}

/// Returns the number of pages, at least 1.
fn pages(count: usize) -> usize {
    count.div_ceil(SIZE).max(1)
}

/// Returns sites if there are several, else hosts.
fn default_level(store: &Store, test: Option<String>) -> Result<Level, PageError> {
    let one = linerate_store::Page { skipped: 0, limit: 1 };
    let sites = store.matrix(&MatrixQuery { test, rows: one, columns: one, ..MatrixQuery::all(Level::Site) })?;
    Ok(if sites.all_rows.max(sites.all_columns) > 1 { Level::Site } else { Level::Host })
}

/// Returns the hosts of the fleet with `text` in their names, or the words of `text` as names if there are none. Returns `None`
/// without a text.
fn hosts_with(store: &Store, by: Level, text: &str) -> Result<Option<Vec<String>>, PageError> {
    if text.is_empty() || by == Level::Site {
        return Ok(None);
    }
    let hosts = store.fleet_hosts()?.into_iter().map(|host| host.name);
    let matching: Vec<String> = hosts.filter(|name| name.contains(text)).collect();
    let words = text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned);
    Ok(Some(if matching.is_empty() { words.collect() } else { matching }))
}

fn check_axis(site: Option<&str>, text: &str, count: usize) -> Result<(), PageError> {
    match site {
        _ if count > 0 => Ok(()),
        Some(site) => Err(PageError::NoSite(site_field(site).to_owned())),
        None => Err(PageError::NoHost(text.to_owned())),
    }
}
