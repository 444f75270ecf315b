//! Errors in a fleet file.

use toml::Spanned;

/// An error in a fleet file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetFileError {
    /// Not TOML, or TOML with unknown keys or other kinds of values. The message shows the line and the key.
    #[error("{file}: {message}")]
    Toml {
        /// Name of the file.
        file: String,
        /// Line, key and what was expected.
        message: String,
    },
    /// A value that cannot be used.
    #[error("{file}, line {line}, `{key}`: {problem}")]
    Value {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Key of the value.
        key: String,
        /// The problem and the remedy.
        problem: String,
    },
}

/// The text that errors refer to.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Returns the error for a value of the file.
    pub(super) fn error<T>(&self, at: &Spanned<T>, key: &str, problem: impl Into<String>) -> FleetFileError {
        let before = self.text.get(..at.span().start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        FleetFileError::Value { file: self.file.to_owned(), line, key: key.to_owned(), problem: problem.into() }
    }
}
