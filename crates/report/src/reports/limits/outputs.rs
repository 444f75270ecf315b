//! The limits in each form: terminal, JSON, CSV, Markdown, a page, a picture.

use super::{LimitCell, Limits, tables};
use crate::forms::csv::{field, line};
use crate::forms::markdown::{escaped, push_table};
use crate::forms::markup::{figure, prose, scrolling, with_meanings};
use crate::forms::page::{Page, Style};
use crate::forms::page_shell::{Carried, Data, PageShell};
use crate::forms::picture;
use crate::language::Language;
use crate::said;
use linerate_model::{Layer, Transport};
use maud::html;
use serde_json::{Value, json};

/// The limits for a terminal of this style; ends with a newline.
pub fn text(limits: &Limits, style: &Style) -> String {
    let lang = style.language;
    let mut page = Page::new(style);
    for table in limits.tables(lang) {
        page.heading(&table.caption);
        page.table(&table);
    }
    for answer in limits.answers(lang) {
        page.blank();
        page.paragraph("", &answer);
    }
    if limits.explain {
        limits.explain_on(lang, &mut page);
    }
    page.blank();
    for sentence in limits.counted(lang).iter().chain(&tables::closer(lang, limits)) {
        page.paragraph("  ", sentence);
    }
    page.finish(style.unicode)
}

/// Returns one object for one cell, else an array of such objects; docs/limits.md names the fields.
pub fn json(limits: &Limits) -> String {
    let value = match limits.cells.as_slice() {
        [cell] => object(limits, cell),
        _ => objects(limits),
    };
    format!("{value}\n")
}

fn objects(limits: &Limits) -> Value {
    limits.cells.iter().map(|cell| object(limits, cell)).collect()
}

fn object(limits: &Limits, cell: &LimitCell) -> Value {
    fields(limits, cell).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns all fields of a cell; null if a field does not apply.
fn fields(limits: &Limits, cell: &LimitCell) -> Vec<(&'static str, Value)> {
    let stack = &cell.stack;
    let carried = &cell.carried;
    let rate = |layer| carried.rate(layer).get();
    let bytes = |layer| carried.bytes.at(layer);
    let tcp = cell.transport == Transport::Tcp;
    let cells_per_s = carried.cells().map(|cells| carried.messages_per_s() * cells as f64);
    let mut fields = vec![
        ("medium", json!(stack.medium)),
        ("over", json!(stack.over)),
        ("ip", json!(stack.ip)),
        ("outer_ip", json!(stack.outer_ip)),
        ("mtu", json!(stack.mtu.unwrap_or(stack.medium.mtu()))),
        ("inner_mtu", json!(carried.inner_mtu)),
        ("transport", json!(cell.transport)),
        ("tcp_timestamps", json!(tcp.then_some(stack.tcp_timestamps))),
        ("half_duplex", json!(stack.half_duplex)),
        ("message_bytes", json!(cell.message_bytes)),
        ("line_bps", json!(stack.medium.line())),
        ("wire_bps", json!(rate(Layer::Wire))),
        ("layer2_fcs_bps", json!(rate(Layer::Layer2Fcs))),
        ("layer2_bps", json!(rate(Layer::Layer2))),
        ("ip_bps", json!(rate(Layer::Ip))),
        ("payload_bps", json!(rate(Layer::Payload))),
        ("payload_share", json!(carried.share_of_line())),
        ("messages_per_s", json!(carried.messages_per_s())),
        ("packets_per_s", json!(carried.packets_per_s())),
        ("cells_per_s", json!(cells_per_s)),
        ("packets", json!(carried.packet_count())),
        ("cells", json!(carried.cells())),
        ("payload_bytes", json!(bytes(Layer::Payload))),
        ("ip_bytes", json!(bytes(Layer::Ip))),
        ("layer2_bytes", json!(bytes(Layer::Layer2))),
        ("layer2_fcs_bytes", json!(bytes(Layer::Layer2Fcs))),
        ("wire_bytes", json!(bytes(Layer::Wire))),
    ];
    if let Some(claim) = limits.claim {
        fields.push(("claim_bps", json!(claim)));
        fields.push(("claim_possible_at", json!(carried.possible_at(claim))));
    }
    if limits.explain {
        fields.push(("explained", json!(carried.packets)));
        fields.push(("acknowledgement", json!(carried.acknowledgement)));
    }
    fields
}

/// Comma-separated values (RFC 4180) with a header line: the fields of the JSON form, without the bytes of `--explain`.
pub fn csv(limits: &Limits) -> String {
    let bare = Limits { explain: false, ..limits.clone() };
    let rows: Vec<_> = bare.cells.iter().map(|cell| fields(&bare, cell)).collect();
    let mut text = String::new();
    if let Some(first) = rows.first() {
        line(&mut text, first.iter().map(|(name, _)| (*name).to_owned()));
    }
    for row in &rows {
        line(&mut text, row.iter().map(|(_, value)| field(&flat(value))));
    }
    text
}

/// A list as its elements with spaces between: a field that needs no quotes.
fn flat(value: &Value) -> Value {
    match value {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ").into(),
        other => other.clone(),
    }
}

/// Tables and sentences in GitHub's Markdown.
pub fn markdown(lang: Language, limits: &Limits) -> String {
    let mut text = format!("# linerate: {}\n", said!(lang, "limits-title", "What media can carry"));
    let list = |text: &mut String, sentences: &[String]| {
        if !sentences.is_empty() {
            text.push('\n');
        }
        for sentence in sentences {
            text.push_str(&format!("- {}\n", escaped(sentence)));
        }
    };
    for table in limits.tables(lang) {
        push_table(lang, &mut text, &table);
    }
    list(&mut text, &limits.answers(lang));
    for (table, said) in limits.explanations(lang) {
        push_table(lang, &mut text, &table);
        list(&mut text, &said);
    }
    text.push_str(&format!("\n## {}\n", said!(lang, "limits-section-method", "How it is counted")));
    list(&mut text, &limits.counted(lang));
    text
}

/// Returns a page that needs no other file.
pub fn html(lang: Language, limits: &Limits) -> String {
    let data = json!({ "id": "limits", "limits": objects(limits) }).to_string();
    let main = html! {
        @if limits.claim.is_some() {
            section aria-labelledby="claim" {
                h2 #claim { (said!(lang, "limits-section-claim", "Claim")) }
                @for answer in limits.answers(lang) { p { (prose(lang, &answer)) } }
            }
        }
        section aria-labelledby="charts" {
            h2 #charts { (said!(lang, "limits-section-chart", "Chart")) }
            (figure(lang, &limits.chart(lang)))
        }
        section aria-labelledby="figures" {
            h2 #figures { (said!(lang, "section-figures", "Figures")) }
            @for table in limits.tables(lang) {
                // The overview's heads say what they are.
                @if limits.is_overview() { (scrolling(lang, &table)) } @else { (with_meanings(lang, &table)) }
            }
        }
        @if limits.explain {
            section aria-labelledby="bytes" {
                h2 #bytes { (said!(lang, "limits-section-bytes", "Each byte")) }
                @for (table, said) in limits.explanations(lang) {
                    div.words { (scrolling(lang, &table)) }
                    @for sentence in said { p { (prose(lang, &sentence)) } }
                }
            }
        }
        section aria-labelledby="method" {
            h2 #method { (said!(lang, "limits-section-method", "How it is counted")) }
            @for sentence in limits.counted(lang) { p { (prose(lang, &sentence)) } }
        }
    };
    PageShell {
        lang,
        title: &said!(lang, "limits-title", "What media can carry"),
        links: &[],
        about: limits.counted(lang).first().map(|sentence| html! { (sentence) }),
        main,
        footer: html! { (said!(lang, "html-figures-embedded", "The figures are embedded in this file; nothing is fetched from elsewhere.")) },
        downloads: None,
        carried: Carried { name: None, label: &said!(lang, "limits-download", "Download the figures (JSON)"), data: Data::Json(data) },
    }
    .page()
}

/// The chart as a picture.
pub fn svg(lang: Language, limits: &Limits) -> String {
    picture::svg(&limits.chart(lang))
}
