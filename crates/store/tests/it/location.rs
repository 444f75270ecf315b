//! The store's files: permissions and locks.

use linerate_store::{Store, StoreLocation};
use linerate_testsuite::files::{is_locked, mode, set_mode};

#[test]
fn a_store_outside_the_data_directory_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o755);
    let path = folder.path().join("results.db");
    let store = Store::open(&StoreLocation::file(&path)).expect("a store");
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
    let first = Store::open(&StoreLocation::file(&path)).expect("a store");
    assert!(is_locked(&path), "it is open");
    let second = Store::open(&StoreLocation::file(&path)).expect("the same store");
    assert!(is_locked(&path), "it was opened again");
    drop((first, second));
    assert!(!is_locked(&path), "it is closed");
}
