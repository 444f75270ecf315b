//! The stage that writes.

use super::new_file::NewFile;
use super::{Created, Verified, Written};
use crate::block::Record;
use crate::control::Control;
use crate::side::Side;
use crossbeam_channel::{Receiver, Sender};
use linerate_model::CopyStage;

/// How a lane ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All that there was has come.
    Complete,
    /// The reading end gave up, and says why itself.
    GaveUp,
    /// It broke off.
    Broken,
}

/// Writes what comes, until nothing more comes.
pub(crate) fn run(blocks: &Receiver<Created>, out: &Sender<Vec<Written>>, side: &Side, control: &Control) -> Ending {
    let mut clock = side.board.clock(CopyStage::Write);
    let mut current: Option<NewFile> = None;
    while let Ok(Created { verified: Verified { block, sound }, files }) = clock.await_previous(|| blocks.recv()) {
        let (mut files, mut sound) = (files.into_iter(), sound.into_iter());
        let mut written = Vec::new();
        for (_, record) in block.records().flatten() {
            match record {
                Record::File { .. } => current = files.next().flatten(),
                Record::Data(data) => current = kept(current, control, |file| file.write(data)),
                Record::Hole(bytes) => current = kept(current, control, |file| file.skip(bytes)),
                Record::Drop => current = None,
                Record::End { digest } => {
                    let sound = sound.next();
                    let Some(file) = kept(current.take(), control, NewFile::complete) else { continue };
                    if sound == Some(false) {
                        control.fault(&file.path, CopyStage::Verify, "what arrived is not what was read");
                        continue;
                    }
                    written.push(Written { file, digest: *digest, verified: sound.is_some() });
                }
                Record::Last { complete } => {
                    // What is in hand still gets its name.
                    let _ = clock.await_next(|| out.send(written));
                    return if complete { Ending::Complete } else { Ending::GaveUp };
                }
                Record::Folder { .. } | Record::Link { .. } => {}
            }
        }
        drop(block);
        if clock.await_next(|| out.send(written)).is_err() || control.is_stopped() || control.gave_up() {
            return Ending::Broken;
        }
    }
    Ending::Broken
}

/// Does something to the file, which is given up where that fails.
fn kept(
    file: Option<NewFile>,
    control: &Control,
    action: impl FnOnce(&mut NewFile) -> std::io::Result<()>,
) -> Option<NewFile> {
    let mut file = file?;
    match action(&mut file) {
        Ok(()) => Some(file),
        Err(error) => {
            control.failed(&file.path, CopyStage::Write, &error);
            None
        }
    }
}
