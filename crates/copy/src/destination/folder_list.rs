//! Modes and times that folders get when all is in them. A source may send any number of folders, so all but the last
//! of them wait in a file of the destination.

use super::root::temporary;
use crate::storage::{Draft, Storage};
use std::io;

/// Bytes of the part in memory.
const PART: usize = 1 << 20;
/// Bytes before each path: mode, time, length.
const HEAD: usize = 4 + 8 + 4;
/// Bytes after each part in the file: its length, so that the file can be read backwards.
const TAIL: usize = 4;
/// Bytes read from the file at a time.
const PIECE: usize = 64 << 10;

/// Memory that a list takes at most: the part, the places in it, and the path that did not fit.
pub(crate) const FOLDER_LIST_MEMORY: u64 = 3 * PART as u64;

/// A folder, and what it is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Folder<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) modified: i64,
}

/// Folders in the order in which they came.
#[derive(Default)]
pub(crate) struct FolderList {
    /// The last of them, packed.
    part: Vec<u8>,
    /// Parts before that.
    file: Option<Box<dyn Draft>>,
    /// Bytes in the file.
    length: u64,
}

impl FolderList {
    /// Adds a folder. The file is made in `storage`, for the copy with `mark`, when the part is full.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub(crate) fn add(
        &mut self,
        folder: Folder<'_>,
        (storage, mark, number): (&mut dyn Storage, &str, u64),
    ) -> io::Result<()> {
        let Folder { path, mode, modified } = folder;
        if self.part.len() + HEAD + path.len() + TAIL > PART {
            if self.file.is_none() {
                self.file = Some(storage.create(b"folders", &temporary(mark, number), 0o600)?);
            }
            self.move_part()?;
        }
        self.part.extend_from_slice(&mode.to_le_bytes());
        self.part.extend_from_slice(&modified.to_le_bytes());
        self.part.extend_from_slice(&(path.len() as u32).to_le_bytes());
        self.part.extend_from_slice(path);
        Ok(())
    }

    /// Appends the part to the file.
    fn move_part(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let tail = (self.part.len() as u32).to_le_bytes();
        self.part.extend_from_slice(&tail);
        file.write(self.length, &self.part)?;
        self.length += self.part.len() as u64;
        self.part.clear();
        Ok(())
    }

    /// Calls `settle` with each folder, those that came last first. Of those in one part, the deepest come first. Ends
    /// early if `settle` returns false.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn take(mut self, mut settle: impl FnMut(Folder<'_>) -> bool) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.complete(self.length, 0o600, 0)?;
        }
        loop {
            let mut folders: Vec<(u32, u32)> = Vec::new();
            let mut at = 0;
            while let Some(folder) = folder_at(&self.part, at) {
                let depth = folder.path.iter().filter(|byte| **byte == b'/').count();
                folders.push((depth as u32, at as u32));
                at += HEAD + folder.path.len();
            }
            folders.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
            for folder in folders.iter().filter_map(|(_, at)| folder_at(&self.part, *at as usize)) {
                if !settle(folder) {
                    return Ok(());
                }
            }
            if !self.read_part()? {
                return Ok(());
            }
        }
    }

    /// Takes the last part of the file into memory. Returns whether there was one.
    fn read_part(&mut self) -> io::Result<bool> {
        let Some(file) = self.file.as_mut().filter(|_| self.length >= TAIL as u64) else { return Ok(false) };
        let tail = self.length - TAIL as u64;
        self.part.clear();
        read(&mut **file, tail, TAIL, &mut self.part)?;
        let length = self.part[..].try_into().map_or(0, u32::from_le_bytes) as usize;
        self.length = tail.checked_sub(length as u64).ok_or(io::ErrorKind::InvalidData)?;
        self.part.clear();
        read(&mut **file, self.length, length, &mut self.part)?;
        Ok(true)
    }
}

/// Appends `count` bytes of `file` from `offset` on to `into`.
fn read(file: &mut dyn Draft, offset: u64, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let mut piece = vec![0; PIECE.min(count)];
    let end = into.len() + count;
    let begin = into.len();
    while into.len() < end {
        let most = piece.len().min(end - into.len());
        let some = file.read(offset + (into.len() - begin) as u64, &mut piece[..most])?;
        if some.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        into.extend_from_slice(some);
    }
    Ok(())
}

/// The folder that begins at `at` in `part`.
fn folder_at(part: &[u8], at: usize) -> Option<Folder<'_>> {
    let (mode, rest) = part.get(at..)?.split_first_chunk()?;
    let (modified, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let path = rest.get(..u32::from_le_bytes(*length) as usize)?;
    Some(Folder { path, mode: u32::from_le_bytes(*mode), modified: i64::from_le_bytes(*modified) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::local::LocalFolder;
    use linerate_sys::folder;
    use std::collections::BTreeSet;
    use std::fs;

    /// The attack: a source sends folders without end, and the destination keeps all of them in memory.
    #[test]
    fn a_list_of_many_folders_keeps_few_in_memory_and_loses_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut storage = LocalFolder::new(folder::Folder::open(folder.path()).expect("opened")).another();
        let mut list = FolderList::default();
        let count = 100_000_u32;
        for number in 0..count {
            let path = format!("{}/{number}", "deep/".repeat(number as usize % 3));
            let added = Folder { path: path.as_bytes(), mode: number, modified: -i64::from(number) };
            list.add(added, (&mut *storage, "mark", 1)).expect("added");
            assert!(list.part.capacity() <= 2 * PART + TAIL, "{} bytes in memory", list.part.capacity());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "a file of its own");
        let mut left: BTreeSet<u32> = (0..count).collect();
        list.take(|folder| {
            let path = format!("{}/{}", "deep/".repeat(folder.mode as usize % 3), folder.mode);
            assert_eq!((folder.path, folder.modified), (path.as_bytes(), -i64::from(folder.mode)));
            left.remove(&folder.mode)
        })
        .expect("read");
        assert!(left.is_empty(), "{} are lost", left.len());
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing is left");
    }

    #[test]
    fn those_within_go_before_those_around_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut storage = LocalFolder::new(folder::Folder::open(folder.path()).expect("opened")).another();
        let mut list = FolderList::default();
        for path in ["a", "a/b", "c", "a/b/d"] {
            let added = Folder { path: path.as_bytes(), mode: 0o755, modified: 0 };
            list.add(added, (&mut *storage, "mark", 1)).expect("added");
        }
        let mut order = Vec::new();
        list.take(|folder| {
            order.push(String::from_utf8_lossy(folder.path).into_owned());
            true
        })
        .expect("in memory");
        assert_eq!(order, ["a/b/d", "a/b", "a", "c"]);
    }
}
