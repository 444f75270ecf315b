//! Following a feed.

use super::LOCKED_BYTE;
use linerate_model::{RecordId, StreamEvent};
use linerate_sys::byte_lock::{ByteLock, open_regular};
use linerate_sys::file_identity::FileId;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// No more is read of a feed at once. No feed grows as long.
const MOST_BYTES: u64 = 16 << 20;

/// The feed of a run under way, as another program follows it.
#[derive(Debug)]
pub struct Feed {
    record: RecordId,
    path: PathBuf,
    file: File,
    /// The beginning of a line whose end is not written yet.
    torn: Vec<u8>,
    ended: bool,
}

impl Feed {
    /// Opens the feed of `record`; none if it cannot be read.
    pub(super) fn open(record: RecordId, path: PathBuf) -> Option<Self> {
        let file = open(&path)?;
        Some(Self { record, path, file, torn: Vec::new(), ended: false })
    }

    /// The run's name.
    pub fn record(&self) -> &RecordId {
        &self.record
    }

    /// Returns whether the run has ended. There is no more news then.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the events told since the last call, in order. A line that is not whole yet is left for the next call;
    /// one that cannot be understood, as from another version of linerate, is left out. A feed that grew long begins
    /// again with `start`.
    pub fn news(&mut self) -> Vec<StreamEvent> {
        // Both before reading: what a writer told before it ended is told.
        let written = ByteLock::is_taken(&self.path, LOCKED_BYTE).unwrap_or(false);
        let next = self.replaced();
        let mut events = self.read();
        if let Some(next) = next {
            self.file = next;
            self.torn.clear();
            events.extend(self.read());
        }
        self.ended |= !written;
        events
    }

    /// The file in whose place the writer began a new one; none if it did not.
    fn replaced(&self) -> Option<File> {
        let next = open(&self.path)?;
        (FileId::of(&next).ok() != FileId::of(&self.file).ok()).then_some(next)
    }

    fn read(&mut self) -> Vec<StreamEvent> {
        // What was read before an error counts.
        let _ = (&self.file).take(MOST_BYTES).read_to_end(&mut self.torn);
        let whole = self.torn.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.torn.drain(..whole).collect();
        lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

fn open(path: &Path) -> Option<File> {
    open_regular(path, OpenOptions::new().read(true)).ok()
}
