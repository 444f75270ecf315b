//! A record as one HTML page that needs nothing but itself: no other file, no network, and hardly its script.

use crate::abridged;
use crate::charts::{self, Chart};
use crate::copy;
use crate::device;
use crate::figures::{MISSING, moment, per_second, plain, rate, words};
use crate::frame::{Carried, Data, Frame, STYLE};
use crate::ladder;
use crate::language::Language;
use crate::nfs;
use crate::said;
use crate::sentences;
use crate::tables::{self, Column, Table};
use linerate_model::{Caveat, Host, Limit, Measurement, NfsOutcome, Nic, Record, WorkloadKind};
use linerate_units::ByteCount;
use maud::{Markup, html};

/// A link to another page, where there are several.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// What it says.
    pub text: &'a str,
    /// Where it leads.
    pub address: &'a str,
}

/// The page.
pub fn html(lang: Language, record: &Record) -> String {
    linked_html(lang, record, &[])
}

/// The page with links at its top.
pub fn linked_html(lang: Language, record: &Record, links: &[Link<'_>]) -> String {
    let parties = sentences::parties(lang, record);
    let shown = abridged::shown(record);
    let notice = abridged::notice(lang, record);
    let charts = charts::all(lang, &shown);
    let caveats = if notice.is_some() { abridged::caveats_by_kind(lang, record) } else { caveats(lang, record) };
    let main = html! {
        @if let Some(found) = &record.ladder {
            section aria-labelledby="ladder" {
                h2 #ladder { (said!(lang, "html-ladder")) }
                @for sentence in ladder::sentences(lang, found) { p { (prose(&sentence)) } }
                (with_meanings(lang, &ladder::table(lang, found)))
                @if let Some(chart) = ladder::chart(lang, found) { (figure(lang, &chart)) }
            }
        }
        @if let Some(notice) = &notice { p.note { (prose(notice)) } }
        (summary(lang, &shown))
        @if !caveats.is_empty() {
            section aria-labelledby="caveats" {
                h2 #caveats { (said!(lang, "html-caveats")) }
                ul.caveats {
                    @for (names, caveat) in &caveats {
                        li {
                            @if !names.is_empty() { b { (names) ": " } }
                            (prose(&sentences::sentence(&caveat.text)))
                        }
                    }
                }
            }
        }
        @if !record.results.is_empty() {
            section aria-labelledby="figures" {
                h2 #figures { (said!(lang, "comparison-figures")) }
                @for table in tables::results(lang, record) { (with_meanings(lang, &table)) }
                @for table in nfs::tables(lang, record) { (with_meanings(lang, &table)) }
            }
        }
        @if record.copy().is_some() {
            section aria-labelledby="copy" {
                h2 #copy { (said!(lang, "html-copy")) }
                @for sentence in copy::sentences(lang, record) { p { (prose(&sentence)) } }
                @if let Some((_, judged)) = copy::judgement(lang, record) { p { (prose(&judged)) } }
                @for table in copy::tables(lang, record) { (with_meanings(lang, &table)) }
            }
        }
        @if record.device().is_some() {
            section aria-labelledby="device" {
                h2 #device { (said!(lang, "html-device")) }
                @for table in device::tables(lang, record) { (with_meanings(lang, &table)) }
                @let verdicts = device::verdicts(lang, record);
                @if !verdicts.is_empty() { h3 { (said!(lang, "html-what-limited-the-results")) } }
                dl.further { @for (name, said) in verdicts { dt { (name) } dd { (prose(&said)) } } }
            }
        }
        @if !charts.is_empty() {
            section aria-labelledby="charts" {
                h2 #charts { (said!(lang, "html-charts")) }
                @for chart in &charts { (figure(lang, chart)) }
            }
        }
        @if nfs::told(&shown).any(|result| !sentences::further(lang, result).is_empty()) {
            section aria-labelledby="further" {
                h2 #further { (said!(lang, "html-further-figures")) }
                dl.further {
                    @for result in nfs::told(&shown) {
                        @let further = sentences::further(lang, result);
                        @if !further.is_empty() {
                            dt { (plain(&result.name)) }
                            dd { (prose(&sentences::in_a_row(&further))) }
                        }
                    }
                }
            }
        }
        section aria-labelledby="hosts" {
            h2 #hosts { (said!(lang, "html-hosts")) }
            div.words { (scrolling(lang, &hosts(lang, &record.hosts))) }
            div.words { (scrolling(lang, &interfaces(lang, &record.hosts))) }
        }
        section aria-labelledby="method" {
            h2 #method { (said!(lang, "html-how-it-was-measured")) }
            @for sentence in sentences::method(lang, record) { p { (sentence) } }
            p { (said!(lang, "html-command")) " " code { (plain(&record.command.join(" "))) } }
        }
    };
    let name = plain(&record.id.0);
    let carried = if notice.is_some() {
        let data = Data::Csv(crate::csv(record));
        Carried { name: Some(&name), label: &said!(lang, "html-download-the-figures-csv"), data }
    } else {
        Carried {
            name: None,
            label: &said!(lang, "html-download-the-record-json"),
            data: Data::Json(crate::json(record)),
        }
    };
    Frame {
        lang,
        title: &parties,
        links,
        about: Some(html! { (said!(lang, "text-record", moment = moment(lang, record.started_unix_ns), id = name)) }),
        main,
        footer: html! {
            (said!(lang, "html-written-by-linerate", version = plain(&record.version))) " "
            @if notice.is_some() { (said!(lang, "html-the-figures-are-embedded")) } @else { (said!(lang, "html-the-record-is-embedded")) }
        },
        downloads: None,
        carried,
    }
    .page()
}

/// Doubts, each with the names of the results that it is about.
fn caveats(lang: Language, record: &Record) -> Vec<(String, &Caveat)> {
    sentences::caveats(record).into_iter().map(|(names, caveat)| (sentences::listed(lang, &names), caveat)).collect()
}

/// The style sheet of the page.
pub fn style_sheet() -> &'static str {
    STYLE
}

/// What is known of a record whose run goes on.
pub fn so_far(lang: Language, record: &Record) -> Markup {
    html! {
        (summary(lang, &abridged::shown(record)))
        @for table in tables::results(lang, record).iter().chain(&device::tables(lang, record)) { (with_meanings(lang, table)) }
    }
}

/// Each result with its one number, its sentences and what limited it.
fn summary(lang: Language, record: &Record) -> Markup {
    html! {
        @if record.results.is_empty() && record.outcome.is_none() { p { (said!(lang, "html-nothing-was-measured")) } }
        ul.results aria-label="Results" {
            @for result in nfs::told(record) {
                li {
                    div {
                        span.name { (plain(&result.name)) }
                        span.figure { (figure_of(result)) }
                    }
                    div {
                        @let said = sentences::main(lang, record, result);
                        p { (prose(&said[0])) }
                        @if said.len() > 1 { p.rest { (prose(&sentences::in_a_row(&said[1..]))) } }
                        p.rest {
                            @let verdict = sentences::sentence(&sentences::verdict(lang, &result.verdict));
                            @if result.verdict.limit == Limit::CannotTell { (verdict) } @else { strong { (verdict) } }
                            @for why in result.verdict.evidence.iter().chain(&result.verdict.next) {
                                " " (prose(&sentences::sentence(why)))
                            }
                        }
                        @if !result.verdict.weighed.is_empty() {
                            details {
                                summary { (said!(lang, "html-what-was-weighed")) }
                                dl.weighed {
                                    @for weighed in &result.verdict.weighed {
                                        dt { (lang.named("limit", weighed.limit)) " (" (lang.named("stand", weighed.stand)) ")" }
                                        dd { (prose(&sentences::sentence(&weighed.text))) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some(found) = record.nfs().filter(|found| !found.curve.is_empty()) {
                li {
                    div {
                        span.name { (said!(lang, "html-nfs-peak")) }
                        span.figure { (peak_of(found)) }
                    }
                    div {
                        @let said = nfs::sentences(lang, record);
                        @if let Some(first) = said.first() { p { (prose(first)) } }
                        @if said.len() > 1 { p.rest { (prose(&sentences::in_a_row(&said[1..]))) } }
                        @for (name, judged) in nfs::verdicts(lang, record) {
                            p.rest { (prose(&format!("{}: {judged}", sentences::sentence(&name).trim_end_matches('.')))) }
                        }
                    }
                }
            }
        }
    }
}

/// Sentences whose lines break neither between a number and its unit nor behind the dashes of an option.
pub(crate) fn prose(text: &str) -> Markup {
    html! {
        @for (index, word) in words(text).iter().enumerate() {
            @if index > 0 { " " }
            @let word = word.replace(' ', "\u{a0}");
            @if word.contains("--") { span.option { (word) } } @else { (word) }
        }
    }
}

/// The one number of a curve.
fn peak_of(found: &NfsOutcome) -> String {
    let peak = found.peak.as_ref().and_then(|peak| per_second(peak.achieved_ops));
    peak.map_or_else(|| MISSING.to_owned(), |peak| format!("{peak} /s"))
}

/// The one number of a result.
fn figure_of(result: &Measurement) -> String {
    let shown = match result.workload {
        WorkloadKind::Stream => {
            result.received.as_ref().and_then(|received| rate(received.payload_bps.median, "bit/s"))
        }
        WorkloadKind::Transact | WorkloadKind::Rpc | WorkloadKind::Nfs => {
            result.transactions_per_s.as_ref().and_then(|done| Some(format!("{} /s", per_second(done.median)?)))
        }
    };
    shown.unwrap_or_else(|| MISSING.to_owned())
}

pub(crate) fn figure(lang: Language, chart: &Chart) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (chart.title) }
                ul { @for (class, meaning) in &chart.legend { li { i class=(class) {} (meaning) } } }
            }
            div.drawing { (chart.drawn()) }
            details {
                summary { (said!(lang, "html-the-same-as-a")) }
                (scrolling(lang, &chart.table))
            }
        }
    }
}

/// A table, and what its columns count.
pub(crate) fn with_meanings(lang: Language, table: &Table) -> Markup {
    html! {
        (scrolling(lang, table))
        ul.means { @for column in &table.columns[1..] { li { b { (column.title(lang)) } ": " (column.meaning(lang)) } } }
    }
}

/// A table that scrolls sideways on a narrow screen, also by keyboard.
pub(crate) fn scrolling(lang: Language, table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.caption) {
            table {
                caption { (table.caption) }
                thead {
                    tr { @for column in &table.columns { th scope="col" title=(column.meaning(lang)) { (column.title(lang)) } } }
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

fn hosts(lang: Language, hosts: &[Host]) -> Table {
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
        caption: said!(lang, "html-hosts"),
        columns: vec![
            Column::new("column-host"),
            Column::new("column-system"),
            Column::new("column-cpu"),
            Column::new("column-cores"),
            Column::new("column-memory"),
            Column::new("column-tcp-default"),
            Column::new("column-linerate"),
        ],
        rows: hosts.iter().map(row).collect(),
    }
}

fn interfaces(lang: Language, hosts: &[Host]) -> Table {
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
        caption: said!(lang, "html-interfaces-that-were-up"),
        columns: vec![
            Column::new("column-interface"),
            Column::new("column-speed"),
            Column::new("column-mtu-b"),
            Column::new("column-driver"),
            Column::new("column-queue"),
            Column::new("column-cuts-or-joins-packets"),
        ],
        rows: rows.collect(),
    }
}
