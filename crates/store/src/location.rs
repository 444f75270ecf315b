//! Where results are kept.

use crate::StoreError;
use etcetera::BaseStrategy as _;
use linerate_sys::private;
use std::path::{Path, PathBuf};

/// Returns the store used if none is named: `linerate/results.db` in the user's data directory, which is `$XDG_DATA_HOME` (by
/// default `~/.local/share`), or `%APPDATA%` on Windows.
///
/// # Errors
/// There is no home directory.
pub fn default_path() -> Result<PathBuf, StoreError> {
    let base = etcetera::choose_base_strategy().map_err(|_| StoreError::NoHome)?;
    Ok(base.data_dir().join("linerate").join("results.db"))
}

/// Makes the folder of the store at `path`, for its owner only. A folder that is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    private::make_folder(folder).map_err(|source| StoreError::Folder { path: folder.to_owned(), source })
}

/// Makes the file of the store at `path`, for its owner only: records tell of networks and hosts. SQLite gives the
/// files next to it the same permissions; on Windows these have the permissions of the folder. A file that is there is not even opened: closing it again would take away
/// every lock that SQLite has on it in this process (fcntl(2), Advisory record locking).
pub(crate) fn make_file(path: &Path) {
    // What cannot be made is told by SQLite, which opens it next.
    let _ = private::new_file(path);
}

/// A file beside the store at `path`: its name with `ending` behind, as in `results.db-live`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
