//! Files in a folder.

use super::{UNTOUCHED, about, mode_bits, permissions, time};
use crate::entry::About;
use nix::sys::stat::{fchmod, fstat, futimens};
use nix::unistd::{Whence, lseek};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// A sparse file's blocks are counted in these.
const STAT_BLOCK: i64 = 512;

/// An open file of a folder.
#[derive(Debug)]
pub struct FolderFile {
    file: File,
    /// Whether it may have holes.
    sparse: bool,
}

impl FolderFile {
    pub(super) fn new(file: OwnedFd) -> Self {
        Self { file: file.into(), sparse: false }
    }

    /// Takes a file that was there, and returns its attributes.
    pub(super) fn existing(file: OwnedFd) -> io::Result<(Self, About)> {
        let stat = fstat(&file)?;
        let sparse = stat.st_blocks.saturating_mul(STAT_BLOCK) < stat.st_size;
        Ok((Self { file: file.into(), sparse }, about(&stat)))
    }

    /// Returns the current attributes.
    ///
    /// # Errors
    /// The file system does not report them.
    pub fn about(&self) -> io::Result<About> {
        Ok(about(&fstat(&self.file)?))
    }

    /// Reads bytes from `offset` on, and returns their number: 0 at the end.
    ///
    /// # Errors
    /// The storage fails.
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// The storage fails or is full.
    pub fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// Returns the next range of data from `offset` on in a file of `size` bytes: before it is a hole.
    ///
    /// # Errors
    /// The file system does not report it.
    pub fn extent(&self, offset: u64, size: u64) -> io::Result<(u64, u64)> {
        if !self.sparse {
            return Ok((offset, size));
        }
        let data = match self.seek(offset, Whence::SeekData) {
            Ok(data) => data.min(size),
            // Nothing but a hole is left.
            Err(nix::Error::ENXIO) => return Ok((size, size)),
            Err(error) => return Err(error.into()),
        };
        if data >= size {
            return Ok((size, size));
        }
        let end = self.seek(data, Whence::SeekHole)?;
        Ok((data, end.clamp(data + 1, size)))
    }

    fn seek(&self, offset: u64, whence: Whence) -> nix::Result<u64> {
        let found = lseek(&self.file, i64::try_from(offset).unwrap_or(i64::MAX), whence)?;
        Ok(u64::try_from(found).unwrap_or_default())
    }

    /// Prepares the file for a hole. Here every file may have them.
    pub fn allow_holes(&mut self) {}

    /// Makes the file `length` bytes long.
    ///
    /// # Errors
    /// The storage fails or is full.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    /// Gives the file its permissions and its time of last change, in nanoseconds since 1970.
    ///
    /// # Errors
    /// This user may not change them.
    pub fn settle(&self, mode: u32, modified: i64) -> io::Result<()> {
        // Mostly it was made with them; the process's mask or the folder's own rules may have taken some away.
        if mode_bits(&fstat(&self.file)?) != mode {
            fchmod(&self.file, permissions(mode))?;
        }
        Ok(futimens(&self.file, &UNTOUCHED, &time(modified))?)
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

    /// Advises the system's cache to let go of durable content, so that reading asks the storage (posix_fadvise(2)).
    #[cfg(not(target_os = "macos"))]
    pub fn forget(&self) {
        use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
        // Advice that is not taken leaves the cache as it was.
        let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }

    /// Does nothing: macOS takes no such advice for what is in its cache.
    #[cfg(target_os = "macos")]
    pub fn forget(&self) {}
}
