//! A document as one self-contained HTML page: no other file, no network; without its script only conveniences are missing.

use crate::abridged;
use crate::charts::Chart;
use crate::document::{Block, Depth, Entry, Section, document};
use crate::figures::{MISSING, plain, words};
use crate::language::Language;
use crate::page_shell::{Carried, Data, PageShell, STYLE};
use crate::records::Records;
use crate::said;
use crate::sentences;
use crate::tables::Table;
use linerate_model::{Caveat, Record};
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
pub fn html<'a>(lang: Language, records: impl Into<Records<'a>>) -> String {
    linked_html(lang, records, &[])
}

/// The page with links at its top.
pub fn linked_html<'a>(lang: Language, records: impl Into<Records<'a>>, links: &[Link<'_>]) -> String {
    let Records(records) = records.into();
    let document = document(lang, records);
    let abridged = records.iter().any(abridged::is);
    let ids: Vec<String> = records.iter().map(|record| plain(&record.id.0)).collect();
    let name = ids.join(" ");
    let carried = if abridged {
        let data = Data::Csv(crate::csv(records));
        Carried { name: Some(&name), label: &said!(lang, "html-download-the-figures-csv"), data }
    } else {
        Carried {
            name: None,
            label: &said!(lang, "html-download-the-record-json"),
            data: Data::Json(crate::json(records)),
        }
    };
    let version = records.first().map(|record| plain(&record.version)).unwrap_or_default();
    PageShell {
        lang,
        title: &document.title,
        links,
        about: Some(html! { (document.about) }),
        main: html! { @for one in &document.sections { (section(lang, one)) } },
        footer: html! {
            (said!(lang, "html-written-by", version = version)) " "
            @if abridged {
                (said!(lang, "html-figures-embedded")) " " (said!(lang, "html-trials-left-out", id = name))
            } @else {
                (said!(lang, "html-record-embedded"))
            }
        },
        downloads: None,
        carried,
    }
    .page()
}

/// The style sheet of the page.
pub fn style_sheet() -> &'static str {
    STYLE
}

/// What is known of a record whose run goes on: the sections that every form has, without charts.
pub fn so_far(lang: Language, record: &Record) -> Markup {
    let mut document = document(lang, std::slice::from_ref(record));
    document.sections.retain(|section| section.depth == Depth::Summary);
    document.sections.iter_mut().for_each(|section| section.blocks.retain(|block| !matches!(block, Block::Chart(_))));
    html! { @for one in document.sections.iter().filter(|one| !one.blocks.is_empty()) { (section(lang, one)) } }
}

/// A section under its heading.
fn section(lang: Language, section: &Section) -> Markup {
    html! {
        section aria-labelledby=(section.id) {
            h2 id=(section.id) { (section.heading) }
            @for block in &section.blocks {
                @match block {
                    Block::Sentences(sentences) => @for sentence in sentences { p { (prose(sentence)) } },
                    Block::Entries(entries) => (list(entries)),
                    Block::Table(table) if table.is_of_words() => div.words { (scrolling(lang, table)) },
                    Block::Table(table) => (with_meanings(lang, table)),
                    Block::Chart(chart) => (figure(lang, chart)),
                    Block::Caveats(all) => (caveats(all)),
                }
            }
        }
    }
}

/// Entries: those with a figure beside it, the others below their names.
fn list(entries: &[Entry]) -> Markup {
    html! {
        @if entries.iter().any(|entry| entry.figure.is_some()) {
            ul.results {
                @for entry in entries {
                    li {
                        div {
                            span.name { (entry.name) }
                            @if let Some(figure) = &entry.figure { span.figure { (figure) } }
                        }
                        div { (told(entry)) }
                    }
                }
            }
        } @else {
            dl.further { @for entry in entries { dt { (entry.name) } dd { (told(entry)) } } }
        }
    }
}

/// The sentences of an entry, and what is folded below them.
fn told(entry: &Entry) -> Markup {
    html! {
        @if let Some(first) = entry.sentences.first() { p { (prose(first)) } }
        @if entry.sentences.len() > 1 { p.rest { (prose(&sentences::in_a_row(&entry.sentences[1..]))) } }
        @if let Some(folded) = &entry.folded {
            details {
                summary { (folded.heading) }
                dl.weighed { @for (name, said) in &folded.entries { dt { (name) } dd { (prose(said)) } } }
            }
        }
    }
}

fn caveats(all: &[(String, Caveat)]) -> Markup {
    html! {
        ul.caveats {
            @for (names, caveat) in all {
                li {
                    @if !names.is_empty() { b { (names) ": " } }
                    (prose(&sentences::sentence(&caveat.text)))
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

/// A chart with its title, its legend and its figures as a table.
pub(crate) fn figure(lang: Language, chart: &Chart) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (chart.title) }
                ul { @for (class, meaning) in &chart.legend { li { i class=(class) {} (meaning) } } }
            }
            div.drawing { (chart.drawn()) }
            details {
                summary { (said!(lang, "html-as-table")) }
                (scrolling(lang, &chart.table))
            }
        }
    }
}

/// A table, and what its columns count.
pub(crate) fn with_meanings(lang: Language, table: &Table) -> Markup {
    html! {
        (scrolling(lang, table))
        ul.meanings { @for column in &table.columns[1..] { li { b { (column.title(lang)) } ": " (column.meaning(lang)) } } }
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
