//! Which runs to find.

use crate::State;
use linerate_model::Limit;
use rusqlite::types::Value;

/// Which runs to find; all if nothing is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Each of these must occur in the run's name, its command, or the name of a host or of something measured; capitals
    /// do not matter.
    pub words: Vec<String>,
    /// What was measured, by the command's name.
    pub kind: Option<String>,
    /// The study it is a run of.
    pub study: Option<String>,
    /// Began then or later, nanoseconds since 1970.
    pub from_unix_ns: Option<u64>,
    /// Began before, nanoseconds since 1970.
    pub until_unix_ns: Option<u64>,
    /// The limit of the figure that stands for the run.
    pub limit: Option<Limit>,
    /// The figure that stands for the run has changed from that of the latest earlier finished run of the same command
    /// ([`Headline::has_changed_from`](linerate_model::Headline::has_changed_from)). With false, whether it has or not.
    pub changed: bool,
    /// In one of these states; in any if there are none.
    pub states: Vec<State>,
}

/// More words than anybody searches for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} words to search for are too many: give {} at the most", linerate_units::grouped(*.0 as u64), Query::MOST_WORDS)]
pub struct TooManyWords(usize);

impl Query {
    /// As many words can be searched for at once.
    pub const MOST_WORDS: usize = 32;

    /// The runs in which every word of `text` occurs.
    ///
    /// # Errors
    /// The text has more than [`Query::MOST_WORDS`] words.
    pub fn text(text: &str) -> Result<Self, TooManyWords> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        if words.len() > Self::MOST_WORDS {
            Err(TooManyWords(words.len()))
        } else {
            Ok(Self { words, ..Self::default() })
        }
    }

    /// Its conditions in SQL, and the values of their question marks.
    pub(crate) fn conditions(&self) -> (String, Vec<Value>) {
        let mut values = Vec::new();
        let mut conditions = Vec::new();
        let mut demand = |condition: &str, value: Value| {
            conditions.push(condition.to_owned());
            values.push(value);
        };
        if let Some(kind) = &self.kind {
            demand("kind = ?", Value::from(kind.clone()));
        }
        if let Some(study) = &self.study {
            demand("study = ?", Value::from(study.clone()));
        }
        if let Some(limit) = self.limit {
            demand("verdict ->> '$.limit' = ?", Value::from(limit.name().to_owned()));
        }
        if let Some(from) = self.from_unix_ns {
            demand("started_unix_ns >= ?", Value::from(instant(from)));
        }
        if let Some(until) = self.until_unix_ns {
            demand("started_unix_ns < ?", Value::from(instant(until)));
        }
        for word in &self.words {
            demand("instr(search_text, ?) > 0", Value::from(word.to_lowercase()));
        }
        if self.changed {
            conditions.push("changed = 1".to_owned());
        }
        if !self.states.is_empty() {
            conditions.push(format!("state IN ({})", vec!["?"; self.states.len()].join(", ")));
            values.extend(self.states.iter().map(|state| Value::from(state.name().to_owned())));
        }
        let sql = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        (sql, values)
    }
}

/// A time as SQLite keeps it.
pub(crate) fn instant(unix_ns: u64) -> i64 {
    i64::try_from(unix_ns).unwrap_or(i64::MAX)
}
