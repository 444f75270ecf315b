//! Stage that hashes read content and sends each file's hash after it.

use crate::block::{Block, DIGEST, Record};
use crate::control::Control;
use crate::pipeline::{Gone, Onward, Work};

/// Hashes what passes.
pub(crate) struct Hash<'a> {
    hasher: blake3::Hasher,
    control: &'a Control,
}

impl<'a> Hash<'a> {
    pub(crate) fn new(control: &'a Control) -> Self {
        Self { hasher: blake3::Hasher::new(), control }
    }
}

impl Work<Block> for Hash<'_> {
    type Made = Block;

    fn work(&mut self, mut block: Block, on: &mut Onward<'_, '_, Block>) -> Result<(), Gone> {
        let mut ends: Vec<(usize, [u8; DIGEST])> = Vec::new();
        for (at, record) in block.records().flatten() {
            match record {
                Record::End { .. } => ends.push((at, self.hasher.finalize().into())),
                record => take(&mut self.hasher, &record, self.control),
            }
        }
        for (at, digest) in &ends {
            block.set_digest(*at, digest);
        }
        on.pass(block)
    }
}

/// Takes a record's content into the hash of its file: holes count as the zeros they read as.
pub(crate) fn take(hasher: &mut blake3::Hasher, record: &Record<'_>, control: &Control) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    match record {
        Record::File { .. } => {
            hasher.reset();
        }
        Record::Data(bytes) => {
            hasher.update(bytes);
        }
        Record::Hole(bytes) => {
            let mut left = *bytes;
            while left > 0 && !control.is_stopped() {
                let now = left.min(ZEROS.len() as u64);
                hasher.update(&ZEROS[..now as usize]);
                left -= now;
            }
        }
        _ => {}
    }
}
