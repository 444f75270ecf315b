//! The stage that makes folders, links and new files.

use super::new_file::{Head, NewFile};
use super::root::{Root, temporary};
use super::{Created, Verified};
use crate::block::{FILES, Record};
use crate::control::Control;
use crate::side::Side;
use crossbeam_channel::{Receiver, Sender};
use linerate_model::CopyStage;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the temporary names of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Makes what is asked for, until nothing more comes; without a root, all goes nowhere.
pub(crate) fn run(
    root: Option<&Root>,
    blocks: &Receiver<Verified>,
    out: &Sender<Created>,
    side: &Side,
    control: &Control,
) {
    let mut clock = side.board.clock(CopyStage::Create);
    let mut storage = root.map(|root| root.storage.another());
    while let Ok(verified) = clock.await_previous(|| blocks.recv()) {
        let mut files = Vec::new();
        for record in verified.block.records() {
            if control.is_stopped() || control.gave_up() {
                return;
            }
            let Ok((_, record)) = record else {
                return control.fault(b"", CopyStage::Create, crate::block::Malformed);
            };
            let place = root.zip(storage.as_mut());
            match record {
                Record::File { path, mode, modified, size } => {
                    let head = Head { path, mode, modified, size };
                    let made = match place {
                        _ if files.len() >= FILES => Err(io::Error::other(crate::block::Malformed)),
                        None => Ok(NewFile::nowhere(&head)),
                        Some((root, storage)) => NewFile::make(&head, &mut **storage, &root.mark, number()),
                    };
                    files.push(made.map_err(|error| control.failed(path, CopyStage::Create, &error)).ok());
                }
                Record::Folder { path, mode, modified } => match place.map(|(root, storage)| {
                    storage.make_folder(path)?;
                    root.later(path, mode, modified);
                    io::Result::Ok(())
                }) {
                    Some(Err(error)) => control.failed(path, CopyStage::Create, &error),
                    _ => side.tally.folders.add(1),
                },
                Record::Link { path, target, modified } => {
                    let name = |root: &Root| temporary(&root.mark, number());
                    match place.map(|(root, storage)| storage.make_link(path, &name(root), target, modified)) {
                        Some(Err(error)) => control.failed(path, CopyStage::Create, &error),
                        _ => side.tally.links.add(1),
                    }
                }
                _ => {}
            }
        }
        if clock.await_next(|| out.send(Created { verified, files })).is_err() {
            return;
        }
    }
}
