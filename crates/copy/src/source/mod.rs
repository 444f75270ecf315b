//! The reading end: lists a tree, opens and reads its files, and hashes what it read.

pub(crate) mod hash;
pub(crate) mod list;
pub(crate) mod open;
pub(crate) mod read;
pub(crate) mod walk;

use crate::entry::Entry;
use crate::storage::Storage;
use crate::tree::Made;

/// Entries that pass from the list to a lane at a time.
pub(crate) const BATCH: usize = 32;
/// Batches that may wait.
pub(crate) const BATCHES: usize = 2;

/// Origin of the content.
pub(crate) enum Origin {
    /// Files below a folder.
    Folder(Box<dyn Storage>),
    /// Made up.
    Memory(Made),
}

impl Origin {
    /// Whether it is all on this host.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Folder(storage) => storage.is_here(),
            Self::Memory(_) => true,
        }
    }
}

/// Some entries.
pub(crate) type Batch = Vec<Entry>;
