//! Files of others.

use linerate_store::{Query, Store};
use rusqlite::{Connection, params};
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

/// The tables of format 1, which later programs take over.
const FORMAT_1: &str = "
    CREATE TABLE record (id TEXT PRIMARY KEY, started_unix_ns INTEGER NOT NULL, command TEXT NOT NULL,
        cells INTEGER NOT NULL, trials INTEGER NOT NULL, finished INTEGER NOT NULL) STRICT;
    CREATE TABLE content (record TEXT PRIMARY KEY REFERENCES record (id) ON DELETE CASCADE, body TEXT NOT NULL) STRICT;
    CREATE TABLE trial (record TEXT NOT NULL REFERENCES record (id) ON DELETE CASCADE, number INTEGER NOT NULL,
        body TEXT NOT NULL, UNIQUE (record, number)) STRICT;
    PRAGMA synchronous = OFF;
    PRAGMA application_id = 0x6c6e7274;
    PRAGMA user_version = 1;
";

/// A store of format 1 with one record. The input's lines are its name, its command, its content, and its trials.
pub(crate) fn older_store(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let mut line = || lines.next().unwrap_or_default();
    let (id, command, body) = (line(), line(), line());
    let folder = folder();
    let path = folder.path().join("results.db");
    let older = Connection::open(&path).expect("a new file can be opened");
    older.execute_batch(FORMAT_1).expect("the tables are new");
    older
        .execute("INSERT INTO record VALUES (?, 5, ?, 1, 1, ?)", params![id, command, text.len() as i64 % 2])
        .expect("the first row");
    older.execute("INSERT INTO content VALUES (?, ?)", [id, body]).expect("the first row");
    for (number, trial) in (0_i64..).zip(lines) {
        older.execute("INSERT INTO trial VALUES (?, ?, ?)", params![id, number, trial]).expect("each has its number");
    }
    drop(older);
    use_store(&path);
}

/// Does what a user does with a store: opens it, lists it, and loads what is in it.
fn use_store(path: &Path) {
    let Ok(store) = Store::open(Some(path)) else { return };
    let Ok(rows) = store.list(&Query::default(), 0, 100) else { return };
    for row in rows {
        let _ = store.load(&row.id.0);
    }
    let _ = store.latest();
}

/// Blocks of a copy. Nothing outside the destination is changed, and nothing in it keeps a temporary name.
pub(crate) fn copied(bytes: &[u8]) {
    let folder = folder();
    let (outside, inside) = (folder.path().join("outside"), folder.path().join("inside"));
    fs::write(&outside, "kept").expect("the folder takes a file");
    fs::create_dir(&inside).expect("the folder takes another");
    linerate_copy::fuzzing::blocks(bytes, &inside);
    assert_eq!(fs::read_to_string(&outside).expect("it is there"), "kept");
    assert_eq!(fs::read_dir(folder.path()).expect("it can be listed").count(), 2, "nothing was made outside");
    let names_one = bytes.windows(9).any(|part| part == b".linerate");
    for entry in fs::read_dir(&inside).into_iter().flatten().flatten() {
        let name = entry.file_name();
        assert!(names_one || !name.to_string_lossy().starts_with(".linerate-fuzz-"), "{} is left", name.display());
    }
}

/// A folder in memory, where the machine has one: nothing is waited for that a disk would do.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder can be made")
}
