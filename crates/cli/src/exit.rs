//! Exit codes: 0 measured, 1 measured but an expectation was missed, 2 usage, 3 could not measure.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Measured, but `--expect` was missed; said already.
    Missed,
    /// Asked for something that cannot be.
    Usage(String),
    /// Could not measure, or could not keep what was measured.
    Measure(String),
    /// A program run in a lab host ended with this code.
    Code(u8),
}

impl Failure {
    /// What was asked cannot be.
    pub(crate) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// It could not be measured.
    pub(crate) fn measure(error: impl fmt::Display) -> Self {
        Self::Measure(error.to_string())
    }
}

/// Prints what there is to say and gives the program's exit code.
pub(crate) fn code(result: Result<(), Failure>) -> ExitCode {
    let (code, message) = match result {
        Ok(()) => (0, None),
        Err(Failure::Missed) => (1, None),
        Err(Failure::Usage(message)) => (2, Some(message)),
        Err(Failure::Measure(message)) => (3, Some(message)),
        Err(Failure::Code(code)) => (code, None),
    };
    if let Some(message) = message {
        crate::output::say(&format!("linerate: {message}"));
    }
    ExitCode::from(code)
}

/// For errors of the command line itself: help and version are no errors.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is no reason to fail.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
