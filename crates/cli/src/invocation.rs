//! The command line of this process, as records keep it.

use crate::secrets::without_secrets;
use std::ffi::OsString;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the words of the command line, completed if they lacked a command.
pub(crate) fn keep(words: Vec<OsString>) {
    // The command line of a process does not change.
    let _ = WORDS.set(words);
}

/// Returns the words of the command line, without their secrets.
pub(crate) fn words() -> Vec<String> {
    let words = WORDS.get_or_init(|| std::env::args_os().collect());
    words.iter().map(|word| without_secrets(&word.to_string_lossy())).collect()
}
