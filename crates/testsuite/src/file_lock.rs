//! Locks shared by the tests of several programs.

use std::fs::{File, OpenOptions};
use std::path::Path;

/// Opens the lock file of this name and locks it. The kernel releases the lock when the file is closed, however the
/// test ends.
///
/// # Panics
/// The file cannot be opened or locked.
pub(crate) fn locked(folder: &Path, name: &str, lock: fn(&File) -> std::io::Result<()>) -> File {
    let path = folder.join(format!("linerate-tests-{name}.lock"));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    lock(&file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file
}
