//! The stage that hashes what was read, and puts each file's hash behind it.

use crate::block::{Block, DIGEST, Record};
use crate::control::Control;
use crate::side::Side;
use crossbeam_channel::{Receiver, Sender};
use linerate_model::CopyStage;

/// Hashes what passes, until nothing more comes.
pub(crate) fn run<T: From<Block>>(blocks: &Receiver<Block>, out: &Sender<T>, side: &Side, control: &Control) {
    let mut clock = side.board.clock(CopyStage::Hash);
    let mut hasher = blake3::Hasher::new();
    while let Ok(mut block) = clock.await_previous(|| blocks.recv()) {
        let mut ends: Vec<(usize, [u8; DIGEST])> = Vec::new();
        for (at, record) in block.records().flatten() {
            match record {
                Record::End { .. } => ends.push((at, hasher.finalize().into())),
                record => take(&mut hasher, &record, control),
            }
        }
        for (at, digest) in &ends {
            block.set_digest(*at, digest);
        }
        if clock.await_next(|| out.send(block.into())).is_err() {
            return;
        }
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
