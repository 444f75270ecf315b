//! Tables of text cells, for every form of report.

use crate::language::Language;

/// A table of text cells.
#[derive(Clone)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns; the first names the row.
    pub columns: Vec<Column>,
    /// Its cells, as many in each row as there are columns; none where a figure is missing.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A column of a table.
#[derive(Clone)]
pub struct Column {
    head: Head,
    /// Narrow outputs leave out the highest first; 0 stays.
    pub(crate) rank: u8,
    /// Whether its cells are words, and its title says enough.
    pub(crate) words: bool,
    /// For each row how long a bar behind its cell is, 0 to 1, for forms that do not draw the table's chart.
    pub(crate) bars: Option<Vec<f64>>,
}

#[derive(Clone)]
enum Head {
    /// Of linerate's own words.
    Key(&'static str),
    /// Of a study's.
    Named { title: String, meaning: String },
}

impl Table {
    /// A table, if it has a row.
    pub(crate) fn filled(caption: String, columns: Vec<Column>, rows: Vec<Vec<Option<String>>>) -> Option<Self> {
        (!rows.is_empty()).then_some(Self { caption, columns, rows })
    }

    /// Whether it holds words rather than figures.
    pub(crate) fn is_of_words(&self) -> bool {
        self.columns.iter().all(|column| column.words)
    }
}

impl Column {
    /// A column that always stays. Its words are the message of that key, and its attribute `meaning`.
    pub const fn new(key: &'static str) -> Self {
        Self { head: Head::Key(key), rank: 0, words: false, bars: None }
    }

    /// The same, left out by narrow outputs: of the highest rank first.
    pub(crate) fn ranked(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// The same, of words rather than figures.
    pub(crate) fn of_words(self) -> Self {
        Self { words: true, ..self }
    }

    /// The same with a bar behind each cell, of these lengths from 0 to 1.
    pub(crate) fn with_bars(self, lengths: Vec<f64>) -> Self {
        Self { bars: Some(lengths), ..self }
    }

    /// A column that a study names.
    pub const fn named(title: String, meaning: String) -> Self {
        Self { head: Head::Named { title, meaning }, rank: 0, words: false, bars: None }
    }

    /// Its short title.
    pub fn title(&self, lang: Language) -> String {
        match &self.head {
            Head::Key(key) => lang.tell(key, &[]),
            Head::Named { title, .. } => title.clone(),
        }
    }

    /// What it counts.
    pub fn meaning(&self, lang: Language) -> String {
        match &self.head {
            Head::Key(key) => lang.meaning(key),
            Head::Named { meaning, .. } => meaning.clone(),
        }
    }

    /// Whether it is the column of this key.
    pub(crate) fn is(&self, key: &str) -> bool {
        matches!(self.head, Head::Key(own) if own == key)
    }
}
