//! Feeds: the events of runs in progress, in files next to the store, so that other programs can follow them.
//!
//! The program that measures run `ID` appends events to `results.db-live.d/ID.ndjson`, a JSON object on each line, and
//! removes the file when the run ends. It holds a lock on the first byte of the file; the kernel drops it when the
//! program ends, by `kill -9` too. Opening the store removes feeds without a lock. A feed is a convenience: if it
//! cannot be written, the run goes on without one. Only the store keeps measurements.

mod reader;
mod writer;

pub use reader::Feed;
pub use writer::FeedWriter;

use crate::location::neighbour_file;
use linerate_model::RecordId;
use linerate_sys::byte_lock::ByteLock;
use linerate_sys::private;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Byte of a feed that its writer locks.
const LOCKED_BYTE: u64 = 0;
/// File name extension of feeds.
const FEED: &str = "ndjson";
/// File name extension of a feed until its first lines are written.
const NEXT: &str = "next";
/// Time within which a new file is locked.
const LOCKED_WITHIN: Duration = Duration::from_secs(60);

/// The folder with the feeds of a store.
#[derive(Debug, Clone)]
pub(crate) struct FeedFolder(PathBuf);

impl FeedFolder {
    /// The folder of the store at `path`.
    pub(crate) fn of(path: &Path) -> Self {
        Self(neighbour_file(path, "-live.d"))
    }

    /// Returns the path of a run's feed. `None` if no file can have its name.
    fn file(&self, record: &RecordId) -> Option<PathBuf> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let name = &record.0;
        (!name.is_empty() && name.len() < 200 && name.bytes().all(allowed))
            .then(|| self.0.join(format!("{name}.{FEED}")))
    }

    /// Lists the feeds that a program writes now, and their runs.
    fn written(&self) -> impl Iterator<Item = (RecordId, PathBuf)> {
        let feeds = self.paths().filter(|path| path.extension().is_some_and(|ending| ending == FEED));
        let written = feeds.filter(|path| ByteLock::is_taken(path, LOCKED_BYTE).unwrap_or(false));
        written.filter_map(|path| Some((RecordId(path.file_stem()?.to_str()?.to_owned()), path)))
    }

    /// Removes the feeds of runs that are no longer measured.
    pub(crate) fn clean(&self) {
        // Files are made and removed in no folder that others write.
        if !private::is_own_folder(&self.0) {
            return;
        }
        for path in self.paths() {
            let dead = ByteLock::is_taken(&path, LOCKED_BYTE).is_ok_and(|taken| !taken);
            if dead && !fs::metadata(&path).is_ok_and(|file| may_be_locked_yet(&file)) {
                // A feed that cannot be removed is never shown, and the next program tries again.
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Lists all files of feeds, including new ones. Empty if the folder is missing or a link.
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let is_folder = fs::symlink_metadata(&self.0).is_ok_and(|folder| folder.is_dir());
        let entries = is_folder.then(|| fs::read_dir(&self.0).ok()).flatten().into_iter().flatten().flatten();
        let ours = |path: &PathBuf| path.extension().is_some_and(|ending| ending == FEED || ending == NEXT);
        entries.map(|entry| entry.path()).filter(ours)
    }

    /// Opens the feeds of the runs in progress, by name.
    pub(crate) fn feeds(&self) -> Vec<Feed> {
        let mut written: Vec<(RecordId, PathBuf)> = self.written().collect();
        written.sort();
        written.into_iter().filter_map(|(record, path)| Feed::open(record, path)).collect()
    }

    /// Opens the feed of a run, if it is in progress and has one.
    pub(crate) fn feed_of(&self, record: &RecordId) -> Option<Feed> {
        let path = self.file(record)?;
        ByteLock::is_taken(&path, LOCKED_BYTE).ok().filter(|taken| *taken)?;
        Feed::open(record.clone(), path)
    }
}

/// Returns whether a file was made just now, and its writer may be about to lock it.
fn may_be_locked_yet(file: &Metadata) -> bool {
    let age = file.modified().ok().and_then(|made| made.elapsed().ok());
    file.len() == 0 && age.is_none_or(|age| age < LOCKED_WITHIN)
}
