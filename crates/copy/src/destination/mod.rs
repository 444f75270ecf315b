//! The writing end: verifies what arrives, makes folders and files, writes them, and gives them their names.

pub(crate) mod compare;
pub(crate) mod create;
pub(crate) mod folder_list;
pub(crate) mod new_file;
pub(crate) mod read_back;
pub(crate) mod root;
pub(crate) mod sync;
pub(crate) mod verify;
pub(crate) mod write;

use crate::block::{Block, DIGEST};
use crate::pipeline::{Gone, Stage};
use new_file::NewFile;

/// Blocks or files that may wait between two stages.
pub(crate) const WAITING: usize = 2;

/// A block, and which of the files that end in it are what they should be.
pub(crate) struct Verified {
    pub(crate) block: Block,
    /// In the order of their ends; empty where nothing is verified here.
    pub(crate) sound: Vec<bool>,
}

/// Passes on what nobody verified on its way here.
pub(crate) struct Unverified<N>(pub(crate) N);

impl<N: Stage<Verified>> Stage<Block> for Unverified<N> {
    fn take(&mut self, block: Block) -> Result<(), Gone> {
        self.0.take(Verified { block, sound: Vec::new() })
    }

    fn idle(&mut self) -> Result<(), Gone> {
        self.0.idle()
    }

    fn end(&mut self) -> Result<(), Gone> {
        self.0.end()
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
    /// Whether it was verified on its way.
    pub(crate) verified: bool,
}
