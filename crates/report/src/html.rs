//! A record as one HTML page that needs nothing but itself: no other file, no network, and hardly its script.

use crate::charts::{self, Chart};
use crate::device;
use crate::figures::{MISSING, moment, per_second, plain, rate, words};
use crate::ladder;
use crate::sentences;
use crate::tables::{self, Column, Table};
use linerate_model::{Host, Limit, Measurement, Nic, Record, WorkloadKind};
use linerate_units::ByteCount;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("../html/style.css");
const SCRIPT: &str = include_str!("../html/chart.js");
/// The page may use what it carries and fetch nothing.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// The page.
pub fn html(record: &Record) -> String {
    let parties = sentences::parties(record);
    let charts = charts::all(record);
    let caveats = sentences::caveats(record);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "linerate: " (parties) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.brand { "linerate" }
                    h1 { (parties) }
                    p.when { (moment(record.started_unix_ns)) ", record " (plain(&record.id.0)) }
                }
                main {
                    @if let Some(found) = &record.ladder {
                        section aria-labelledby="ladder" {
                            h2 #ladder { "Ladder" }
                            @for sentence in ladder::sentences(found) { p { (prose(&sentence)) } }
                            (with_meanings(&ladder::table(found)))
                            @if let Some(chart) = ladder::chart(found) { (figure(&chart)) }
                        }
                    }
                    (summary(record))
                    @if !caveats.is_empty() {
                        section aria-labelledby="caveats" {
                            h2 #caveats { "Caveats" }
                            ul.caveats {
                                @for (names, caveat) in &caveats {
                                    li {
                                        @if !names.is_empty() { b { (sentences::listed(names)) ": " } }
                                        (prose(&sentences::sentence(&caveat.text)))
                                    }
                                }
                            }
                        }
                    }
                    @if !record.results.is_empty() {
                        section aria-labelledby="figures" {
                            h2 #figures { "Figures" }
                            @for table in tables::results(record) { (with_meanings(&table)) }
                        }
                    }
                    @if record.outcome.is_some() {
                        section aria-labelledby="device" {
                            h2 #device { "Device" }
                            @for table in device::tables(record) { (with_meanings(&table)) }
                            @let verdicts = device::verdicts(record);
                            @if !verdicts.is_empty() { h3 { "What limited the results" } }
                            dl.further { @for (name, said) in verdicts { dt { (name) } dd { (prose(&said)) } } }
                        }
                    }
                    @if !charts.is_empty() {
                        section aria-labelledby="charts" {
                            h2 #charts { "Charts" }
                            @for chart in &charts { (figure(chart)) }
                        }
                    }
                    @if record.results.iter().any(|result| !sentences::further(result).is_empty()) {
                        section aria-labelledby="further" {
                            h2 #further { "Further figures" }
                            dl.further {
                                @for result in &record.results {
                                    @let further = sentences::further(result);
                                    @if !further.is_empty() {
                                        dt { (plain(&result.name)) }
                                        dd { (prose(&further.join(" "))) }
                                    }
                                }
                            }
                        }
                    }
                    section aria-labelledby="hosts" {
                        h2 #hosts { "Hosts" }
                        div.words { (scrolling("Hosts", &hosts(&record.hosts))) }
                        div.words { (scrolling("Interfaces", &interfaces(&record.hosts))) }
                    }
                    section aria-labelledby="method" {
                        h2 #method { "How it was measured" }
                        @for sentence in sentences::method(record) { p { (sentence) } }
                        p { "Command: " code { (plain(&record.command.join(" "))) } }
                    }
                }
                footer {
                    p #download.script {}
                    p {
                        "Written by linerate " (plain(&record.version)) ". "
                        "The record is embedded in this file; nothing is fetched from elsewhere."
                    }
                }
                script #record type="application/json" { (PreEscaped(embedded(record))) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The record for a script element: nothing in it can end the element.
fn embedded(record: &Record) -> String {
    crate::json(record).trim_end().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Each result with its one number, its sentences and what limited it.
fn summary(record: &Record) -> Markup {
    html! {
        @if record.results.is_empty() && record.outcome.is_none() { p { "Nothing was measured." } }
        ul.results aria-label="Results" {
            @for result in &record.results {
                li {
                    div {
                        span.name { (plain(&result.name)) }
                        span.figure { (figure_of(result)) }
                    }
                    div {
                        @let said = sentences::main(record, result);
                        p { (prose(&said[0])) }
                        @if said.len() > 1 { p.rest { (prose(&said[1..].join(" "))) } }
                        p.rest {
                            @let verdict = format!("{}.", sentences::verdict(&result.verdict));
                            @if result.verdict.limit == Limit::CannotTell { (verdict) } @else { strong { (verdict) } }
                            @for why in result.verdict.evidence.iter().chain(&result.verdict.next) {
                                " " (prose(&sentences::sentence(why)))
                            }
                        }
                        @if !result.verdict.weighed.is_empty() {
                            details {
                                summary { "What was weighed" }
                                dl.weighed {
                                    @for weighed in &result.verdict.weighed {
                                        dt { (weighed.limit.to_string()) " (" (weighed.stand.to_string()) ")" }
                                        dd { (prose(&sentences::sentence(&weighed.text))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sentences whose lines break neither between a number and its unit nor behind the dashes of an option.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, word) in words(text).iter().enumerate() {
            @if index > 0 { " " }
            @let word = word.replace(' ', "\u{a0}");
            @if word.contains("--") { span.option { (word) } } @else { (word) }
        }
    }
}

/// The one number of a result.
fn figure_of(result: &Measurement) -> String {
    let shown = match result.workload {
        WorkloadKind::Stream => {
            result.received.as_ref().and_then(|received| rate(received.payload_bps.median, "bit/s"))
        }
        WorkloadKind::Transact => {
            result.transactions_per_s.as_ref().and_then(|done| Some(format!("{} /s", per_second(done.median)?)))
        }
    };
    shown.unwrap_or_else(|| MISSING.to_owned())
}

fn figure(chart: &Chart) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (chart.title) }
                ul { @for (class, meaning) in &chart.legend { li { i class=(class) {} (meaning) } } }
            }
            div.drawing { (chart.drawing) }
            details {
                summary { "The same as a table" }
                (scrolling(&chart.table.caption, &chart.table))
            }
        }
    }
}

/// A table, and what its columns count.
fn with_meanings(table: &Table) -> Markup {
    html! {
        (scrolling(&table.caption, table))
        ul.means { @for column in &table.columns[1..] { li { b { (column.title) } ": " (column.meaning) } } }
    }
}

/// A table that scrolls sideways on a narrow screen, also by keyboard.
fn scrolling(caption: &str, table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (table.caption) }
                thead {
                    tr { @for column in &table.columns { th scope="col" title=(column.meaning) { (column.title) } } }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @match cell {
                                    Some(text) if index == 0 => th scope="row" { (text) },
                                    Some(text) => td { (text) },
                                    None => td.none { (MISSING) },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn hosts(hosts: &[Host]) -> Table {
    let row = |host: &Host| {
        vec![
            Some(plain(&host.name.0)),
            Some(plain(&host.system)),
            Some(plain(&host.cpu_model)).filter(|model| !model.is_empty()),
            Some(host.cores.to_string()),
            Some(ByteCount::new(host.memory_bytes).to_string()),
            host.congestion_controls.first().map(|control| plain(control)),
            Some(plain(&host.version)),
        ]
    };
    Table {
        caption: "Hosts".to_owned(),
        columns: vec![
            Column::new("host", "the name in the plan"),
            Column::new("system", "operating system and release"),
            Column::new("CPU", "as the system names it"),
            Column::new("cores", "cores online"),
            Column::new("memory", "main memory"),
            Column::new("TCP default", "the system's default congestion control"),
            Column::new("linerate", "version of the agent"),
        ],
        rows: hosts.iter().map(row).collect(),
    }
}

fn interfaces(hosts: &[Host]) -> Table {
    let row = |host: &Host, nic: &Nic| {
        // Of dozens of offloads, those decide what a packet counts.
        let joins = |name: &str| ["segmentation", "gro", "lro", "gso"].iter().any(|part| name.contains(part));
        let on = nic.offloads.iter().filter(|(name, on)| **on && joins(name));
        let on: Vec<String> = on.map(|(name, _)| plain(name)).collect();
        vec![
            Some(format!("{} {}", plain(&host.name.0), plain(&nic.name))),
            nic.speed.map(|speed| speed.to_string()),
            Some(nic.mtu.to_string()),
            Some(plain(&nic.driver)).filter(|driver| !driver.is_empty()),
            Some(plain(&nic.qdisc)).filter(|qdisc| !qdisc.is_empty()),
            Some(on.join(", ")).filter(|offloads| !offloads.is_empty()),
        ]
    };
    let rows = hosts.iter().flat_map(|host| host.nics.iter().filter(|nic| nic.up).map(move |nic| row(host, nic)));
    Table {
        caption: "Interfaces that were up".to_owned(),
        columns: vec![
            Column::new("interface", "the host's name and its own"),
            Column::new("speed", "line rate, where the driver knows one or it was given"),
            Column::new("MTU, B", "largest IP packet, bytes"),
            Column::new("driver", "as the system names it"),
            Column::new("queue", "root queueing discipline"),
            Column::new("cuts or joins packets", "offloads that are on, by the kernel's names"),
        ],
        rows: rows.collect(),
    }
}
