//! Why files are no study.

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// Not TOML, or TOML with fields of other names or kinds; the message shows the line and the field.
    #[error("{file}: {message}")]
    Toml {
        /// The file.
        file: String,
        /// Line, field and what was expected.
        message: String,
    },
    /// A field that reads well but cannot be.
    #[error("{file}, line {line}, field `{field}`: {problem}")]
    Field {
        /// The file.
        file: String,
        /// The line, counted from one.
        line: usize,
        /// The field, or the column of the data.
        field: String,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// A line of the data that is none, or data without any.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line, counted from one.
        line: usize,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
}
