//! A page of the terminal under construction.

use crate::blocks::section::{Block, Section};
use crate::blocks::table::{Column, Table};
use crate::figures::MISSING;
use crate::language::Language;
use crate::wording::sparkline::{ASCII_MARKS, MARKS};
use crate::wording::wrap::{spaces, wrapped};
use crate::wording::{self, doubts};
use linerate_model::Caveat;
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr as _;

/// Abilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; lines are no longer, where a single word is not.
    pub width: usize,
    /// Use ANSI colours.
    pub colour: bool,
    /// Use characters beyond ASCII.
    pub unicode: bool,
    /// The language of all that is not the record's own words.
    pub language: Language,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, colour: false, unicode: true, language: Language::English }
    }
}

/// Space between columns.
const GAP: usize = 2;

/// Least width of the column of names.
const SHORTEST_NAME: usize = 8;

/// Lines that a name takes in its column; a longer one has lines of its own.
const NAME_LINES: usize = 2;

/// Indent of the further lines of a name.
const INDENT: usize = 2;

/// A piece of a bar, and how many there are in the longest.
const BLOCK: char = '\u{2588}';

const BLOCKS: usize = 8;

/// A narrower terminal gets lines of this length all the same.
const NARROWEST: usize = 40;

/// Text under construction.
pub struct Page {
    text: String,
    pub(crate) width: usize,
    colour: bool,
    language: Language,
}

impl Page {
    /// An empty page for a terminal of this style.
    pub fn new(style: &Style) -> Self {
        Self { text: String::new(), width: style.width.max(NARROWEST), colour: style.colour, language: style.language }
    }

    /// Returns the text in characters that the terminal has.
    pub fn finish(mut self, unicode: bool) -> String {
        if !unicode {
            self.text = self.text.replace(MISSING, "-").replace('\u{2026}', "~").replace(BLOCK, "#");
            let ascii = |c: char| {
                let mark = MARKS.iter().position(|mark| *mark == c).map(|at| ASCII_MARKS[at]);
                mark.unwrap_or(if c.is_ascii() { c } else { '?' })
            };
            self.text = self.text.chars().map(ascii).collect();
        }
        self.text
    }

    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// `text` in an ANSI style, where colours are wanted.
    fn styled(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub fn heading(&mut self, text: &str) {
        for line in wrapped(text, self.width) {
            let line = self.styled("1", &line);
            self.text.push_str(&line);
            self.blank();
        }
    }

    /// A line as it is.
    pub(crate) fn raw(&mut self, line: &str) {
        self.text.push_str(line);
    }

    /// A line that fits.
    pub(crate) fn line(&mut self, line: &str) {
        self.raw(line.trim_end());
        self.blank();
    }

    /// A line that is read last.
    pub(crate) fn dim(&mut self, line: &str) {
        let line = self.styled("2", line);
        self.raw(&line);
        self.blank();
    }

    /// Appends text after a mark, wrapped under itself.
    pub fn paragraph(&mut self, mark: &str, text: &str) {
        let indent = mark.width();
        for (index, line) in wrapped(text, self.width - indent).iter().enumerate() {
            let before = if index == 0 { mark.to_owned() } else { " ".repeat(indent) };
            self.text.push_str(format!("{before}{line}").trim_end());
            self.blank();
        }
    }

    /// A name with sentences below it.
    pub fn entry(&mut self, name: &str, text: &str) {
        for line in wrapped(name, self.width - GAP) {
            let line = format!("  {}", self.styled("36", &line));
            self.text.push_str(&line);
            self.blank();
        }
        self.paragraph("    ", text);
    }

    /// A section under its heading; where a table comes first, its caption is heading enough. Of charts only those are shown that
    /// have a line of text.
    pub(crate) fn section(&mut self, section: &Section) {
        let is_told = |block: &&Block| !matches!(block, Block::Chart(chart) if chart.in_a_line().is_none());
        let blocks: Vec<&Block> = section.blocks.iter().filter(is_told).collect();
        if blocks.first().is_some_and(|block| !matches!(block, Block::Table(_))) {
            self.blank();
            self.heading(&section.heading);
        }
        for block in blocks {
            match block {
                Block::Sentences(sentences) => sentences.iter().for_each(|sentence| self.paragraph("  ", sentence)),
                Block::Entries(entries) => {
                    entries.iter().for_each(|entry| self.entry(&entry.name, &wording::in_a_row(&entry.sentences)));
                }
                Block::Table(table) => {
                    self.blank();
                    self.heading(&table.caption);
                    self.table(&with_bars(table));
                }
                Block::Caveats(caveats) => caveats.iter().for_each(|(names, caveat)| self.caveat(names, caveat)),
                Block::Chart(chart) => chart.in_a_line().iter().for_each(|line| self.paragraph("  ", line)),
            }
        }
    }

    /// A block of the answer; tables come after all others.
    pub(crate) fn answer(&mut self, block: &Block) {
        match block {
            Block::Sentences(sentences) => sentences.iter().for_each(|sentence| self.paragraph("", sentence)),
            Block::Entries(entries) => entries.iter().for_each(|entry| {
                let lead = wording::in_a_row(&entry.sentences[..entry.lead.min(entry.sentences.len())]);
                // A name is what tells several results apart.
                let figure = entry.figure.as_ref().filter(|figure| !has_figure(&lead, figure));
                let figure = figure.map_or_else(String::new, |figure| format!(" {figure}."));
                self.paragraph("", &format!("{}:{figure} {lead}", entry.name));
            }),
            Block::Caveats(caveats) => {
                let short = doubts::in_short(self.language, caveats.iter().map(|(_, caveat)| caveat));
                self.paragraph("! ", &short.join("; "));
            }
            Block::Chart(chart) => chart.in_a_line().iter().for_each(|line| self.paragraph("", line)),
            Block::Table(_) => {}
        }
    }

    /// Appends a caveat after a mark.
    fn caveat(&mut self, names: &str, caveat: &Caveat) {
        let of = if names.is_empty() { String::new() } else { format!("{names}: ") };
        let start = self.text.len();
        self.paragraph("  ! ", &format!("{of}{}", wording::message(self.language, &caveat.text)));
        if self.colour {
            let mark = self.styled("33", "!");
            self.text.replace_range(start + 2..start + 3, &mark);
        }
    }

    /// A table that fits: columns of the highest rank are left out first, then names are wrapped; what still has no room goes below, under
    /// the same names.
    pub fn table(&mut self, table: &Table) {
        let widths: Vec<usize> = (0..table.columns.len())
            .map(|column| {
                let cells = table.rows.iter().map(|row| shown(row, column).width());
                cells.chain([table.columns[column].title(self.language).width()]).max().unwrap_or(0)
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
        for (index, columns) in blocks(&kept, &widths, self.width).into_iter().enumerate() {
            if index > 0 {
                self.blank();
            }
            let over = total(&columns, &widths).saturating_sub(self.width);
            let name = widths[0].saturating_sub(over).max(SHORTEST_NAME);
            self.columns(table, &columns, &[&[name], &widths[1..]].concat());
        }
    }

    /// Appends columns of a table with these widths. Names that are wider than their column take a second line or, if that does not
    /// suffice, lines of their own above the figures.
    fn columns(&mut self, table: &Table, kept: &[usize], widths: &[usize]) {
        let name_width = widths[0];
        let figures = |name: &str, cells: &[String]| {
            let mut line = name.to_owned();
            line.extend(spaces(name_width, name));
            for (column, text) in kept[1..].iter().zip(cells) {
                line.extend(spaces(widths[*column] + GAP, text));
                line.push_str(text);
            }
            line.trim_end().to_owned()
        };
        let titles: Vec<String> = kept.iter().map(|column| table.columns[*column].title(self.language)).collect();
        let mut title = wrapped(&titles[0], name_width);
        let last = title.pop().unwrap_or_default();
        title.iter().for_each(|line| self.dim(line));
        self.dim(&figures(&last, &titles[1..]));

        let is_tall = table.rows.iter().any(|row| name_lines(&shown(row, kept[0]), name_width).len() > NAME_LINES);
        for row in &table.rows {
            let name = shown(row, kept[0]);
            let cells: Vec<String> = kept[1..].iter().map(|column| shown(row, *column)).collect();
            let mut lines = Vec::new();
            if is_tall {
                lines.extend(wrapped(&name, self.width));
                lines.push(figures("", &cells));
            } else {
                let mut names = name_lines(&name, name_width).into_iter();
                lines.push(figures(&names.next().unwrap_or_default(), &cells));
                lines.extend(names.map(|name| format!("{:INDENT$}{name}", "")));
            }
            for line in lines {
                self.text.push_str(&line);
                self.blank();
            }
        }
    }
}

/// Splits the name of a row into the lines of its column. The further ones are indented.
fn name_lines(name: &str, width: usize) -> Vec<String> {
    if name.width() <= width { vec![name.to_owned()] } else { wrapped(name, width.saturating_sub(INDENT).max(1)) }
}

/// Whether `text` has the number of `figure`, with its unit or, of a rate of events, with words for it.
fn has_figure(text: &str, figure: &str) -> bool {
    let figure = figure.trim_matches(['(', ')']);
    let figure = figure.strip_suffix(" /s").unwrap_or(figure);
    let is_digit = |c: char| c.is_ascii_digit();
    text.match_indices(figure).any(|(at, _)| {
        let before = &text[..at];
        let after = &text[at + figure.len()..];
        !before.trim_end_matches([',', '.']).ends_with(is_digit)
            && !after.trim_start_matches([',', '.']).starts_with(is_digit)
    })
}

/// The table with bars of characters in columns of their own.
pub(crate) fn with_bars(table: &Table) -> Cow<'_, Table> {
    let Some((at, lengths)) =
        table.columns.iter().enumerate().find_map(|(at, column)| Some((at + 1, column.bars.as_ref()?)))
    else {
        return Cow::Borrowed(table);
    };
    let mut wider = table.clone();
    wider.columns.insert(at, Column::named(String::new(), String::new()).ranked(3));
    for (row, length) in wider.rows.iter_mut().zip(lengths) {
        let bar = BLOCK.to_string().repeat((length * BLOCKS as f64).round() as usize);
        row.insert(at, Some(format!("{bar:<BLOCKS$}")));
    }
    Cow::Owned(wider)
}

/// Returns a cell, or the placeholder of a missing one.
fn shown(row: &[Option<String>], column: usize) -> String {
    row[column].clone().unwrap_or_else(|| MISSING.to_owned())
}

/// Splits columns into blocks that fit, each with the first column. It is one block if names need only be wrapped for it.
fn blocks(kept: &[usize], widths: &[usize], width: usize) -> Vec<Vec<usize>> {
    let [first, others @ ..] = kept else { return Vec::new() };
    let of = |columns: &[usize]| columns.iter().map(|column| widths[*column] + GAP).sum::<usize>();
    if widths[*first].min(SHORTEST_NAME) + of(others) <= width {
        return vec![kept.to_vec()];
    }
    let name = widths[*first].min(width / 2);
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for column in others {
        match blocks.last_mut() {
            Some(block) if name + of(&block[1..]) + of(&[*column]) <= width => block.push(*column),
            _ => blocks.push(vec![*first, *column]),
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, columns: usize, names: &[&str]) -> String {
        let column = |title: String| Column::named(title, String::new());
        let row = |name: &&str| {
            let figures = (0..columns).map(|_| Some("100.25 Mbit/s".to_owned()));
            std::iter::once(Some((*name).to_owned())).chain(figures).collect()
        };
        let table = Table {
            caption: String::new(),
            columns: std::iter::once(column("all other factors".to_owned()))
                .chain((0..columns).map(|at| column(format!("host {at}"))))
                .collect(),
            rows: names.iter().map(row).collect(),
        };
        let mut page = Page::new(&Style { width, ..Style::default() });
        page.table(&table);
        page.finish(true)
    }

    #[test]
    fn names_too_wide_for_their_column_are_wrapped_and_never_cut() {
        let names = ["a to b, Windows 95, TCP", "a to b, Windows NT 4.0, UDP"];
        for (columns, expected) in [
            (3, "a to b, Windows 95, TCP      100.25 Mbit/s"),
            (4, "a to b, Windows       100.25 Mbit/s  100.25 Mbit/s  100.25 Mbit/s  100.25 Mbit/s\n  95, TCP\n"),
            (5, "a to b, Windows 95, TCP\n           100.25 Mbit/s  100.25 Mbit/s"),
        ] {
            let drawn = page(if columns == 5 { 84 } else { 80 }, columns, &names);
            assert!(drawn.contains(expected), "{columns}:\n{drawn}");
            assert!(drawn.lines().all(|line| line.width() <= 84) && !drawn.contains('\u{2026}'), "{drawn}");
        }
    }
}
