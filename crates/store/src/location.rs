//! Where results are kept.

use crate::StoreError;
use etcetera::BaseStrategy as _;
use linerate_sys::private;
use std::path::{Path, PathBuf};

/// The store used if none is named: `$XDG_DATA_HOME/linerate/results.db`, by default under `~/.local/share`.
///
/// # Errors
/// There is no home directory.
pub fn default_path() -> Result<PathBuf, StoreError> {
    let base = etcetera::base_strategy::Xdg::new().map_err(|_| StoreError::NoHome)?;
    Ok(base.data_dir().join("linerate").join("results.db"))
}

/// Makes the folder of the store at `path`, for its owner only. A folder that is there stays as it is.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    private::make_folder(folder).map_err(|source| StoreError::Folder { path: folder.to_owned(), source })
}

/// Makes the file of the store at `path`, for its owner only: records tell of networks and hosts. SQLite gives the
/// files beside it the same permissions. A file that is there is not even opened: closing it again would take away
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

#[cfg(test)]
mod tests {
    use linerate_testsuite::files::{is_locked, mode, set_mode};

    #[test]
    fn a_store_outside_the_data_directory_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        set_mode(folder.path(), 0o755);
        let path = folder.path().join("results.db");
        let store = crate::Store::open(Some(&path)).expect("a store");
        for entry in std::fs::read_dir(folder.path()).expect("listed") {
            let file = entry.expect("listed").path();
            assert_eq!(mode(&file) & 0o077, 0, "{}", file.display());
        }
        drop(store);
    }

    /// POSIX takes all locks of a process on a file away when the process closes any descriptor of it. SQLite has a
    /// lock on a store that is open: without it, another program that closes the store would remove a log that is still
    /// written to.
    #[test]
    fn a_store_that_is_opened_twice_keeps_the_locks_of_both() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.db");
        let first = crate::Store::open(Some(&path)).expect("a store");
        assert!(is_locked(&path), "it is open");
        let second = crate::Store::open(Some(&path)).expect("the same store");
        assert!(is_locked(&path), "it was opened again");
        drop((first, second));
        assert!(!is_locked(&path), "it is closed");
    }
}
