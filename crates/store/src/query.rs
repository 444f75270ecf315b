//! Which runs to find.

use crate::State;
use crate::sql::{Values, instant};
use linerate_model::Limit;

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

    /// Returns the conditions in SQL. Their values are added to `values`.
    pub(crate) fn conditions(&self, values: &mut Values) -> String {
        let mut conditions = Vec::new();
        if let Some(kind) = &self.kind {
            conditions.push(format!("kind = {}", values.add(kind.as_str())));
        }
        if let Some(study) = &self.study {
            conditions.push(format!("study = {}", values.add(study.as_str())));
        }
        if let Some(limit) = self.limit {
            conditions.push(format!("limit_name = {}", values.add(limit.name())));
        }
        if let Some(from) = self.from_unix_ns {
            conditions.push(format!("started_unix_ns >= {}", values.add(instant(from))));
        }
        if let Some(until) = self.until_unix_ns {
            conditions.push(format!("started_unix_ns < {}", values.add(instant(until))));
        }
        for word in &self.words {
            let pattern = values.add(contains_pattern(&word.to_lowercase()));
            conditions.push(format!("search_text LIKE {pattern} ESCAPE '\\'"));
        }
        if self.changed {
            conditions.push("changed = 1".to_owned());
        }
        if !self.states.is_empty() {
            let states = values.list(self.states.iter().map(|state| state.name()));
            conditions.push(format!("state IN {states}"));
        }
        if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) }
    }
}

/// Returns the pattern of LIKE for a text that contains `word`.
fn contains_pattern(word: &str) -> String {
    let mut pattern = String::from("%");
    for character in word.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}
