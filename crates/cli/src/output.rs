//! Standard output carries results, standard error everything else. A reader that closes the pipe early is no error.

use crate::secrets::message_without_keys;
use linerate_report::{Language, Style};
use linerate_units::grouped;
use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The language of results, one for the whole program.
static LANGUAGE: Mutex<Language> = Mutex::new(Language::English);

/// Whether a run was stopped because the reader of its events has left.
static READER_LEFT: AtomicBool = AtomicBool::new(false);

/// Whether a result could not be written.
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// Writes a result, a line break at its end.
pub(crate) fn print(text: &str) {
    if let Err(error) = write(text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        note_that_output_is_incomplete(&error);
    }
}

/// Tells that a result could not be written, once.
pub(crate) fn note_that_output_is_incomplete(error: &io::Error) {
    if !IS_INCOMPLETE.swap(true, Ordering::Relaxed) {
        say(&format!("linerate: cannot write to standard output: {error}"));
    }
}

/// Whether a result could not be written. A reader that has left is no reason.
pub(crate) fn is_incomplete() -> bool {
    IS_INCOMPLETE.load(Ordering::Relaxed)
}

/// The same, for who has to know whether it could be written.
///
/// # Errors
/// It could not; [`ErrorKind::BrokenPipe`] if nobody reads.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let text = visible(text);
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
    let text = message_without_keys(text);
    #[cfg(feature = "tui")]
    if let Some(held) = &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        held.push(text.into_owned());
        return;
    }
    // Nothing is left to tell when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{}", visible(&text));
}

/// Tells how a run goes, marked as the program's.
pub(crate) fn say_of_run(text: &str) {
    say(&format!("linerate: {text}"));
}

/// The text with characters that steer a terminal, or turn the direction of writing, as JSON writes them: `\u001b`. Names and
/// errors come from other hosts, from records and from files, and could change what a terminal shows or does. JSON stays the
/// same value. Line breaks, those of CSV (RFC 4180) too, tabulators and the program's own colours stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| linerate_report::steers(c) && !matches!(c, '\n' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let length = match (colour(from).or_else(|| csv_line_break(from)), from.chars().next()) {
            (Some(length), _) => {
                shown.push_str(&from[..length]);
                length
            }
            (None, first) => {
                let first = first.unwrap_or_default();
                shown.push_str(&format!("\\u{:04x}", u32::from(first)));
                first.len_utf8()
            }
        };
        rest = &from[length..];
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Length of a sequence that only sets weight or colour of letters (ECMA-48, SGR), at the beginning of `text`: all that this
/// program writes itself. Concealed, blinking and inverse letters are none.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find('m')?;
    let harmless = |code: &str| matches!(code, "0" | "1" | "2") || matches!(code.as_bytes(), [b'3', b'0'..=b'7']);
    codes[..end].split(';').all(harmless).then_some("\u{1b}[".len() + end + 1)
}

/// Length of a line break as CSV has it, at the beginning of `text`.
fn csv_line_break(text: &str) -> Option<usize> {
    text.starts_with("\r\n").then_some("\r\n".len())
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
    fn foreign_text_cannot_steer_the_terminal() {
        // A host name that clears the screen, an error that sets the window's title, a name that reads backwards.
        for (foreign, shown) in [
            ("host \u{1b}[2J", "host \\u001b[2J"),
            ("error: \u{1b}]0;title\u{7} x", "error: \\u001b]0;title\\u0007 x"),
            ("a\u{202e}b", "a\\u202eb"),
            ("a\u{9b}31mb", "a\\u009b31mb"),
            ("over\rwritten", "over\\u000dwritten"),
            ("hidden \u{1b}[8mx", "hidden \\u001b[8mx"),
        ] {
            assert_eq!(visible(foreign), shown);
            let read: String = serde_json::from_str(&visible(&serde_json::json!(foreign).to_string())).expect("JSON");
            assert_eq!(read, foreign, "JSON stays what it is");
        }
        let own = "\u{1b}[1mHeading\u{1b}[0m\n\tline \u{1b}[1;32mgood\u{1b}[0m\n";
        assert_eq!(visible(own), own);
        assert_eq!(visible("a,b\r\nc,d\r\n"), "a,b\r\nc,d\r\n", "CSV stays what it is");
    }

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
