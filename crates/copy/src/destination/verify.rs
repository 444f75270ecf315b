//! The stage that hashes what arrives and compares it with the hash that the reading end put behind each file.

use super::Verified;
use crate::block::{Block, DIGEST, Record};
use crate::control::Control;
use crate::side::Side;
use crate::source::hash::take;
use crossbeam_channel::{Receiver, Sender};
use linerate_model::CopyStage;

/// Verifies what passes, until nothing more comes.
pub(crate) fn run(blocks: &Receiver<Block>, out: &Sender<Verified>, side: &Side, control: &Control) {
    let mut clock = side.board.clock(CopyStage::Verify);
    let mut hasher = blake3::Hasher::new();
    while let Ok(block) = clock.await_previous(|| blocks.recv()) {
        let mut sound = Vec::new();
        for (_, record) in block.records().flatten() {
            match record {
                Record::End { digest } => {
                    let found: [u8; DIGEST] = hasher.finalize().into();
                    sound.push(found == *digest);
                }
                record => take(&mut hasher, &record, control),
            }
        }
        if clock.await_next(|| out.send(Verified { block, sound })).is_err() {
            return;
        }
    }
}
