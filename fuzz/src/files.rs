//! Files from untrusted sources.

use linerate_store::{Query, Store, StoreLocation};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A capture file.
pub(crate) fn capture(bytes: &[u8]) {
    if let Ok(frame) = linerate_frames::first_frame(bytes) {
        assert!(frame.len() < bytes.len(), "the frame is a part of the file");
    }
}

/// A SQLite file.
pub(crate) fn store(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("results.db");
    fs::write(&path, bytes).expect("the folder takes a file");
    use_store(&path);
}

/// Uses a store as a user does: opens it, lists it, and loads its records.
fn use_store(path: &Path) {
    let Ok(store) = Store::open(&StoreLocation::file(path)) else { return };
    let Ok(rows) = store.list(&Query::default(), 0, 100) else { return };
    for row in rows {
        let _ = store.load(&row.id.0);
    }
    let _ = store.latest();
}

/// Blocks of a copy. Nothing outside the destination is changed, and nothing in it keeps a temporary name.
pub(crate) fn copied(bytes: &[u8]) {
    let folder = folder();
    let outside = folder.path().join("outside");
    let inside = folder.path().join("inside");
    fs::write(&outside, "kept").expect("the folder takes a file");
    fs::create_dir(&inside).expect("the folder takes another");
    linerate_copy::fuzzing::blocks(bytes, &inside);
    assert_eq!(fs::read_to_string(&outside).expect("it is there"), "kept");
    assert_eq!(fs::read_dir(folder.path()).expect("it can be listed").count(), 2, "nothing was made outside");
    let has_such_name = bytes.windows(9).any(|part| part == b".linerate");
    for entry in fs::read_dir(&inside).into_iter().flatten().flatten() {
        let name = entry.file_name();
        assert!(has_such_name || !name.to_string_lossy().starts_with(".linerate-fuzz-"), "{} is left", name.display());
    }
}

/// Creates a folder in memory if possible, so that no target waits for a disk.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let result = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    result.expect("a folder can be made")
}
