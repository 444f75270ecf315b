//! Entries of a folder.

use super::{call, unix_ns};
use crate::entry::{About, What};
use std::io;
use std::os::windows::io::{AsHandle as _, OwnedHandle};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DEVICE, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT,
};

/// Bytes that are read at a time.
const PIECE: usize = 32 << 10;
/// Permissions of folders and files, which Windows keeps in another form.
const FOLDER: u32 = 0o755;
const FILE: u32 = 0o644;
const READ_ONLY: u32 = 0o444;
/// Bit of the tags of reparse points that lead elsewhere (IsReparseTagNameSurrogate).
const NAME_SURROGATE: u32 = 0x2000_0000;

/// Places in FILE_FULL_DIR_INFORMATION.
const CHANGED_AT: usize = 32;
const MODIFIED_AT: usize = 24;
const SIZE_AT: usize = 40;
const ATTRIBUTES_AT: usize = 56;
const NAME_LENGTH_AT: usize = 60;
const TAG_AT: usize = 64;
const NAME_AT: usize = 68;

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) about: About,
}

/// Entries of a folder, `.` and `..` left out, that match a filter if there is one.
#[derive(Debug)]
pub(super) struct Entries {
    folder: OwnedHandle,
    filter: Option<String>,
    buffer: Vec<u64>,
    /// Bytes that were read, and how many of them were taken.
    bytes: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl Entries {
    /// Lists a folder that was opened for this and not listed yet.
    pub(super) fn of(folder: OwnedHandle, filter: Option<&str>) -> Self {
        let buffer = vec![0; PIECE / size_of::<u64>()];
        Self { folder, filter: filter.map(str::to_owned), buffer, bytes: Vec::new(), taken: 0, ended: false }
    }

    /// Reads the next entries. Returns whether there are any.
    fn read(&mut self) -> io::Result<bool> {
        let bytes = call::read_folder(self.folder.as_handle(), self.filter.as_deref(), &mut self.buffer)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes.unwrap_or_default());
        self.taken = 0;
        Ok(!self.bytes.is_empty())
    }

    /// Takes the next entry of those that were read. Its name is an error if it is not Unicode.
    fn take(&mut self) -> io::Result<(Result<String, String>, About)> {
        let record = &self.bytes[self.taken..];
        let u32_at = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let i64_at = |at: usize| Some(i64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let fields = || {
            let next = u32_at(0)? as usize;
            let length = u32_at(NAME_LENGTH_AT)? as usize;
            let name = record.get(NAME_AT..NAME_AT + length)?;
            let about = about(
                u32_at(ATTRIBUTES_AT)?,
                u32_at(TAG_AT)?,
                u64::try_from(i64_at(SIZE_AT)?).ok()?,
                i64_at(MODIFIED_AT)?,
                i64_at(CHANGED_AT)?,
            );
            Some((next, name, about))
        };
        let (next, name, about) = fields().ok_or(io::ErrorKind::InvalidData)?;
        let units: Vec<u16> = name.as_chunks().0.iter().map(|unit| u16::from_ne_bytes(*unit)).collect();
        let name = String::from_utf16(&units).map_err(|_| String::from_utf16_lossy(&units));
        self.taken = if next == 0 { self.bytes.len() } else { self.taken.saturating_add(next).min(self.bytes.len()) };
        Ok((name, about))
    }

    /// Returns the next entry, whatever its name.
    fn next_any(&mut self) -> io::Result<Option<(Result<String, String>, About)>> {
        loop {
            if self.taken == self.bytes.len() && !self.read()? {
                return Ok(None);
            }
            let (name, about) = self.take()?;
            if !matches!(name.as_deref(), Ok("." | "..")) {
                return Ok(Some((name, about)));
            }
        }
    }

    /// Returns the next entry of [`Listing`].
    fn next_listed(&mut self) -> Option<io::Result<(Vec<u8>, io::Result<About>)>> {
        if self.ended {
            return None;
        }
        let found = self.next_any().transpose();
        self.ended = !matches!(found, Some(Ok(_)));
        Some(found?.map(|(name, about)| match name {
            Ok(name) => (name.into_bytes(), Ok(about)),
            Err(lossy) => {
                let reason = "the name is not Unicode; rename it";
                (lossy.into_bytes(), Err(io::Error::new(io::ErrorKind::InvalidFilename, reason)))
            }
        }))
    }
}

/// Names that are not Unicode are left out: nobody asks for them.
impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_any().transpose()? {
                Ok((Ok(name), about)) => return Some(Ok(Entry { name, about })),
                Ok((Err(_), _)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Entries of a folder, `.` and `..` left out: names and attributes. An error ends it.
#[derive(Debug)]
pub struct Listing(Entries);

impl Listing {
    pub(super) fn new(entries: Entries) -> Self {
        Self(entries)
    }
}

impl Iterator for Listing {
    type Item = io::Result<(Vec<u8>, io::Result<About>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_listed()
    }
}

/// Returns the attributes of an entry; `tag` counts for reparse points only.
pub(super) fn about(attributes: u32, tag: u32, size: u64, modified: i64, changed: i64) -> About {
    let has = |attribute: u32| attributes & attribute != 0;
    let (what, mode) = if has(FILE_ATTRIBUTE_REPARSE_POINT) {
        (if tag & NAME_SURROGATE == 0 { What::Other } else { What::Link }, FILE)
    } else if has(FILE_ATTRIBUTE_DIRECTORY) {
        (What::Folder, FOLDER)
    } else if has(FILE_ATTRIBUTE_DEVICE) {
        (What::Other, FILE)
    } else {
        (What::File { size }, if has(FILE_ATTRIBUTE_READONLY) { READ_ONLY } else { FILE })
    };
    About { mode, modified: unix_ns(modified), changed: unix_ns(changed), what }
}
