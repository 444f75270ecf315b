//! Errors in the files of a study.

/// An error, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// Not TOML, or TOML with fields of other names or kinds; the message shows the line and the field.
    #[error("{file}: {message}")]
    Toml {
        /// Name of the file.
        file: String,
        /// Line, field and what was expected.
        message: String,
    },
    /// A field that reads well but cannot be.
    #[error("{file}, line {line}, field `{field}`: {problem}")]
    Field {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Field, or column of the data.
        field: String,
        /// Problem with it, and what was expected.
        problem: String,
    },
    /// A line of the data that is none, or data without any.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Problem with it, and what was expected.
        problem: String,
    },
}
