//! A record as Markdown, for tickets and repositories.

use crate::copy;
use crate::device;
use crate::figures::{MISSING, moment, plain};
use crate::ladder;
use crate::language::Language;
use crate::nfs;
use crate::said;
use crate::sentences;
use crate::tables::{self, Table};
use linerate_model::Record;

/// Title, tables, sentences, verdicts and caveats, in GitHub's Markdown.
pub fn markdown(lang: Language, record: &Record) -> String {
    let mut text = format!("# linerate: {}\n\n", escaped(&sentences::parties(lang, record)));
    let about = said!(lang, "text-record", moment = moment(lang, record.started_unix_ns), id = record.id);
    text.push_str(&format!("{}\n", escaped(&about)));
    if let Some(found) = &record.ladder {
        push_table(lang, &mut text, &ladder::table(lang, found));
        text.push('\n');
        for sentence in ladder::sentences(lang, found) {
            text.push_str(&format!("- {}\n", escaped(&sentence)));
        }
    }
    for table in tables::results(lang, record) {
        push_table(lang, &mut text, &table);
    }
    for sentence in nfs::sentences(lang, record).into_iter().chain(copy::sentences(lang, record)) {
        text.push_str(&format!("\n{}\n", escaped(&sentence)));
    }
    for table in nfs::told(record)
        .filter_map(|result| tables::shares(lang, result))
        .chain(nfs::tables(lang, record))
        .chain(device::tables(lang, record))
        .chain(copy::tables(lang, record))
    {
        push_table(lang, &mut text, &table);
    }
    if record.results.is_empty() && record.outcome.is_none() {
        text.push_str(&format!("\n{}\n", said!(lang, "html-nothing-was-measured")));
    }
    if nfs::told(record).next().is_some() {
        push_heading(&mut text, &said!(lang, "text-what-the-figures-say"));
    }
    for result in nfs::told(record) {
        let said =
            sentences::in_a_row(&[sentences::main(lang, record, result), sentences::further(lang, result)].concat());
        text.push_str(&format!("- **{}**: {}\n", escaped(&result.name), escaped(&said)));
    }
    let verdicts = sentences::verdicts(lang, record);
    if !verdicts.is_empty() {
        push_heading(&mut text, &said!(lang, "html-what-limited-the-results"));
    }
    for (name, said) in verdicts {
        text.push_str(&format!("- **{}**: {}\n", escaped(&name), escaped(&said)));
    }
    let caveats = sentences::caveats(record);
    if !caveats.is_empty() {
        push_heading(&mut text, &said!(lang, "html-caveats"));
    }
    for (names, caveat) in caveats {
        let of = if names.is_empty() {
            String::new()
        } else {
            format!("**{}**: ", escaped(&sentences::listed(lang, &names)))
        };
        text.push_str(&format!("- {of}{}\n", escaped(&sentences::sentence(&caveat.text))));
    }
    push_heading(&mut text, &said!(lang, "html-how-it-was-measured"));
    text.push_str(&escaped(&sentences::in_a_row(&sentences::method(lang, record))));
    text.push('\n');
    text
}

pub(crate) fn push_heading(text: &mut String, heading: &str) {
    text.push_str(&format!("\n## {heading}\n\n"));
}

pub(crate) fn push_table(lang: Language, text: &mut String, table: &Table) {
    push_heading(text, &escaped(&table.caption));
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&row(table.columns.iter().map(|column| escaped(&column.title(lang))).collect()));
    let rule = |index| if index == 0 { ":--".to_owned() } else { "--:".to_owned() };
    text.push_str(&row((0..table.columns.len()).map(rule).collect()));
    for cells in &table.rows {
        text.push_str(&row(cells.iter().map(|cell| escaped(cell.as_deref().unwrap_or(MISSING))).collect()));
    }
}

/// `text` as itself: on one line, and without Markdown's or HTML's marks.
pub(crate) fn escaped(text: &str) -> String {
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
