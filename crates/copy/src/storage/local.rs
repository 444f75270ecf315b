//! A folder of this host, by open handles: nothing leads out of it.

use super::{About, Draft, Found, Listing, OpenFile, Storage, What};
use crate::folders::Folders;
use nix::dir::{Dir, OwningIter};
use nix::fcntl::{AtFlags, OFlag, PosixFadviseAdvice, openat, posix_fadvise, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fchmod, fstat, fstatat, futimens, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, Whence, lseek, symlinkat, syncfs, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// A sparse file's blocks are counted in these.
const STAT_BLOCK: i64 = 512;
/// Permissions that a file may have before it is whole: those who may read it then may read what there is of it.
const AT_ONCE: u32 = 0o777;
/// The time of last access stays as it is.
const UNTOUCHED: TimeSpec = TimeSpec::UTIME_OMIT;

/// The folder, and the open folders on the way to what was last asked for.
pub(crate) struct LocalFolder {
    root: Arc<OwnedFd>,
    /// For what must be there, and for what is made.
    existing: Folders,
    made: Folders,
}

impl LocalFolder {
    /// The folder that is open as `root`.
    pub(crate) fn new(root: Arc<OwnedFd>) -> Self {
        let existing = Folders::existing(Arc::clone(&root));
        let made = Folders::made(Arc::clone(&root));
        Self { root, existing, made }
    }

    /// The folder called `name` in it, which is made if it is missing.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let folder = Folders::made(Arc::clone(&self.root)).at(name.as_bytes())?;
        Ok(Self::new(Arc::new(open_untouched(folder, OsStr::new("."), OFlag::O_DIRECTORY)?)))
    }

    /// Returns the folder for another thread.
    pub(crate) fn again(&self) -> Self {
        Self::new(Arc::clone(&self.root))
    }

    /// A descriptor of the folder.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }
}

/// Opens for reading without a trace where that is allowed: only a file's owner may leave its access time alone.
pub(crate) fn open_untouched(folder: impl AsFd, name: &OsStr, flags: OFlag) -> nix::Result<OwnedFd> {
    let flags = flags | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    match openat(&folder, name, flags | OFlag::O_NOATIME, Mode::empty()) {
        Err(nix::Error::EPERM) => openat(folder, name, flags, Mode::empty()),
        opened => opened,
    }
}

fn about(stat: &FileStat) -> About {
    let what = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => What::Folder,
        SFlag::S_IFREG => What::File { size: u64::try_from(stat.st_size).unwrap_or_default() },
        SFlag::S_IFLNK => What::Link,
        _ => What::Other,
    };
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    About {
        mode: stat.st_mode & 0o7777,
        modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
        changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
        what,
    }
}

/// A time for the system.
fn time(nanos: i64) -> TimeSpec {
    TimeSpec::new(nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
}

impl Storage for LocalFolder {
    fn another(&self) -> Box<dyn Storage> {
        Box::new(self.again())
    }

    fn below(&self, name: &str) -> io::Result<Box<dyn Storage>> {
        Ok(Box::new(self.folder(name)?))
    }

    fn device(&self) -> Option<u64> {
        fstat(&self.root).ok().map(|about| about.st_dev)
    }

    fn is_here(&self) -> bool {
        true
    }

    fn list(&mut self, path: &[u8]) -> io::Result<Listing> {
        let (parent, name) =
            if path.is_empty() { (Arc::clone(&self.root), OsStr::new(".")) } else { self.existing.parent(path)? };
        let handle = open_untouched(parent, name, OFlag::O_DIRECTORY)?;
        let names = Dir::from_fd(handle.try_clone()?)?.into_iter();
        Ok(Box::new(Names { handle, names }))
    }

    fn about(&mut self, path: &[u8]) -> io::Result<About> {
        let (parent, name) = self.existing.parent(path)?;
        Ok(about(&fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?))
    }

    fn read_link(&mut self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (parent, name) = self.existing.parent(path)?;
        Ok(readlinkat(&parent, name)?.into_vec())
    }

    fn open(&mut self, path: &[u8]) -> io::Result<(Box<dyn OpenFile>, About)> {
        let (parent, name) = self.existing.parent(path)?;
        let file = open_untouched(&parent, name, OFlag::empty())?;
        let stat = fstat(&file)?;
        let sparse = stat.st_blocks.saturating_mul(STAT_BLOCK) < stat.st_size;
        Ok((Box::new(LocalFile { file: file.into(), sparse }), about(&stat)))
    }

    fn make_folder(&mut self, path: &[u8]) -> io::Result<()> {
        self.made.at(path).map(drop)
    }

    fn create(&mut self, path: &[u8], temporary: &str, mode: u32) -> io::Result<Box<dyn Draft>> {
        let (folder, name) = self.made.parent(path)?;
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&folder, temporary, flags, Mode::from_bits_truncate(mode & AT_ONCE))?;
        let temporary = OsString::from(temporary);
        let name = name.to_owned();
        Ok(Box::new(LocalDraft { file: file.into(), end: 0, folder, temporary, name, named: false }))
    }

    fn make_link(&mut self, path: &[u8], temporary: &str, target: &[u8], modified: i64) -> io::Result<()> {
        let (folder, name) = self.made.parent(path)?;
        symlinkat(OsStr::from_bytes(target), &folder, temporary)?;
        let made = utimensat(&folder, temporary, &UNTOUCHED, &time(modified), UtimensatFlags::NoFollowSymlink)
            .and_then(|()| renameat(&folder, temporary, &folder, name));
        if made.is_err() {
            remove(&folder, OsStr::new(temporary));
        }
        Ok(made?)
    }

    fn settle_folder(&mut self, path: &[u8], mode: u32, modified: i64) -> io::Result<()> {
        let (parent, name) = self.existing.parent(path)?;
        let folder = open_untouched(&parent, name, OFlag::O_DIRECTORY)?;
        fchmod(&folder, Mode::from_bits_truncate(mode))?;
        Ok(futimens(&folder, &UNTOUCHED, &time(modified))?)
    }

    fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.existing.parent(path)?;
        Ok(unlinkat(&parent, name, UnlinkatFlags::NoRemoveDir)?)
    }

    fn syncs_at_once(&self) -> bool {
        true
    }

    fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.root)?)
    }
}

/// A folder that is being listed.
struct Names {
    handle: OwnedFd,
    names: OwningIter,
}

impl Iterator for Names {
    type Item = io::Result<Found>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let name = match self.names.next()? {
                Ok(entry) => entry.file_name().to_bytes().to_vec(),
                Err(error) => return Some(Err(error.into())),
            };
            if !matches!(&name[..], b"." | b"..") {
                let stat = fstatat(&self.handle, OsStr::from_bytes(&name), AtFlags::AT_SYMLINK_NOFOLLOW);
                let about = stat.map(|stat| about(&stat)).map_err(io::Error::from);
                return Some(Ok(Found { name, about }));
            }
        }
    }
}

struct LocalFile {
    file: File,
    sparse: bool,
}

impl OpenFile for LocalFile {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn about(&mut self) -> io::Result<About> {
        Ok(about(&fstat(&self.file)?))
    }

    fn extent(&mut self, offset: u64, size: u64) -> io::Result<(u64, u64)> {
        if !self.sparse {
            return Ok((offset, size));
        }
        let seek = |offset: u64, whence| lseek(&self.file, i64::try_from(offset).unwrap_or(i64::MAX), whence);
        let data = match seek(offset, Whence::SeekData) {
            Ok(data) => u64::try_from(data).unwrap_or_default().min(size),
            // Nothing but a hole is left.
            Err(nix::Error::ENXIO) => return Ok((size, size)),
            Err(error) => return Err(error.into()),
        };
        if data >= size {
            return Ok((size, size));
        }
        let end = u64::try_from(seek(data, Whence::SeekHole)?).unwrap_or_default();
        Ok((data, end.clamp(data + 1, size)))
    }

    fn forget(&mut self) {
        // Advice that is not taken leaves the cache as it was.
        let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }
}

struct LocalDraft {
    file: File,
    /// End of the written data.
    end: u64,
    folder: Arc<OwnedFd>,
    temporary: OsString,
    name: OsString,
    named: bool,
}

impl Draft for LocalDraft {
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)?;
        self.end = offset + data.len() as u64;
        Ok(())
    }

    fn complete(&mut self, length: u64, mode: u32, modified: i64) -> io::Result<()> {
        if self.end != length {
            self.file.set_len(length)?;
        }
        // Mostly it was made with them; the process's mask or the folder's own rules may have taken some away.
        if fstat(&self.file)?.st_mode & 0o7777 != mode {
            fchmod(&self.file, Mode::from_bits_truncate(mode))?;
        }
        Ok(futimens(&self.file, &UNTOUCHED, &time(modified))?)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn forget(&mut self) -> io::Result<()> {
        // Durable data can be taken from the cache. Advice may be ignored.
        self.file.sync_data()?;
        let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        Ok(())
    }

    fn read<'a>(&'a mut self, offset: u64, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let read = self.file.read_at(room, offset)?;
        Ok(&room[..read])
    }

    fn name(&mut self) -> io::Result<()> {
        renameat(&self.folder, self.temporary.as_os_str(), &self.folder, self.name.as_os_str())?;
        self.named = true;
        Ok(())
    }
}

impl Drop for LocalDraft {
    fn drop(&mut self) {
        if !self.named {
            remove(&self.folder, &self.temporary);
        }
    }
}

/// Removes a file, as well as can be.
fn remove(folder: &OwnedFd, name: &OsStr) {
    // One that cannot be removed keeps its temporary name, by which the next `--resume` knows it.
    let _ = unlinkat(folder, name, UnlinkatFlags::NoRemoveDir);
}
