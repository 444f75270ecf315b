//! A file that is being written: under a temporary name, until it is whole.

use super::root::{PERMISSIONS, temporary};
use crate::storage::{Draft, Storage};
use linerate_sys::clock;
use std::io;
use std::ops::Range;

/// Dropped before it was named, it is removed.
pub(crate) struct NewFile {
    pub(crate) path: Vec<u8>,
    mode: u32,
    modified: i64,
    /// Size according to its head.
    pub(crate) size: u64,
    /// Bytes of data that were written, and of data and holes together.
    pub(crate) bytes: u64,
    pub(crate) length: u64,
    /// Range of the last hole. Adjacent holes are one, and no list of them is kept: a source may send any number.
    pub(crate) hole: Range<u64>,
    /// When it was made, on the monotonic clock.
    pub(crate) begun: u64,
    /// Draft in the storage; `None` if the content is dropped.
    draft: Option<Box<dyn Draft>>,
}

/// Head of a file.
pub(crate) struct Head<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) modified: i64,
    pub(crate) size: u64,
}

impl NewFile {
    /// Makes a file with content that is dropped.
    pub(crate) fn nowhere(head: &Head<'_>) -> Self {
        let Head { path, mode, modified, size } = *head;
        let path = path.to_vec();
        let begun = clock::now();
        Self { path, mode, modified, size, bytes: 0, length: 0, hole: 0..0, begun, draft: None }
    }

    /// Makes a file in `storage`, the `number`th of the copy with `mark`.
    pub(crate) fn make(head: &Head<'_>, storage: &mut dyn Storage, mark: &str, number: u64) -> io::Result<Self> {
        let mut made = Self::nowhere(head);
        made.draft = Some(storage.create(head.path, &temporary(mark, number), head.mode & PERMISSIONS)?);
        Ok(made)
    }

    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let offset = self.length;
        self.grow(data.len() as u64)?;
        self.bytes += data.len() as u64;
        self.draft.as_mut().map_or(Ok(()), |draft| draft.write(offset, data))
    }

    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let begin = self.length;
        self.grow(bytes)?;
        if self.hole.end != begin {
            self.hole.start = begin;
        }
        self.hole.end = self.length;
        Ok(())
    }

    /// Adds `more` bytes. Fails if the file becomes longer than its head said.
    fn grow(&mut self, more: u64) -> io::Result<()> {
        self.length = self.length.checked_add(more).filter(|length| *length <= self.size).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "more of it came than its size, as its head has it")
        })?;
        Ok(())
    }

    /// Sets length, permissions and time after all content has come.
    pub(crate) fn complete(&mut self) -> io::Result<()> {
        if self.length != self.size {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it ended before its size"));
        }
        let length = self.length;
        let mode = self.mode & PERMISSIONS;
        let modified = self.modified;
        self.draft.as_mut().map_or(Ok(()), |draft| draft.complete(length, mode, modified))
    }

    /// Whether it goes anywhere.
    pub(crate) fn is_somewhere(&self) -> bool {
        self.draft.is_some()
    }

    /// Returns the draft in the storage.
    pub(crate) fn draft(&mut self) -> Option<&mut dyn Draft> {
        self.draft.as_mut().map(|draft| &mut **draft as _)
    }

    /// Gives it its name.
    pub(crate) fn name(&mut self) -> io::Result<()> {
        self.draft.as_mut().map_or(Ok(()), |draft| draft.name())
    }
}
