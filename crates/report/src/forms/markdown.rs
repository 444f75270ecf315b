//! A document as Markdown, for tickets and repositories: all of it but what only a chart can show.

use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::document::document;
use crate::figures::{MISSING, plain};
use crate::language::Language;
use crate::records::Records;
use crate::wording;

/// The records in GitHub's Markdown.
pub fn markdown<'a>(lang: Language, records: impl Into<Records<'a>>) -> String {
    let document = document(lang, records.into().0);
    let mut text = format!("# linerate: {}\n\n{}\n", escaped(&document.title), escaped(&document.about));
    document.sections.iter().for_each(|section| push_section(lang, &mut text, section));
    text
}

fn push_section(lang: Language, text: &mut String, section: &Section) {
    let is_told = |block: &&Block| !matches!(block, Block::Chart(chart) if chart.in_a_line().is_none());
    let blocks: Vec<&Block> = section.blocks.iter().filter(is_told).collect();
    if blocks.is_empty() {
        return;
    }
    push_heading(text, &escaped(&section.heading));
    for (index, block) in blocks.into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        match block {
            Block::Sentences(sentences) => sentences.iter().for_each(|sentence| push_item(text, "", sentence)),
            Block::Entries(entries) => {
                entries.iter().for_each(|entry| push_item(text, &entry.name, &wording::in_a_row(&entry.sentences)))
            }
            Block::Table(table) => {
                text.push_str(&format!("### {}\n\n", escaped(&table.caption)));
                push_rows(lang, text, table);
            }
            Block::Caveats(caveats) => {
                caveats
                    .iter()
                    .for_each(|(names, caveat)| push_item(text, names, &wording::message(lang, &caveat.text)));
            }
            Block::Chart(chart) => {
                chart.in_a_line().iter().for_each(|line| push_item(text, &chart.title, line));
            }
        }
    }
}

/// Appends an item of a list, after its name if it has one.
fn push_item(text: &mut String, name: &str, said: &str) {
    let name = if name.is_empty() { String::new() } else { format!("**{}**: ", escaped(name)) };
    text.push_str(&format!("- {name}{}\n", escaped(said)));
}

pub fn push_heading(text: &mut String, heading: &str) {
    text.push_str(&format!("\n## {heading}\n\n"));
}

pub fn push_table(lang: Language, text: &mut String, table: &Table) {
    push_heading(text, &escaped(&table.caption));
    push_rows(lang, text, table);
}

fn push_rows(lang: Language, text: &mut String, table: &Table) {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&row(table.columns.iter().map(|column| escaped(&column.title(lang))).collect()));
    let rule = |index| if index == 0 { ":--".to_owned() } else { "--:".to_owned() };
    text.push_str(&row((0..table.columns.len()).map(rule).collect()));
    for cells in &table.rows {
        text.push_str(&row(cells.iter().map(|cell| escaped(cell.as_deref().unwrap_or(MISSING))).collect()));
    }
}

/// `text` as itself: on one line, and without Markdown's or HTML's marks.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}
