//! The stage that makes folders, links and new files.

use super::folder_list::Folder;
use super::new_file::{Head, NewFile};
use super::root::{Root, temporary};
use super::{Created, Verified};
use crate::block::{FILES, Malformed, Record};
use crate::control::Control;
use crate::pipeline::{Gone, Onward, Work};
use crate::side::Side;
use crate::storage::Storage;
use linerate_model::CopyStage;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the temporary names of this process.
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn number() -> u64 {
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// Makes what is asked for; without a root, all goes nowhere.
pub(crate) struct Create<'a> {
    place: Option<(&'a Root, Box<dyn Storage>)>,
    side: &'a Side,
    control: &'a Control,
}

impl<'a> Create<'a> {
    pub(crate) fn new(root: Option<&'a Root>, side: &'a Side, control: &'a Control) -> Self {
        Self { place: root.map(|root| (root, root.storage.another())), side, control }
    }
}

impl Work<Verified> for Create<'_> {
    type Made = Created;

    fn work(&mut self, verified: Verified, on: &mut Onward<'_, '_, Created>) -> Result<(), Gone> {
        let Self { place, side, control } = self;
        let mut files = Vec::new();
        for record in verified.block.records() {
            if control.is_stopped() || control.gave_up() {
                return Err(Gone);
            }
            let Ok((_, record)) = record else {
                control.fault(b"", CopyStage::Create, Malformed);
                return Err(Gone);
            };
            match record {
                Record::File { path, mode, modified, size } => {
                    let head = Head { path, mode, modified, size };
                    let made = match place {
                        _ if files.len() >= FILES => Err(io::Error::other(Malformed)),
                        None => Ok(NewFile::nowhere(&head)),
                        Some((root, storage)) => NewFile::make(&head, &mut **storage, &root.mark, number()),
                    };
                    files.push(made.map_err(|error| control.failed(path, CopyStage::Create, &error)).ok());
                }
                Record::Folder { path, mode, modified } => match place.as_mut().map(|(root, storage)| {
                    storage.make_folder(path)?;
                    root.later(Folder { path, mode, modified }, &mut **storage, number())
                }) {
                    Some(Err(error)) => control.failed(path, CopyStage::Create, &error),
                    _ => side.tally.folders.add(1),
                },
                Record::Link { path, target, modified } => {
                    let made = place.as_mut().map(|(root, storage)| {
                        storage.make_link(path, &temporary(&root.mark, number()), target, modified)
                    });
                    match made {
                        Some(Err(error)) => control.failed(path, CopyStage::Create, &error),
                        _ => side.tally.links.add(1),
                    }
                }
                _ => {}
            }
        }
        on.pass(Created { verified, files })
    }
}
