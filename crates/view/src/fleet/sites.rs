//! Sites of a fleet: their hosts, their worst pairs and the limits there.

use super::ask::{self, now};
use super::cell::{Grade, Typical, age, figure, limit, site_field, site_name};
use super::matrix::pair_address;
use crate::page::Page;
use crate::page_error::PageError;
use crate::query::{Fields, address};
use crate::shared::Shared;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use linerate_report::{Language, plain, said};
use linerate_store::{FleetHost, Level, Matrix, MatrixCell, MatrixQuery, Store};
use linerate_units::grouped;
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Sites of a page.
const MOST_SITES: usize = 200;
/// Hosts that are listed of a site.
const MOST_HOSTS: usize = 100;
/// Pairs of sites that are listed of a site, the worst.
const MOST_PAIRS: usize = 3;

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Result<Response, PageError> {
    let typed = Fields::read(query.as_deref()).one("test").to_owned();
    let lang = shared.language;
    shared
        .ask(move |store| {
            let title = said!(lang, "view-fleet-sites-title", "Sites of the fleet");
            let main = main(lang, store, &typed)?;
            Ok(Page { root: "../", fleet: true, ..Page::new(lang, &title, main) }.answer(StatusCode::OK))
        })
        .await
}

fn main(lang: Language, store: &Store, typed: &str) -> Result<Markup, PageError> {
    let (tests, test) = ask::test(store, typed)?;
    let part = linerate_store::Page { skipped: 0, limit: MOST_SITES };
    let query = MatrixQuery { test: test.clone(), rows: part, columns: part, ..MatrixQuery::all(Level::Site) };
    let matrix = store.matrix(&query)?;
    let hosts = by_site(store.fleet_hosts()?);
    let mut names: Vec<&str> = hosts.keys().map(String::as_str).collect();
    names.extend(matrix.rows.iter().chain(&matrix.columns).map(String::as_str));
    names.sort_unstable();
    names.dedup();
    let now = now();
    let typical = Typical::of(&matrix.cells);
    Ok(html! {
        @if names.is_empty() {
            p { (said!(lang, "view-fleet-no-sites", "The store has no hosts of a fleet: hosts are listed once they have joined, see `linerate fleet enrol`.")) }
        } @else {
            @if !tests.is_empty() {
                form.filter action="sites" method="get" aria-label=(said!(lang, "view-filter", "Filter")) {
                    label { (said!(lang, "view-fleet-test", "Test"))
                        select name="test" { @for one in &tests { option value=(one) selected[Some(one) == test.as_ref()] { (plain(one)) } } }
                    }
                    button { (said!(lang, "view-show", "Show")) }
                }
            }
            (limits(lang, &matrix))
            @for name in names.iter().take(MOST_SITES) {
                (site(lang, name, hosts.get(*name).map_or(&[], Vec::as_slice), &matrix, &typical, now))
            }
            @if names.len() > MOST_SITES {
                p.note { (said!(lang, "view-fleet-sites-cut", "{shown} of {all} sites are shown.", shown = grouped(MOST_SITES as u64), all = grouped(names.len() as u64))) }
            }
        }
    })
}

fn by_site(hosts: Vec<FleetHost>) -> BTreeMap<String, Vec<FleetHost>> {
    let mut sites: BTreeMap<String, Vec<FleetHost>> = BTreeMap::new();
    for host in hosts {
        sites.entry(host.site().to_owned()).or_default().push(host);
    }
    sites
}

/// Limits of the worst pair of each two sites, the most frequent first.
fn limits(lang: Language, matrix: &Matrix) -> Markup {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for cell in &matrix.cells {
        let name = cell
            .limit
            .map_or_else(|| said!(lang, "view-fleet-no-limit", "no verdict"), |limit| lang.text(limit.text()));
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    html! {
        @if !counts.is_empty() {
            h2 { (said!(lang, "view-fleet-limits", "Limits of the worst pair of each two sites")) }
            table.limits {
                thead { tr { th scope="col" { (said!(lang, "view-limit", "Limit")) } th scope="col" { (said!(lang, "view-fleet-site-pairs", "Site pairs")) } } }
                tbody { @for (name, count) in &counts { tr { th scope="row" { (name) } td { (grouped(*count as u64)) } } } }
            }
        }
    }
}

fn site(lang: Language, name: &str, hosts: &[FleetHost], matrix: &Matrix, typical: &Typical, now: u64) -> Markup {
    let test = matrix.test.as_deref().unwrap_or_default();
    html! {
        section.site {
            h2 { (site_name(lang, name)) }
            p {
                @if !hosts.is_empty() { (said!(lang, "view-fleet-hosts", if count == 1 { "1 host." } else { "{count} hosts." }, count = hosts.len())) " " }
                @if matrix.rows.iter().any(|row| row == name) {
                    a href={ "../" (address("fleet", &[("test", test), ("by", "host"), ("from", site_field(name))])) } { (said!(lang, "view-fleet-from-here", "From here")) } " "
                }
                @if matrix.columns.iter().any(|column| column == name) {
                    a href={ "../" (address("fleet", &[("test", test), ("by", "host"), ("to", site_field(name))])) } { (said!(lang, "view-fleet-to-here", "To here")) }
                }
            }
            (worst(lang, name, matrix, typical, now))
            (host_list(lang, hosts, now))
        }
    }
}

/// The worst pairs of a site.
fn worst(lang: Language, name: &str, matrix: &Matrix, typical: &Typical, now: u64) -> Markup {
    let test = matrix.test.as_deref().unwrap_or_default();
    let touches = |cell: &&MatrixCell| matrix.rows[cell.row] == name || matrix.columns[cell.column] == name;
    let mut cells: Vec<(f64, &MatrixCell)> =
        matrix.cells.iter().filter(touches).filter_map(|cell| Some((typical.score(cell)?, cell))).collect();
    cells.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    html! {
        @if !cells.is_empty() {
            ol.worst {
                @for (score, cell) in cells.iter().take(MOST_PAIRS) {
                    @let grade = Grade::of(*score);
                    li {
                        span class={ "grade " (grade.class()) } { (grade.word(lang)) } " "
                        a href={ "../" (pair_address(test, &cell.from, &cell.to)) } { (plain(&cell.from)) " \u{2192} " (plain(&cell.to)) }
                        " " strong { (figure(cell.quantity, cell.unit, cell.value)) }
                        @if let Some(relation) = typical.relation(lang, cell) { " " span { (relation) } }
                        @if let Some(limit) = limit(lang, cell.limit, cell.confidence) { " " span { (said!(lang, "view-fleet-limited", "limit: {limit}", limit = limit)) } }
                        " " span.note { (said!(lang, "view-fleet-measured", "measured {age} ago", age = age(lang, now, cell.started_unix_ns))) }
                    }
                }
            }
        }
    }
}

fn host_list(lang: Language, hosts: &[FleetHost], now: u64) -> Markup {
    html! {
        @if !hosts.is_empty() {
            details {
                summary { (said!(lang, "view-fleet-hosts-of", "Hosts")) }
                table.site-hosts {
                    thead {
                        tr {
                            th scope="col" { (said!(lang, "view-fleet-column-host", "Host")) }
                            th scope="col" { (said!(lang, "view-fleet-column-labels", "Labels")) }
                            th scope="col" { (said!(lang, "view-fleet-column-seen", "Last seen")) }
                        }
                    }
                    tbody {
                        @for host in hosts.iter().take(MOST_HOSTS) {
                            @let labels: Vec<String> = host.labels.iter().map(|(name, value)| plain(&format!("{name}={value}"))).collect();
                            tr {
                                th scope="row" { (plain(&host.name)) }
                                td { (labels.join(", ")) }
                                td { (said!(lang, "view-fleet-seen", "{age} ago", age = age(lang, now, host.seen_unix_ns))) }
                            }
                        }
                    }
                }
                @if hosts.len() > MOST_HOSTS {
                    p.note { (said!(lang, "view-fleet-hosts-cut", "{shown} of {all} hosts are shown.", shown = grouped(MOST_HOSTS as u64), all = grouped(hosts.len() as u64))) }
                }
            }
        }
    }
}
