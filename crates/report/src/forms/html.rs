//! A document as one self-contained HTML page: no other file, no network; without its script only conveniences are missing.

use crate::blocks::section::{Block, Depth, Entry, Section};
use crate::document::document;
use crate::figures::plain;
use crate::forms::markup::{figure, prose, scrolling, with_meanings};
use crate::forms::page_shell::{Carried, Data, Link, PageShell, STYLE};
use crate::language::Language;
use crate::records::Records;
use crate::sections::abridged;
use crate::{said, wording};
use linerate_model::{Caveat, Record, shell_word};
use maud::{Markup, html};

/// The page.
pub fn html<'a>(lang: Language, records: impl Into<Records<'a>>) -> String {
    linked_html(lang, records, &[], None)
}

/// The page with links at its top, and the command that measures the same again.
pub fn linked_html<'a>(
    lang: Language,
    records: impl Into<Records<'a>>,
    links: &[Link<'_>],
    command: Option<&str>,
) -> String {
    let Records(records) = records.into();
    let document = document(lang, records);
    let abridged = records.iter().any(abridged::is);
    let ids: Vec<String> = records.iter().map(|record| plain(&record.id.0)).collect();
    let name = ids.join(" ");
    let carried = if abridged {
        let data = Data::Csv(crate::forms::csv::csv(records));
        Carried {
            name: Some(&name),
            label: &said!(lang, "html-download-the-figures-csv", "Download the figures (CSV)"),
            data,
        }
    } else {
        Carried {
            name: None,
            label: &said!(lang, "html-download-the-record-json", "Download the record (JSON)"),
            data: Data::Json(crate::forms::json::json(records)),
        }
    };
    let version = records.first().map(|record| plain(&record.version)).unwrap_or_default();
    PageShell {
        lang,
        title: &document.title,
        links,
        about: Some(html! { (document.about) }),
        main: html! {
            @if let Some(command) = command {
                p.command data-copy=(said!(lang, "html-copy", "Copy")) data-copied=(said!(lang, "html-copied", "Copied")) {
                    span { (said!(lang, "html-repeat", "To repeat it:")) } " "
                    // Commands are English in every language.
                    code lang=[lang.foreign_tag()] {
                        @for (index, word) in command.split(' ').enumerate() {
                            @if index > 0 { " " }
                            // A line does not end behind the dashes of an option.
                            @if word.starts_with("--") { span.option { (word) } } @else { (word) }
                        }
                    }
                }
            }
            @for one in &document.sections { (section(lang, one)) }
        },
        footer: html! {
            (wording::in_a_row(&footer(lang, &version, &name, abridged)))
        },
        downloads: None,
        carried,
    }
    .page()
}

/// Returns the sentences at the end of the page.
fn footer(lang: Language, version: &str, name: &str, abridged: bool) -> Vec<String> {
    let mut sentences = vec![said!(lang, "html-written-by", "Written by linerate {version}.", version = version)];
    if abridged {
        sentences.push(said!(
            lang,
            "html-figures-embedded",
            "The figures are embedded in this file; nothing is fetched from elsewhere."
        ));
        sentences.push(said!(
            lang,
            "html-trials-left-out",
            "Its trials are not in this file: `linerate report {id} --format json` has them.",
            id = shell_word(name)
        ));
    } else {
        sentences.push(said!(
            lang,
            "html-record-embedded",
            "The record is embedded in this file; nothing is fetched from elsewhere."
        ));
    }
    sentences
}

/// The style sheet of the page.
pub fn style_sheet() -> &'static str {
    STYLE
}

/// Renders a record while its run goes on: the sections that every form has, without charts.
pub fn so_far(lang: Language, record: &Record) -> Markup {
    let mut document = document(lang, std::slice::from_ref(record));
    document.sections.retain(|section| section.depth != Depth::Full);
    document.sections.iter_mut().for_each(|section| section.blocks.retain(|block| !matches!(block, Block::Chart(_))));
    html! { @for one in document.sections.iter().filter(|one| !one.blocks.is_empty()) { (section(lang, one)) } }
}

/// Renders what limited the results of a record, with the evidence. Empty if the record has no results.
pub fn verdicts(lang: Language, record: &Record) -> Markup {
    let mut document = document(lang, std::slice::from_ref(record));
    document.sections.retain(|section| section.id == "verdicts");
    html! { @for one in &document.sections { (blocks(lang, one)) } }
}

/// A section under its heading, which alone is shown of a folded one until a reader asks for it.
fn section(lang: Language, section: &Section) -> Markup {
    html! {
        section aria-labelledby=(section.id) {
            @if section.is_folded {
                details.section {
                    summary { h2 id=(section.id) { (section.heading) } }
                    (blocks(lang, section))
                }
            } @else {
                h2 id=(section.id) { (section.heading) }
                @if section.id == "over-time" { (zoom_help(lang)) }
                (blocks(lang, section))
            }
        }
    }
}

/// Renders the help on zooming charts over time, which the page's script shows.
fn zoom_help(lang: Language) -> Markup {
    html! {
        p.zoom hidden { (said!(lang, "html-zoom", "Drag across a chart to zoom in: all charts of the result follow. Keys on a chart: + and - zoom, Shift with \
             arrows moves, 0 shows the whole time.")) " " button type="button" hidden { (said!(lang, "html-zoom-whole", "Show the whole time")) } }
    }
}

fn blocks(lang: Language, section: &Section) -> Markup {
    html! {
        @for block in &section.blocks {
            @match block {
                Block::Sentences(sentences) => @for sentence in sentences { p { (prose(lang, sentence)) } },
                Block::Entries(entries) => (list(lang, entries)),
                Block::Table(table) if table.is_of_words() => div.words { (scrolling(lang, table)) },
                Block::Table(table) => (with_meanings(lang, table)),
                Block::Chart(chart) => (figure(lang, chart)),
                Block::Caveats(all) => (caveats(lang, all)),
            }
        }
    }
}

/// Renders entries: those with a figure next to it, the others below their names.
fn list(lang: Language, entries: &[Entry]) -> Markup {
    html! {
        @if entries.iter().any(|entry| entry.figure.is_some()) {
            ul.results {
                @for entry in entries {
                    li {
                        div {
                            span.name { (entry.name) }
                            @if let Some(figure) = &entry.figure { span.figure { (figure) } }
                        }
                        div { (told(lang, entry)) }
                    }
                }
            }
        } @else {
            dl.further { @for entry in entries { dt { (entry.name) } dd { (told(lang, entry)) } } }
        }
    }
}

/// The sentences of an entry: its answer, and folded below it what explains it.
fn told(lang: Language, entry: &Entry) -> Markup {
    let (lead, rest) = entry.sentences.split_at(entry.lead.min(entry.sentences.len()));
    html! {
        @if let Some(first) = lead.first() { p { (prose(lang, first)) } }
        @if lead.len() > 1 { p.rest { (prose(lang, &wording::in_a_row(&lead[1..]))) } }
        @if !rest.is_empty() {
            details { summary { (said!(lang, "html-more", "More about this result")) } p.rest { (prose(lang, &wording::in_a_row(rest))) } }
        }
        @if let Some(folded) = &entry.folded {
            details {
                summary { (folded.heading) }
                dl.weighed { @for (name, said) in &folded.entries { dt { (name) } dd { (prose(lang, said)) } } }
            }
        }
    }
}

fn caveats(lang: Language, all: &[(String, Caveat)]) -> Markup {
    html! {
        ul.caveats {
            @for (names, caveat) in all {
                li {
                    @if !names.is_empty() { b { (names) ": " } }
                    (prose(lang, &wording::message(lang, &caveat.text)))
                }
            }
        }
    }
}
