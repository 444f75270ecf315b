//! A record in the terminal: a table, then sentences, verdicts and caveats.

use crate::device;
use crate::figures::{self, MISSING, moment, plain};
use crate::ladder;
use crate::sentences;
use crate::tables::{self, Column, Table};
use linerate_model::{Ladder, Record};

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; lines are no longer, where a single word is not.
    pub width: usize,
    /// Use ANSI colours.
    pub colour: bool,
    /// Use characters beyond ASCII.
    pub unicode: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, colour: false, unicode: true }
    }
}

/// Space between columns.
const GAP: usize = 2;
/// A piece of a bar, and how many there are in the longest.
const BLOCK: char = '\u{2588}';
const BLOCKS: usize = 12;
/// A narrower terminal gets lines of this length all the same.
const NARROWEST: usize = 40;

/// The record for a terminal of this style; ends with a newline.
pub fn text(record: &Record, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(&sentences::parties(record));
    page.paragraph("", &format!("{}, record {}", moment(record.started_unix_ns), plain(&record.id.0)));

    if let Some(ladder) = &record.ladder {
        page.ladder(ladder);
    }
    for table in tables::results(record) {
        page.blank();
        page.table(&table);
    }
    for table in record.results.iter().filter_map(tables::shares).chain(device::tables(record)) {
        page.blank();
        page.heading(&table.caption);
        page.table(&table);
    }
    if record.results.is_empty() && record.outcome.is_none() {
        page.blank();
        page.paragraph("", "Nothing was measured.");
    }
    if !record.results.is_empty() {
        page.blank();
        page.heading("What the figures say");
    }
    for result in &record.results {
        page.entry(&plain(&result.name), &sentences::main(record, result).join(" "));
    }
    page.verdicts(record);
    page.caveats(record);
    page.finish(style.unicode)
}

/// Text under construction.
pub(crate) struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    /// An empty page for a terminal of this style.
    pub(crate) fn new(style: &Style) -> Self {
        Self { text: String::new(), width: style.width.max(NARROWEST), colour: style.colour }
    }

    /// All that was written, in characters that the terminal has.
    pub(crate) fn finish(mut self, unicode: bool) -> String {
        if !unicode {
            self.text = self.text.replace(MISSING, "-").replace('\u{2026}', "~").replace(BLOCK, "#");
            self.text = self.text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
        }
        self.text
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// `text` in an ANSI style, where colours are wanted.
    fn styled(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        for line in wrapped(text, self.width) {
            let line = self.styled("1", &line);
            self.text.push_str(&line);
            self.blank();
        }
    }

    /// Text behind a mark, wrapped under itself.
    pub(crate) fn paragraph(&mut self, mark: &str, text: &str) {
        let indent = mark.chars().count();
        for (index, line) in wrapped(text, self.width - indent).iter().enumerate() {
            let before = if index == 0 { mark.to_owned() } else { " ".repeat(indent) };
            self.text.push_str(format!("{before}{line}").trim_end());
            self.blank();
        }
    }

    /// A name, and what is said of it below.
    fn entry(&mut self, name: &str, text: &str) {
        for line in wrapped(name, self.width - GAP) {
            let line = format!("  {}", self.styled("36", &line));
            self.text.push_str(&line);
            self.blank();
        }
        self.paragraph("    ", text);
    }

    /// The ladder's table with a bar beside each payload, and what it says.
    fn ladder(&mut self, ladder: &Ladder) {
        let mut table = ladder::table(ladder);
        self.blank();
        self.heading(&table.caption);
        table.columns.insert(2, Column { title: "", meaning: "the payload as a bar", rank: 3 });
        for (row, length) in table.rows.iter_mut().zip(ladder::lengths(ladder)) {
            let bar = BLOCK.to_string().repeat((length * BLOCKS as f64).round() as usize);
            row.insert(2, Some(format!("{bar:<BLOCKS$}")));
        }
        self.table(&table);
        self.blank();
        for sentence in ladder::sentences(ladder) {
            self.paragraph("  ", &sentence);
        }
    }

    fn verdicts(&mut self, record: &Record) {
        let verdicts = sentences::verdicts(record);
        if verdicts.is_empty() {
            return;
        }
        self.blank();
        self.heading("What limited the results");
        for (name, said) in verdicts {
            self.entry(&name, &said);
        }
    }

    fn caveats(&mut self, record: &Record) {
        let caveats = sentences::caveats(record);
        if caveats.is_empty() {
            return;
        }
        self.blank();
        self.heading("Caveats");
        for (names, caveat) in caveats {
            let of = if names.is_empty() { String::new() } else { format!("{}: ", sentences::listed(&names)) };
            let start = self.text.len();
            self.paragraph("  ! ", &format!("{of}{}", sentences::sentence(&caveat.text)));
            if self.colour {
                let mark = self.styled("33", "!");
                self.text.replace_range(start + 2..start + 3, &mark);
            }
        }
    }

    /// A table that fits: columns of the highest rank are left out first, then names are cut.
    fn table(&mut self, table: &Table) {
        let cell = |row: &Vec<Option<String>>, column: usize| row[column].clone().unwrap_or_else(|| MISSING.to_owned());
        let mut widths: Vec<usize> = (0..table.columns.len())
            .map(|column| {
                let cells = table.rows.iter().map(|row| cell(row, column).chars().count());
                cells.chain([table.columns[column].title.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let mut kept: Vec<usize> = (0..table.columns.len()).collect();
        let total = |kept: &[usize], widths: &[usize]| {
            kept.iter().map(|column| widths[*column] + GAP).sum::<usize>().saturating_sub(GAP)
        };
        while total(&kept, &widths) > self.width {
            let last = kept.iter().copied().max_by_key(|column| (table.columns[*column].rank, *column));
            match last.filter(|column| table.columns[*column].rank > 0) {
                Some(column) => kept.retain(|other| *other != column),
                None => break,
            }
        }
        let over = total(&kept, &widths).saturating_sub(self.width);
        widths[0] = widths[0].saturating_sub(over).max(8);

        let aligned = |cells: Vec<String>| {
            let mut line = String::new();
            for (column, text) in kept.iter().zip(cells) {
                let width = widths[*column];
                if *column == 0 {
                    line.push_str(&format!("{:<width$}", cut(&text, width)));
                } else {
                    line.push_str(&format!("{:GAP$}{text:>width$}", ""));
                }
            }
            line.trim_end().to_owned()
        };
        let head = aligned(kept.iter().map(|column| table.columns[*column].title.to_owned()).collect());
        let head = self.styled("2", &head);
        self.text.push_str(&head);
        self.blank();
        for row in &table.rows {
            let line = aligned(kept.iter().map(|column| cell(row, *column)).collect());
            self.text.push_str(&line);
            self.blank();
        }
    }
}

/// `text` in at most `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// `text` in lines of at most `width` characters, broken between words, but not between a number and its unit; a longer
/// word is broken in itself.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in figures::words(text) {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.last_mut().expect("there is a line").extend(&word);
            lines.push(String::new());
            word = rest;
        }
        let line = lines.last_mut().expect("there is a line");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.extend(&word);
        used += word.len();
    }
    lines
}
