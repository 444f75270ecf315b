//! Tables of text cells, for every form of report.

use crate::language::Language;

/// A table of text cells.
#[derive(Clone)]
pub struct Table {
    /// Caption above the table.
    pub caption: String,
    /// Columns; the first names the row.
    pub columns: Vec<Column>,
    /// Cells of each row, one for each column; `None` for a missing figure.
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
    /// Length of the bar in each row's cell, from 0 to 1, for forms that do not draw the table's chart.
    pub(crate) bars: Option<Vec<f64>>,
}

#[derive(Clone)]
enum Head {
    /// Message of linerate.
    Key(&'static str),
    /// Name given by a study.
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

    /// Sets the rank: narrow outputs leave out columns of the highest rank first.
    pub(crate) fn ranked(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// Marks the column as text rather than figures.
    pub(crate) fn of_words(self) -> Self {
        Self { words: true, ..self }
    }

    /// Adds a bar to each cell, with lengths from 0 to 1.
    pub(crate) fn with_bars(self, lengths: Vec<f64>) -> Self {
        Self { bars: Some(lengths), ..self }
    }

    /// A column that a study names.
    pub const fn named(title: String, meaning: String) -> Self {
        Self { head: Head::Named { title, meaning }, rank: 0, words: false, bars: None }
    }

    /// Returns the short title.
    pub fn title(&self, lang: Language) -> String {
        match &self.head {
            Head::Key(key) => lang.tell(key, &[]),
            Head::Named { title, .. } => title.clone(),
        }
    }

    /// Returns a sentence on what the column counts.
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
