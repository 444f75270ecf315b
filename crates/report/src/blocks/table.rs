//! Tables of text cells, for every form of report.

use crate::language::Language;
use linerate_model::Text;

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
    /// Texts of linerate.
    Text { title: &'static Text, meaning: &'static Text },
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
    /// A column that always stays; [`crate::column!`] writes it shorter.
    pub const fn new(title: &'static Text, meaning: &'static Text) -> Self {
        Self { head: Head::Text { title, meaning }, rank: 0, words: false, bars: None }
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
            Head::Text { title, .. } => lang.text(title),
            Head::Named { title, .. } => title.clone(),
        }
    }

    /// Returns a sentence on what the column counts.
    pub fn meaning(&self, lang: Language) -> String {
        match &self.head {
            Head::Text { meaning, .. } => lang.text(meaning),
            Head::Named { meaning, .. } => meaning.clone(),
        }
    }

    /// Returns whether both are the same column of linerate's own.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.head, &other.head) {
            (Head::Text { title, .. }, Head::Text { title: others, .. }) => title.key == others.key,
            _ => false,
        }
    }
}

/// Returns a [`Column`] from its key, its title and what it counts:
/// `column!("column-limit", "limit", "What limited the result.")`.
#[macro_export]
macro_rules! column {
    ($key:literal, $title:literal, $meaning:literal) => {
        $crate::Column::new(
            $crate::linerate_model::text!($key, $title),
            $crate::linerate_model::text!(concat!($key, ".meaning"), $meaning),
        )
    };
}
