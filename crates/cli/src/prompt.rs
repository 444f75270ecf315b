//! What is asked for on the terminal.

use std::io::{self, IsTerminal as _};

/// Whether somebody can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A line from the terminal, which is not shown if it is `secret`.
///
/// # Errors
/// The terminal cannot be read.
pub(crate) fn ask(what: &str, secret: bool) -> Result<String, String> {
    let terminal = console::Term::stderr();
    let failed = |error: io::Error| format!("cannot read what was typed: {error}");
    let hint = if secret { " (not shown)" } else { "" };
    terminal.write_str(&format!("{what}{hint}: ")).map_err(failed)?;
    if secret { terminal.read_secure_line() } else { terminal.read_line() }.map_err(failed)
}
