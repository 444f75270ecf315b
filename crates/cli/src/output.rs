//! Standard output carries results, standard error everything else. A reader that closes the pipe early is no error.

use linerate_report::Style;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

/// Writes a result, a line break at its end.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") });
    if let Err(error) = written.and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        say(&format!("linerate: cannot write to standard output: {error}"));
    }
}

/// Tells the user something that is not a result.
pub(crate) fn say(text: &str) {
    // Nothing is left to tell when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// How text is to look on standard output: as wide as the terminal, coloured only on one that wants it.
pub(crate) fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or_else(terminal_width);
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Style { width, colour, unicode: true }
}

fn terminal_width() -> usize {
    const WITHOUT_TERMINAL: usize = 100;
    console::Term::stdout().size_checked().map_or(WITHOUT_TERMINAL, |(_, columns)| usize::from(columns).clamp(60, 160))
}
