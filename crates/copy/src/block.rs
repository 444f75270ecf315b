//! Blocks of records, which flow from the reading to the writing end, in memory as on the wire.
//!
//! A block holds many small files or a part of a large one, so that neither a file nor a byte costs a step of its own.
//! A lane's records are in order: a file's data follow its head, and its end follows the data, some blocks later
//! perhaps.

use crate::entry::{LONGEST_PATH, is_inside};
use crossbeam_channel::{Receiver, Sender};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 512 << 10;
/// Blocks of a lane on one host, where its stages are threads; they are used again.
pub(crate) const BLOCKS: usize = 8;
/// Files that may begin in a block: each is open until the block has passed.
pub(crate) const FILES: usize = 32;
/// A file's data starts in a block only where at least this much of it has room, or all of it.
pub(crate) const WORTHWHILE: usize = 16 << 10;
/// The longest head of a record: two paths and their fields.
const LONGEST_HEAD: usize = 2 * LONGEST_PATH + 32;
/// Bytes of a hash.
pub(crate) const DIGEST: usize = blake3::OUT_LEN;

const FOLDER: u8 = 1;
const LINK: u8 = 2;
const FILE: u8 = 3;
const DATA: u8 = 4;
const HOLE: u8 = 5;
const END: u8 = 6;
const DROP: u8 = 7;
const LAST: u8 = 8;

/// Head of a data record.
const DATA_HEAD: usize = 1 + 4;

/// Record of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Folder {
        path: &'a [u8],
        mode: u32,
        modified: i64,
    },
    Link {
        path: &'a [u8],
        target: &'a [u8],
        modified: i64,
    },
    /// A file begins.
    File {
        path: &'a [u8],
        mode: u32,
        modified: i64,
        size: u64,
    },
    /// The next bytes of the file.
    Data(&'a [u8]),
    /// Zeros that need no storage, and their number.
    Hole(u64),
    /// The file is whole, and this is its hash.
    End {
        digest: &'a [u8; DIGEST],
    },
    /// The file will not become whole.
    Drop,
    /// Nothing more comes. Not all that there was, if the source gave up.
    Last {
        complete: bool,
    },
}

/// Bytes that are no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other end sent what is no part of a copy")]
pub(crate) struct Malformed;

/// A block. Dropped, its buffer goes back to where it came from.
pub(crate) struct Block {
    buffer: Option<Box<[u8]>>,
    used: usize,
    /// Files that begin in it.
    files: usize,
    home: Sender<Box<[u8]>>,
}

/// Pool of blocks.
#[derive(Clone)]
pub(crate) struct Blocks {
    free: Receiver<Box<[u8]>>,
    home: Sender<Box<[u8]>>,
}

impl Blocks {
    /// Makes a pool of `count` blocks, for one lane.
    pub(crate) fn new(count: usize) -> Self {
        let (home, free) = crossbeam_channel::bounded(count);
        for _ in 0..count {
            home.send(vec![0; BLOCK].into_boxed_slice()).expect("there is room, and the receiver is here");
        }
        Self { free, home }
    }

    /// An empty block, as soon as one is free. A lane always keeps the sending end, so that waiting ends.
    pub(crate) fn take(&self) -> Block {
        let buffer = self.free.recv().expect("the sender is here");
        Block { buffer: Some(buffer), used: 0, files: 0, home: self.home.clone() }
    }
}

impl Blocks {
    /// A block without a buffer, to stand in for one that was passed on.
    pub(crate) fn none(&self) -> Block {
        Block { buffer: None, used: 0, files: 0, home: self.home.clone() }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // Nobody is waiting for it once the lane is gone.
            let _ = self.home.try_send(buffer);
        }
    }
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer.as_deref().unwrap_or_default()[..self.used]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the whole buffer, to be filled from the wire with `used` bytes, or `None` if no block has that length.
    pub(crate) fn expect(&mut self, used: usize) -> Option<&mut [u8]> {
        self.used = used;
        self.buffer.as_deref_mut()?.get_mut(..used)
    }

    fn room(&self) -> usize {
        BLOCK - self.used
    }

    /// Returns whether there is room for any head and for a worthwhile part of `data` bytes after it.
    pub(crate) fn has_room(&self, data: u64) -> bool {
        let data = usize::try_from(data).unwrap_or(usize::MAX).min(WORTHWHILE);
        self.files < FILES && self.room() >= LONGEST_HEAD + DATA_HEAD + data + 1 + DIGEST
    }

    /// Returns the room for data after a head, in bytes, with the file's end taken off.
    pub(crate) fn data_room(&self) -> usize {
        self.room().saturating_sub(DATA_HEAD + 1 + DIGEST)
    }

    /// Room for `most` bytes of data; [`Self::commit_data`] says how many came.
    pub(crate) fn data_space(&mut self, most: usize) -> &mut [u8] {
        let start = self.used + DATA_HEAD;
        &mut self.buffer.as_deref_mut().unwrap_or_default()[start..start + most]
    }

    pub(crate) fn commit_data(&mut self, bytes: usize) {
        if bytes > 0 {
            self.put(&[DATA]);
            self.put(&(bytes as u32).to_le_bytes());
            self.used += bytes;
        }
    }

    pub(crate) fn folder(&mut self, path: &[u8], mode: u32, modified: i64) {
        self.put(&[FOLDER]);
        self.put(&mode.to_le_bytes());
        self.put(&modified.to_le_bytes());
        self.text(path);
    }

    pub(crate) fn link(&mut self, path: &[u8], target: &[u8], modified: i64) {
        self.put(&[LINK]);
        self.put(&modified.to_le_bytes());
        self.text(path);
        self.text(target);
    }

    pub(crate) fn file(&mut self, path: &[u8], mode: u32, modified: i64, size: u64) {
        self.files += 1;
        self.put(&[FILE]);
        self.put(&mode.to_le_bytes());
        self.put(&modified.to_le_bytes());
        self.put(&size.to_le_bytes());
        self.text(path);
    }

    pub(crate) fn hole(&mut self, bytes: u64) {
        self.put(&[HOLE]);
        self.put(&bytes.to_le_bytes());
    }

    /// The file's end; its hash is put in by [`Self::set_digest`].
    pub(crate) fn end(&mut self) {
        self.put(&[END]);
        self.put(&[0; DIGEST]);
    }

    pub(crate) fn drop_file(&mut self) {
        self.put(&[DROP]);
    }

    pub(crate) fn last(&mut self, complete: bool) {
        self.put(&[LAST, complete.into()]);
    }

    /// Puts a hash where `Record::End` begins at `at`.
    pub(crate) fn set_digest(&mut self, at: usize, digest: &[u8; DIGEST]) {
        self.buffer.as_deref_mut().unwrap_or_default()[at + 1..at + 1 + DIGEST].copy_from_slice(digest);
    }

    pub(crate) fn records(&self) -> Records<'_> {
        Records { bytes: self.bytes(), at: 0 }
    }

    fn put(&mut self, bytes: &[u8]) {
        let start = self.used;
        self.used += bytes.len();
        self.buffer.as_deref_mut().unwrap_or_default()[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn text(&mut self, text: &[u8]) {
        self.put(&(text.len() as u16).to_le_bytes());
        self.put(text);
    }
}

/// The records of a block, each with where it begins. Nothing comes after what is malformed.
pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let length = u16::from_le_bytes(*self.array()?);
        self.take(length.into())
    }

    fn path(&mut self) -> Result<&'a [u8], Malformed> {
        self.text().and_then(|path| if is_inside(path) { Ok(path) } else { Err(Malformed) })
    }

    fn record(&mut self) -> Result<Record<'a>, Malformed> {
        let [kind] = *self.array()?;
        Ok(match kind {
            FOLDER => {
                let mode = u32::from_le_bytes(*self.array()?);
                let modified = i64::from_le_bytes(*self.array()?);
                Record::Folder { path: self.path()?, mode, modified }
            }
            LINK => {
                let modified = i64::from_le_bytes(*self.array()?);
                Record::Link { path: self.path()?, target: self.text()?, modified }
            }
            FILE => {
                let mode = u32::from_le_bytes(*self.array()?);
                let modified = i64::from_le_bytes(*self.array()?);
                let size = u64::from_le_bytes(*self.array()?);
                Record::File { path: self.path()?, mode, modified, size }
            }
            DATA => {
                let length = u32::from_le_bytes(*self.array()?);
                Record::Data(self.take(length as usize)?)
            }
            HOLE => Record::Hole(u64::from_le_bytes(*self.array()?)),
            END => Record::End { digest: self.array()? },
            DROP => Record::Drop,
            LAST => Record::Last { complete: self.array()? == &[1] },
            _ => return Err(Malformed),
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(usize, Record<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if at >= self.bytes.len() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.at = self.bytes.len();
        }
        Some(record.map(|record| (at, record)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let blocks = Blocks::new(BLOCKS);
        let mut block = blocks.take();
        block.folder(b"a", 0o755, -5);
        block.file(b"a/b", 0o644, 7, 5);
        block.data_space(100)[..5].copy_from_slice(b"hello");
        block.commit_data(5);
        block.hole(1 << 40);
        block.end();
        block.link(b"a/c", b"../x", 9);
        block.drop_file();
        block.last(true);
        let ends: Vec<usize> = block
            .records()
            .filter_map(|record| match record {
                Ok((at, Record::End { .. })) => Some(at),
                _ => None,
            })
            .collect();
        block.set_digest(ends[0], &[3; DIGEST]);
        let records: Vec<Record<'_>> = block.records().map(|record| record.expect("whole").1).collect();
        assert_eq!(
            records,
            [
                Record::Folder { path: b"a", mode: 0o755, modified: -5 },
                Record::File { path: b"a/b", mode: 0o644, modified: 7, size: 5 },
                Record::Data(b"hello"),
                Record::Hole(1 << 40),
                Record::End { digest: &[3; DIGEST] },
                Record::Link { path: b"a/c", target: b"../x", modified: 9 },
                Record::Drop,
                Record::Last { complete: true },
            ]
        );
    }

    #[test]
    fn a_head_and_an_end_have_room_where_that_is_said() {
        let blocks = Blocks::new(BLOCKS);
        let mut block = blocks.take();
        let path = vec![b'a'; LONGEST_PATH];
        while block.has_room(u64::MAX) {
            block.file(&path, 0, 0, 0);
            assert!(block.data_room() >= WORTHWHILE);
            block.data_space(WORTHWHILE);
            block.commit_data(WORTHWHILE);
            block.end();
        }
        assert!(block.bytes().len() > BLOCK / 2 || block.files == FILES);
    }

    #[test]
    fn buffers_are_used_again() {
        let blocks = Blocks::new(BLOCKS);
        let all: Vec<Block> = (0..BLOCKS).map(|_| blocks.take()).collect();
        assert!(blocks.free.is_empty());
        drop(all);
        assert_eq!(blocks.free.len(), BLOCKS);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_lead_outside(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for record in (Records { bytes: &bytes, at: 0 }).flatten() {
                if let Record::File { path, .. } | Record::Folder { path, .. } | Record::Link { path, .. } = record.1 {
                    prop_assert!(is_inside(path));
                }
            }
        }
    }
}
