//! Files in a folder.

use super::call::{self, Information};
use super::entries::about;
use super::file_time;
use crate::entry::About;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem;
use std::os::windows::fs::FileExt as _;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, BorrowedHandle, OwnedHandle};
use std::ptr;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_BASIC_INFORMATION, FILE_STANDARD_INFORMATION, FileAttributeTagInformation, FileBasicInformation,
    FileStandardInformation,
};
use windows_sys::Wdk::System::SystemServices::FILE_ATTRIBUTE_TAG_INFORMATION;
use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_ARCHIVE, FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_SPARSE_FILE, FILE_ATTRIBUTE_SYSTEM,
};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{FILE_ALLOCATED_RANGE_BUFFER, FSCTL_QUERY_ALLOCATED_RANGES, FSCTL_SET_SPARSE};

/// Attributes that stay when the permissions change.
const KEPT: u32 = FILE_ATTRIBUTE_ARCHIVE | FILE_ATTRIBUTE_HIDDEN | FILE_ATTRIBUTE_SYSTEM;
/// Permission to write, of anybody.
const WRITE: u32 = 0o222;

// SAFETY: the structure is made of integers.
unsafe impl Information for FILE_ATTRIBUTE_TAG_INFORMATION {}

/// An open file of a folder.
#[derive(Debug)]
pub struct FolderFile {
    file: File,
    /// Whether it may have holes.
    sparse: bool,
}

impl FolderFile {
    pub(super) fn new(file: OwnedHandle) -> Self {
        Self { file: file.into(), sparse: false }
    }

    /// Takes a file that was there, and returns its attributes.
    pub(super) fn existing(file: OwnedHandle) -> io::Result<(Self, About)> {
        let sparse = super::attributes(file.as_handle())? & FILE_ATTRIBUTE_SPARSE_FILE != 0;
        let file = Self { file: file.into(), sparse };
        let about = file.about()?;
        Ok((file, about))
    }

    pub(super) fn handle(&self) -> BorrowedHandle<'_> {
        self.file.as_handle()
    }

    /// Returns the current attributes.
    ///
    /// # Errors
    /// The file system does not report them.
    pub fn about(&self) -> io::Result<About> {
        let basic: FILE_BASIC_INFORMATION = call::query(self.handle(), FileBasicInformation)?;
        let standard: FILE_STANDARD_INFORMATION = call::query(self.handle(), FileStandardInformation)?;
        let tag = if basic.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT == 0 {
            0
        } else {
            call::query::<FILE_ATTRIBUTE_TAG_INFORMATION>(self.handle(), FileAttributeTagInformation)?.ReparseTag
        };
        let size = u64::try_from(standard.EndOfFile).unwrap_or_default();
        Ok(about(basic.FileAttributes, tag, size, basic.LastWriteTime, basic.ChangeTime))
    }

    /// Reads bytes from `offset` on, and returns their number: 0 at the end.
    ///
    /// # Errors
    /// The storage fails.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.seek_read(into, offset)
    }

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// The storage fails or is full.
    pub fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while written < data.len() {
            match self.file.seek_write(&data[written..], offset + written as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                more => written += more,
            }
        }
        Ok(())
    }

    /// Returns the next range of data from `offset` on in a file of `size` bytes: before it is a hole.
    ///
    /// # Errors
    /// The file system does not report it.
    pub fn extent(&self, offset: u64, size: u64) -> io::Result<(u64, u64)> {
        if !self.sparse {
            return Ok((offset, size));
        }
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let asked = FILE_ALLOCATED_RANGE_BUFFER { FileOffset: signed(offset), Length: signed(size - offset) };
        let mut found = FILE_ALLOCATED_RANGE_BUFFER::default();
        let mut bytes = 0;
        // SAFETY: the system reads one structure of integers and writes one, both live, and the number of bytes written.
        let done = unsafe {
            DeviceIoControl(
                self.file.as_raw_handle(),
                FSCTL_QUERY_ALLOCATED_RANGES,
                ptr::from_ref(&asked).cast::<c_void>(),
                mem::size_of_val(&asked) as u32,
                ptr::from_mut(&mut found).cast::<c_void>(),
                mem::size_of_val(&found) as u32,
                &raw mut bytes,
                ptr::null_mut(),
            )
        };
        if done == 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(ERROR_MORE_DATA.cast_signed()) {
                return Err(error);
            }
        }
        if bytes == 0 {
            return Ok((size, size));
        }
        let begin = u64::try_from(found.FileOffset).unwrap_or_default().clamp(offset, size);
        let end = begin.saturating_add(u64::try_from(found.Length).unwrap_or_default()).min(size);
        Ok(if begin < end { (begin, end) } else { (size, size) })
    }

    /// Prepares the file for a hole. On a file system without holes, zeros take its place.
    pub fn allow_holes(&mut self) {
        if mem::replace(&mut self.sparse, true) {
            return;
        }
        let mut bytes = 0;
        // SAFETY: the call has no input and no output but the number of bytes written, which is live.
        unsafe {
            DeviceIoControl(
                self.file.as_raw_handle(),
                FSCTL_SET_SPARSE,
                ptr::null(),
                0,
                ptr::null_mut(),
                0,
                &raw mut bytes,
                ptr::null_mut(),
            )
        };
    }

    /// Makes the file `length` bytes long.
    ///
    /// # Errors
    /// The storage fails or is full.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    /// Makes the file read-only if nobody may write it according to `mode`, the one permission that Windows has as a bit, and gives it its
    /// time of last change, in nanoseconds since 1970.
    ///
    /// # Errors
    /// This user may not change them.
    pub fn settle(&self, mode: u32, modified: i64) -> io::Result<()> {
        let kept = super::attributes(self.handle())? & KEPT;
        let read_only = if mode & WRITE == 0 { FILE_ATTRIBUTE_READONLY } else { 0 };
        let attributes = if kept | read_only == 0 { FILE_ATTRIBUTE_NORMAL } else { kept | read_only };
        let settled = FILE_BASIC_INFORMATION {
            LastWriteTime: file_time(modified),
            FileAttributes: attributes,
            ..Default::default()
        };
        call::set(self.handle(), FileBasicInformation, &settled)
    }

    /// Makes content and attributes durable.
    ///
    /// # Errors
    /// The storage fails.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Makes the content durable.
    ///
    /// # Errors
    /// The storage fails.
    pub fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Does nothing: Windows takes no advice on its cache for an open file. What is read back may come from the cache.
    pub fn forget(&self) {}
}
