//! What is asked for on the terminal.

use crate::exit::Failure;
use crate::interrupt;
use linerate_sys::terminal::TerminalSettings;
use std::io::{self, IsTerminal as _};
use tokio::sync::watch;

/// Whether somebody can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A line from the terminal, which is not shown if it is `secret`.
///
/// # Errors
/// The terminal cannot be read, or the user stops it with Ctrl-C.
pub(crate) async fn ask(what: &str, secret: bool, cancel: &mut watch::Receiver<bool>) -> Result<String, Failure> {
    let hint = if secret { " (not shown)" } else { "" };
    let prompt = format!("{what}{hint}: ");
    // The thread that reads goes on after Ctrl-C, and cannot show again what is typed.
    let _kept = TerminalSettings::keep();
    let line = interrupt::unless_asked(cancel, move || {
        let terminal = console::Term::stderr();
        terminal.write_str(&prompt)?;
        if secret { terminal.read_secure_line() } else { terminal.read_line() }
    });
    line.await?.map_err(|error| Failure::usage(format!("cannot read what was typed: {error}")))
}
