//! Directories, where linerate does not serve them.

use crate::store::Store;
use linerate_sys::folder::Folder;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Serves no directory.
///
/// # Errors
/// Always, with the kind `Unsupported`.
pub(crate) fn open(_path: &Path, _memory: u64) -> io::Result<Arc<dyn Store>> {
    Err(unsupported())
}

/// Serves no folder.
///
/// # Errors
/// Always, with the kind `Unsupported`.
pub(crate) fn of_folder(_folder: &Folder, _memory: u64) -> io::Result<Arc<dyn Store>> {
    Err(unsupported())
}

/// Returns what to do about the error.
pub(crate) fn remedy(_error: &io::Error) -> &'static str {
    "without a directory, the server has a tree in memory"
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "linerate serves directories on Linux only")
}
