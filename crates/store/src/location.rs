//! Where results are kept.

use crate::StoreError;
use etcetera::BaseStrategy as _;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| StoreError::Folder { path: folder.to_owned(), source })
}

/// Makes the file of the store at `path`, for its owner only: records tell of networks and hosts. SQLite gives the
/// files beside it the same permissions. A file that is there is not even opened: closing it again would take away
/// every lock that SQLite has on it in this process (fcntl(2), Advisory record locking).
pub(crate) fn make_file(path: &Path) {
    // What cannot be made is told by SQLite, which opens it next.
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

/// A file beside the store at `path`: its name with `ending` behind, as in `results.db-live`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn a_store_outside_the_data_directory_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        let path = folder.path().join("results.db");
        let store = crate::Store::open(Some(&path)).expect("a store");
        for entry in std::fs::read_dir(folder.path()).expect("listed") {
            let entry = entry.expect("listed");
            let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
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

    /// Returns whether the kernel lists a lock on the file at `path` (proc_locks(5)).
    fn is_locked(path: &std::path::Path) -> bool {
        let inode = std::fs::metadata(path).expect("it is there").ino();
        let locks = std::fs::read_to_string("/proc/locks").expect("the kernel's locks");
        let is_on_it = |place: &str| place.split(':').count() == 3 && place.ends_with(&format!(":{inode}"));
        locks.lines().any(|lock| lock.split_whitespace().any(is_on_it))
    }
}
