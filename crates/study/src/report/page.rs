//! A study as one self-contained HTML page.

use super::pivot::Pivot;
use super::{charts, outputs, tables};
use crate::finding::{Evidence, Finding};
use crate::findings::data::Data;
use crate::findings::{self};
use crate::study::StudyReport;
use linerate_report::parts::markup::{figure, prose, scrolling};
use linerate_report::parts::wording::sentence;
use linerate_report::parts::{Carried, Data as Carry, PageShell};
use linerate_report::{Language, plain, said};
use maud::{Markup, html};

/// Returns the page, with tables by each factor or by a pivot.
pub fn html(lang: Language, report: &StudyReport, pivot: Option<&Pivot>) -> String {
    let study = &report.study.in_language(lang);
    let data = Data::of(lang, study);
    let findings = findings::in_the_language_of(&data, report);
    let charts = charts::all(lang, &data, pivot);
    let pivots = tables::pivots(lang, &data, pivot);
    let (first, further) = outputs::on_first_page(&findings);
    let answers = outputs::answers(lang, report, study, &findings);
    let costs = tables::costs(lang, &data);
    let asked = outputs::question(lang, study, &findings);
    let summary = html! {
        ul.results aria-label=(said!(lang, "study-section-summary", "Summary")) {
            @for said in outputs::summary(lang, &data) {
                li {
                    div { span.name { (said.name) } span.figure { (said.figure) } }
                    div { p { (prose(lang, &said.text)) } }
                }
            }
        }
    };
    let main = html! {
        @if let Some((question, answer)) = &asked {
            p.question { (prose(lang, question)) }
            p.answer { (prose(lang, answer)) }
        } @else {
            (summary)
        }
        // A picture before the text.
        @if let Some(first) = charts.first() {
            section aria-labelledby="charts" {
                h2 #charts { (said!(lang, "section-charts", "Charts")) }
                (figure(lang, first))
            }
        }
        @if asked.is_some() { (summary) }
        @if !findings.is_empty() {
            section aria-labelledby="findings" {
                h2 #findings { (said!(lang, "study-section-findings", "What the numbers say")) }
                ul.findings { @for finding in first { (said(lang, finding)) } }
                @if !further.is_empty() {
                    details {
                        summary { (outputs::further_heading(lang, further)) }
                        ul.findings { @for finding in further { (said(lang, finding)) } }
                    }
                }
            }
        }
        @if !answers.is_empty() {
            section aria-labelledby="conclusions" {
                h2 #conclusions { (outputs::conclusions_heading(lang)) }
                ul.findings {
                    @for answer in answers.iter() {
                        li {
                            span.kind { (lang.text(answer.verdict.text())) }
                            p { (prose(lang, &plain(&sentence(&answer.text)))) }
                            p { (prose(lang, &plain(&answer.reason))) }
                        }
                    }
                }
            }
        }
        @if charts.len() > 1 {
            section aria-labelledby="further-charts" {
                h2 #further-charts { (said!(lang, "study-section-further-charts", "Further charts")) }
                @for chart in &charts[1..] { (figure(lang, chart)) }
            }
        }
        section aria-labelledby="tables" {
            h2 #tables { (said!(lang, "study-section-tables", "Tables")) }
            @for table in &costs {
                details open { summary { (table.caption) } (scrolling(lang, table)) }
            }
            @for (index, table) in pivots.iter().enumerate() {
                details open[index == 0] {
                    summary { @if study.measures.len() == 1 { (tables::by(lang, table)) } @else { (table.caption) } }
                    (scrolling(lang, table))
                }
            }
            @let all = tables::everything(lang, &data);
            details open[pivots.is_empty()] {
                summary { (all.caption) }
                (scrolling(lang, &all))
            }
        }
        @if !study.caveats.is_empty() {
            section aria-labelledby="caveats" {
                h2 #caveats { (said!(lang, "section-caveats", "Caveats")) }
                ul.caveats { @for caveat in &study.caveats { li { (prose(lang, &sentence(caveat))) } } }
            }
        }
        section aria-labelledby="method" {
            h2 #method { (said!(lang, "section-method", "How it was measured")) }
            @for sentence in outputs::method(lang, &data) { p { (prose(lang, &sentence)) } }
            @if let Some(levels) = tables::levels(lang, &data) { div.words { (scrolling(lang, &levels)) } }
        }
    };
    let csv = data_link(&outputs::csv(report));
    PageShell {
        lang,
        title: &plain(&study.title),
        links: &[],
        about: Some(prose(lang, &sentence(&study.about))),
        main,
        footer: html! { (said!(lang, "study-footer", "Written by linerate. The data are embedded in this file; nothing is fetched from elsewhere.")) },
        downloads: Some(
            html! { a download=(format!("{}.csv", study.name)) href=(csv) { (said!(lang, "study-download-csv", "Download the data (CSV)")) } },
        ),
        carried: Carried {
            name: Some(&study.name),
            label: &said!(lang, "study-download-json", "Download the study (JSON)"),
            data: Carry::Json(outputs::json(report)),
        },
    }
    .page()
}

/// Draws a finding with its evidence.
fn said(lang: Language, finding: &Finding) -> Markup {
    html! {
        li {
            span.kind { (lang.text(finding.kind.text())) }
            p { (prose(lang, &plain(&finding.text))) }
            details {
                summary { (said!(lang, "study-evidence", "Evidence")) }
                ul {
                    @for evidence in &finding.evidence {
                        li {
                            (prose(lang, &plain(evidence.text())))
                            @if let Evidence::Test { test, .. } = evidence { " " span.test { "(" (plain(test)) ")" } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a link that holds `text` (RFC 2397).
fn data_link(text: &str) -> String {
    let mut link = "data:text/csv;charset=utf-8,".to_owned();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b',' => link.push(char::from(byte)),
            other => link.push_str(&format!("%{other:02X}")),
        }
    }
    link
}
