//! Standard output carries results, standard error everything else. A reader that closes the pipe early is no error.

use linerate_report::{Language, Style};
use linerate_units::grouped;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The language of results, one for the whole program.
static LANGUAGE: Mutex<Language> = Mutex::new(Language::English);

/// Whether a run was stopped because the reader of its events has left.
static READER_LEFT: AtomicBool = AtomicBool::new(false);

/// Writes a result, a line break at its end.
pub(crate) fn print(text: &str) {
    if let Err(error) = write(text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        say(&format!("linerate: cannot write to standard output: {error}"));
    }
}

/// The same, for who has to know whether it could be written.
///
/// # Errors
/// It could not; [`ErrorKind::BrokenPipe`] if nobody reads.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Notes that a run stops because the reader of its events has left.
pub(crate) fn note_that_reader_left() {
    READER_LEFT.store(true, Ordering::Relaxed);
}

/// Whether a run was stopped because the reader of its events has left.
pub(crate) fn has_reader_left() -> bool {
    READER_LEFT.load(Ordering::Relaxed)
}

/// Messages that wait for their terminal, which shows a display; none if it shows none.
#[cfg(feature = "tui")]
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Tells the user something that is not a result; after the display, while there is one.
pub(crate) fn say(text: &str) {
    #[cfg(feature = "tui")]
    if let Some(held) = &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        held.push(text.to_owned());
        return;
    }
    // Nothing is left to tell when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Holds back all messages from now on.
#[cfg(feature = "tui")]
pub(crate) fn hold() {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Tells the messages that were held back, and holds back none from now on.
#[cfg(feature = "tui")]
pub(crate) fn release() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    held.unwrap_or_default().iter().for_each(|text| say(text));
}

/// A count with its noun: `1 result`, `3 results`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// How text is to look on standard output: as wide as the terminal, coloured only on one that wants it.
pub(crate) fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or_else(terminal_width);
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Style { width, colour, unicode: true, language: language() }
}

/// How text is to look in a file.
pub(crate) fn file_style() -> Style {
    Style { width: 100, colour: false, unicode: true, language: language() }
}

/// Sets the language of results.
pub(crate) fn speak(language: Language) {
    *LANGUAGE.lock().unwrap_or_else(PoisonError::into_inner) = language;
}

/// The language of results.
pub(crate) fn language() -> Language {
    *LANGUAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The language of the user's locale.
pub(crate) fn users_language() -> Language {
    of_locale(&["LC_ALL", "LC_MESSAGES", "LANG"].map(|name| std::env::var(name).unwrap_or_default()))
}

/// The language of the first variable that is set, in the order in which locale(7) heeds them. Text is written as UTF-8: a
/// terminal that says it has something else gets what ASCII can write.
fn of_locale(variables: &[String; 3]) -> Language {
    let Some(locale) = variables.iter().find(|value| !value.is_empty()) else { return Language::English };
    let charset = locale.split_once('.').map(|(_, charset)| charset.to_lowercase().replace('-', ""));
    match charset {
        Some(charset) if !charset.starts_with("utf8") => Language::English,
        _ => Language::of_locale(locale),
    }
}

/// Columns there are for a line on standard error; no limit where that is no terminal.
pub(crate) fn stderr_width() -> usize {
    console::Term::stderr().size_checked().map_or(usize::MAX, |(_, columns)| usize::from(columns))
}

fn terminal_width() -> usize {
    const WITHOUT_TERMINAL: usize = 100;
    console::Term::stdout().size_checked().map_or(WITHOUT_TERMINAL, |(_, columns)| usize::from(columns).clamp(60, 160))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "result")), ["0 results", "1 result", "2 results"]);
    }

    #[test]
    fn the_locale_tells_the_language() {
        for (variables, language) in [
            (["", "", "ja_JP.UTF-8"], Language::Japanese),
            (["", "ja_JP.utf8", "en_GB.UTF-8"], Language::Japanese),
            (["C.UTF-8", "ja_JP.UTF-8", "ja_JP.UTF-8"], Language::English),
            (["", "", "ja"], Language::Japanese),
            (["", "", "ja_JP.eucJP"], Language::English),
            (["", "", "de_DE.UTF-8"], Language::English),
            (["", "", ""], Language::English),
        ] {
            assert_eq!(of_locale(&variables.map(str::to_owned)), language, "{variables:?}");
        }
    }
}
