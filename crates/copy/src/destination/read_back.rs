//! The stage that reads back what was written, through the file system, and compares.

use super::Written;
use crate::control::Control;
use crate::side::Side;
use crate::storage::Draft;
use crossbeam_channel::{Receiver, Sender};
use linerate_model::{CopyStage, CopySync};
use std::io;

/// Bytes read at a time.
const PIECE: usize = 256 << 10;

/// Passes on what reads back as it should, until nothing more comes.
pub(crate) fn run(
    sync: CopySync,
    files: &Receiver<Vec<Written>>,
    out: &Sender<Vec<Written>>,
    side: &Side,
    control: &Control,
) {
    let mut clock = side.board.clock(CopyStage::Verify);
    let mut piece = vec![0; PIECE];
    while let Ok(batch) = clock.await_previous(|| files.recv()) {
        let mut sound = Vec::with_capacity(batch.len());
        for mut written in batch {
            let found = written.file.draft().map(|draft| hash(draft, sync, &mut piece, control)).transpose();
            match found {
                Ok(Some(digest)) if digest == written.digest => {
                    written.verified = true;
                    sound.push(written);
                }
                Ok(Some(_)) => {
                    control.fault(&written.file.path, CopyStage::Verify, "what reads back is not what was written");
                }
                Ok(None) => sound.push(written),
                Err(error) => control.failed(&written.file.path, CopyStage::Verify, &error),
            }
        }
        if clock.await_next(|| out.send(sound)).is_err() {
            return;
        }
    }
}

fn hash(draft: &mut dyn Draft, sync: CopySync, piece: &mut [u8], control: &Control) -> io::Result<blake3::Hash> {
    if sync == CopySync::Each {
        draft.forget()?;
    }
    let (mut hasher, mut offset) = (blake3::Hasher::new(), 0);
    while !control.is_stopped() {
        match draft.read(offset, piece)? {
            0 => return Ok(hasher.finalize()),
            read => {
                hasher.update(&piece[..read]);
                offset += read as u64;
            }
        }
    }
    Err(io::Error::other("it was stopped before all of it was read back"))
}
