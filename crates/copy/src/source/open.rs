//! The stage that opens files: ahead of the reading, so that what storage takes for it is hidden.

use super::{Batch, Origin};
use crate::control::Control;
use crate::entry::{Entry, Kind};
use crate::pipeline::{Gone, Onward, Work};
use crate::storage::{About, OpenFile, Storage, What};
use linerate_model::CopyStage;
use std::io;

/// An entry, and what a file's content is read from.
pub(crate) struct Opened {
    pub(crate) entry: Entry,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// The entry is no file.
    None,
    /// An open file, and what was known of it when it was opened.
    File(Box<dyn OpenFile>, About),
    /// Made up from the entry's own number.
    Made(u64),
}

/// Opens what comes.
pub(crate) struct Open<'a> {
    /// Storage to read; `None` if content is generated.
    storage: Option<Box<dyn Storage>>,
    control: &'a Control,
}

impl<'a> Open<'a> {
    pub(crate) fn new(origin: &Origin, control: &'a Control) -> Self {
        let storage = match origin {
            Origin::Folder(storage) => Some(storage.another()),
            Origin::Memory(_) => None,
        };
        Self { storage, control }
    }
}

impl Work<Batch> for Open<'_> {
    type Made = Vec<Opened>;

    fn work(&mut self, batch: Batch, on: &mut Onward<'_, '_, Vec<Opened>>) -> Result<(), Gone> {
        let mut opened = Vec::with_capacity(batch.len());
        for entry in batch {
            match (&entry.kind, &mut self.storage) {
                (Kind::File { content, .. }, None) => {
                    let content = Content::Made(*content);
                    opened.push(Opened { entry, content });
                }
                (Kind::File { .. }, Some(storage)) => match open(&entry, &mut **storage) {
                    Ok((file, about)) => opened.push(Opened { entry, content: Content::File(file, about) }),
                    Err(error) => self.control.failed(&entry.path, CopyStage::Open, &error),
                },
                _ => opened.push(Opened { entry, content: Content::None }),
            }
        }
        if self.control.is_stopped() { Err(Gone) } else { on.pass(opened) }
    }
}

fn open(entry: &Entry, storage: &mut dyn Storage) -> io::Result<(Box<dyn OpenFile>, About)> {
    let (file, about) = storage.open(&entry.path)?;
    match about.what {
        What::File { .. } => Ok((file, about)),
        _ => Err(io::Error::other("it is no longer a file")),
    }
}
