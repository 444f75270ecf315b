//! The writing end: verifies what arrives, makes folders and files, writes them, and gives them their names.

pub(crate) mod create;
pub(crate) mod new_file;
pub(crate) mod read_back;
pub(crate) mod root;
pub(crate) mod sync;
pub(crate) mod verify;
pub(crate) mod write;

use crate::block::{Block, DIGEST};
use new_file::NewFile;

/// Blocks or files that may wait between two stages.
pub(crate) const WAITING: usize = 2;

/// A block, and which of the files that end in it are what they should be.
pub(crate) struct Verified {
    pub(crate) block: Block,
    /// In the order of their ends; empty where nothing is verified here.
    pub(crate) sound: Vec<bool>,
}

/// Nothing was verified on its way here.
impl From<Block> for Verified {
    fn from(block: Block) -> Self {
        Self { block, sound: Vec::new() }
    }
}

/// A block, and the files that begin in it; none for one that could not be made.
pub(crate) struct Created {
    pub(crate) verified: Verified,
    pub(crate) files: Vec<Option<NewFile>>,
}

/// A file that is written, and the hash it should have.
pub(crate) struct Written {
    pub(crate) file: NewFile,
    pub(crate) digest: [u8; DIGEST],
    /// It was verified on its way.
    pub(crate) verified: bool,
}
