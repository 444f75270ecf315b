//! Texts, charts and tables as HTML.

use crate::blocks::chart::Chart;
use crate::blocks::columns;
use crate::blocks::table::{Column, Table};
use crate::figures::{MISSING, words};
use crate::language::Language;
use crate::said;
use maud::{Markup, html};

/// Renders sentences so that no line breaks between a number and its unit or after the dashes of an option. Text in
/// another language than the page is marked as such.
pub fn prose(lang: Language, text: &str) -> Markup {
    html! {
        @for (tag, part) in lang.parts(text.trim()) {
            @if part.starts_with(' ') { " " }
            @match tag {
                Some(tag) => span lang=(tag) { (unbroken(part)) },
                None => (unbroken(part)),
            }
            @if part.ends_with(' ') { " " }
        }
    }
}

fn unbroken(text: &str) -> Markup {
    html! {
        @for (index, word) in words(text).iter().enumerate() {
            @if index > 0 { " " }
            @let word = word.replace(' ', "\u{a0}");
            @if word.contains("--") { span.option { (word) } } @else { (word) }
        }
    }
}

/// A chart with its title, its legend and its figures as a table.
pub fn figure(lang: Language, chart: &Chart) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (chart.title) }
                ul { @for (class, meaning) in &chart.legend { li { i class=(class) {} (meaning) } } }
            }
            div.drawing.wide { (chart.drawn()) }
            div.drawing.narrow { (chart.drawn_narrow()) }
            details {
                summary { (said!(lang, "html-as-table", "The same as a table")) }
                (scrolling(lang, &chart.table))
            }
        }
    }
}

/// A table, and what its columns count.
pub(crate) fn with_meanings(lang: Language, table: &Table) -> Markup {
    html! {
        (scrolling(lang, table))
        details.columns {
            summary { (said!(lang, "html-columns", "What the columns mean")) }
            ul.meanings { @for column in &table.columns[1..] { li { b { (column.title(lang)) } ": " (column.meaning(lang)) } } }
        }
    }
}

/// Renders a cell: a row's name, a figure, perhaps with a bar, or what limited a result.
fn cell(lang: Language, column: &Column, (row, at): (usize, usize), text: &Option<String>) -> Markup {
    let bar = column.bars.as_ref().and_then(|bars| bars.get(row)).filter(|length| length.is_finite());
    html! {
        @match (text, bar) {
            (Some(text), _) if at == 0 => th scope="row" { (text) },
            (Some(text), _) if column.is(&columns::LIMIT) => td { span.chip { (text) } },
            (Some(text), Some(length)) => td.bar style=(format!("--part:{:.1}%", length.clamp(0.0, 1.0) * 100.0)) { (text) },
            (Some(text), None) if column.words => td { (prose(lang, text)) },
            (Some(text), None) => td { (text) },
            (None, _) => td.none { (MISSING) },
        }
    }
}

/// A table that scrolls sideways on a narrow screen, also by keyboard.
pub fn scrolling(lang: Language, table: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.caption) {
            table {
                caption { (table.caption) }
                thead {
                    tr { @for column in &table.columns { th scope="col" title=(column.meaning(lang)) { (column.title(lang)) } } }
                }
                tbody {
                    @for (row, cells) in table.rows.iter().enumerate() {
                        tr { @for (at, text) in cells.iter().enumerate() { (cell(lang, &table.columns[at], (row, at), text)) } }
                    }
                }
            }
        }
    }
}
