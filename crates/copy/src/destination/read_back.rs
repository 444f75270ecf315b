//! The stage that reads back what was written, through the file system, and compares.

use super::Written;
use crate::control::Control;
use crate::pipeline::{Gone, Onward, Work};
use crate::storage::Draft;
use linerate_model::{CopyStage, CopySync};
use std::io;

/// Bytes read at a time: they are hashed while they are in a core's own cache.
const PIECE: usize = 128 << 10;

/// Passes on what reads back as it should.
pub(crate) struct ReadBack<'a> {
    sync: CopySync,
    piece: Vec<u8>,
    hasher: blake3::Hasher,
    control: &'a Control,
}

impl<'a> ReadBack<'a> {
    pub(crate) fn new(sync: CopySync, control: &'a Control) -> Self {
        Self { sync, piece: vec![0; PIECE], hasher: blake3::Hasher::new(), control }
    }

    fn hash(&mut self, draft: &mut dyn Draft) -> io::Result<blake3::Hash> {
        if self.sync == CopySync::Each {
            draft.forget()?;
        }
        self.hasher.reset();
        let mut offset = 0;
        while !self.control.is_stopped() {
            let read = draft.read(offset, &mut self.piece)?;
            if read.is_empty() {
                return Ok(self.hasher.finalize());
            }
            self.hasher.update(read);
            offset += read.len() as u64;
        }
        Err(io::Error::other("it was stopped before all of it was read back"))
    }
}

impl Work<Vec<Written>> for ReadBack<'_> {
    type Made = Vec<Written>;

    fn work(&mut self, batch: Vec<Written>, on: &mut Onward<'_, '_, Vec<Written>>) -> Result<(), Gone> {
        let mut sound = Vec::with_capacity(batch.len());
        for mut written in batch {
            let found = written.file.draft().map(|draft| self.hash(draft)).transpose();
            match found {
                Ok(Some(digest)) if digest == written.digest => {
                    written.verified = true;
                    sound.push(written);
                }
                Ok(Some(_)) => {
                    let why = "what reads back is not what was written";
                    self.control.fault(&written.file.path, CopyStage::Verify, why);
                }
                Ok(None) => sound.push(written),
                Err(error) => self.control.failed(&written.file.path, CopyStage::Verify, &error),
            }
        }
        on.pass(sound)
    }
}
