//! A record as Markdown, for tickets and repositories.

use crate::device;
use crate::figures::{MISSING, moment, plain};
use crate::ladder;
use crate::sentences;
use crate::tables::{self, Table};
use linerate_model::Record;

/// Title, tables, sentences, verdicts and caveats, in GitHub's Markdown.
pub fn markdown(record: &Record) -> String {
    let mut text = format!("# linerate: {}\n\n", escaped(&sentences::parties(record)));
    text.push_str(&format!("{}, record {}\n", moment(record.started_unix_ns), escaped(&record.id.0)));
    if let Some(found) = &record.ladder {
        push_table(&mut text, &ladder::table(found));
        text.push('\n');
        for sentence in ladder::sentences(found) {
            text.push_str(&format!("- {}\n", escaped(&sentence)));
        }
    }
    for table in tables::results(record) {
        push_table(&mut text, &table);
    }
    for table in record.results.iter().filter_map(tables::shares).chain(device::tables(record)) {
        push_table(&mut text, &table);
    }
    if record.results.is_empty() && record.outcome.is_none() {
        text.push_str("\nNothing was measured.\n");
    }
    if !record.results.is_empty() {
        text.push_str("\n## What the figures say\n\n");
    }
    for result in &record.results {
        let said = [sentences::main(record, result), sentences::further(result)].concat().join(" ");
        text.push_str(&format!("- **{}**: {}\n", escaped(&result.name), escaped(&said)));
    }
    let verdicts = sentences::verdicts(record);
    if !verdicts.is_empty() {
        text.push_str("\n## What limited the results\n\n");
    }
    for (name, said) in verdicts {
        text.push_str(&format!("- **{}**: {}\n", escaped(&name), escaped(&said)));
    }
    let caveats = sentences::caveats(record);
    if !caveats.is_empty() {
        text.push_str("\n## Caveats\n\n");
    }
    for (names, caveat) in caveats {
        let of =
            if names.is_empty() { String::new() } else { format!("**{}**: ", escaped(&sentences::listed(&names))) };
        text.push_str(&format!("- {of}{}\n", escaped(&sentences::sentence(&caveat.text))));
    }
    text.push_str("\n## How it was measured\n\n");
    text.push_str(&escaped(&sentences::method(record).join(" ")));
    text.push('\n');
    text
}

fn push_table(text: &mut String, table: &Table) {
    text.push_str(&format!("\n## {}\n\n", escaped(&table.caption)));
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&row(table.columns.iter().map(|column| column.title.to_owned()).collect()));
    let rule = |index| if index == 0 { ":--".to_owned() } else { "--:".to_owned() };
    text.push_str(&row((0..table.columns.len()).map(rule).collect()));
    for cells in &table.rows {
        text.push_str(&row(cells.iter().map(|cell| escaped(cell.as_deref().unwrap_or(MISSING))).collect()));
    }
}

/// `text` as itself: on one line, and without Markdown's or HTML's marks.
fn escaped(text: &str) -> String {
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
