//! Stage that hashes received content and compares it with the hash that the reading end sent after each file.

use super::Verified;
use crate::block::{Block, DIGEST, Record};
use crate::control::Control;
use crate::pipeline::{Gone, Onward, Work};
use crate::source::hash::take;

/// Verifies what passes.
pub(crate) struct Verify<'a> {
    hasher: blake3::Hasher,
    control: &'a Control,
}

impl<'a> Verify<'a> {
    pub(crate) fn new(control: &'a Control) -> Self {
        Self { hasher: blake3::Hasher::new(), control }
    }
}

impl Work<Block> for Verify<'_> {
    type Made = Verified;

    fn work(&mut self, block: Block, on: &mut Onward<'_, '_, Verified>) -> Result<(), Gone> {
        let mut sound = Vec::new();
        for (_, record) in block.records().flatten() {
            match record {
                Record::End { digest } => {
                    let found: [u8; DIGEST] = self.hasher.finalize().into();
                    sound.push(found == *digest);
                }
                record => take(&mut self.hasher, &record, self.control),
            }
        }
        on.pass(Verified { block, sound })
    }
}
