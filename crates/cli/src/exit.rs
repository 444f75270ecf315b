//! Exit codes: 0 measured, 1 measured but an expectation was missed, 2 usage, 3 could not measure, 4 a study waits for somebody to
//! set something, 141 stopped because nobody reads the events any more.

use crate::secrets::message_without_keys;
use linerate_runner::RunError;
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Measured, but `--expect` was missed; said already.
    Missed,
    /// RunRequest for something that cannot be.
    Usage(String),
    /// Could not measure, or could not keep or write what was measured.
    Measure(String),
    /// A study waits for somebody to do this.
    Waiting(String),
    /// The run was stopped because nobody reads its events any more.
    ReaderLeft,
    /// A program run in a lab host ended with this code.
    Code(u8),
}

/// What a shell reports of a program that SIGPIPE ended: 128 and the signal's number.
const READER_LEFT: u8 = 141;

impl Failure {
    /// What was asked cannot be.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// It could not be measured.
    pub(crate) fn measure(error: impl fmt::Display) -> Self {
        Self::Measure(error.to_string())
    }

    /// Why a run ended early.
    pub(crate) fn of_run(error: &RunError) -> Self {
        match error {
            RunError::Interrupted if crate::output::has_reader_left() => Self::ReaderLeft,
            error => Self::measure(error),
        }
    }

    /// The same with words in front of its message.
    pub(crate) fn at(self, place: &str) -> Self {
        self.said(|message| format!("{place}{message}"))
    }

    /// The same with words behind its message.
    pub(crate) fn and(self, more: &str) -> Self {
        self.said(|message| message + more)
    }

    fn said(self, say: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Usage(message) => Self::Usage(say(message)),
            Self::Measure(message) => Self::Measure(say(message)),
            Self::Waiting(message) => Self::Waiting(say(message)),
            Self::Missed | Self::ReaderLeft | Self::Code(_) => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Measure(message) | Self::Waiting(message) => f.write_str(message),
            Self::Missed => f.write_str("an expectation was missed"),
            Self::ReaderLeft => {
                f.write_str("standard output was closed, and the run stopped; what was measured is kept")
            }
            Self::Code(code) => write!(f, "a program ended with exit code {code}"),
        }
    }
}

/// Prints what there is to say and gives the program's exit code.
pub(crate) fn code(result: Result<(), Failure>) -> u8 {
    let (code, message) = match result {
        // It was told when it was written.
        Ok(()) if crate::output::is_incomplete() => (3, None),
        Ok(()) => (0, None),
        Err(Failure::Missed) => (1, None),
        Err(Failure::Usage(message)) => (2, Some(message)),
        Err(Failure::Measure(message)) => (3, Some(message)),
        Err(Failure::Waiting(message)) => (4, Some(message)),
        Err(failure @ Failure::ReaderLeft) => (READER_LEFT, Some(failure.to_string())),
        Err(Failure::Code(code)) => (code, None),
    };
    if let Some(message) = message {
        crate::output::say(&format!("linerate: {message}"));
    }
    code
}

/// For errors of the command line itself: help and version are no errors.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let shown = message_without_keys(&text);
    // A closed pipe is no reason to fail.
    let _ = if error.use_stderr() && shown != text { write!(io::stderr(), "{shown}") } else { error.print() };
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
