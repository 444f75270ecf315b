//! The file system of a slow disk: the files of a folder as they are, in the disk's own time.

use super::head::{Head, Work};
use super::nodes::Nodes;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::fcntl::AT_FDCWD;
use nix::libc;
use nix::sys::stat::{UtimensatFlags, utimensat};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeSpec;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for which the kernel may cache names and attributes: nobody else changes a copy's folder.
const TRUE_FOR: Duration = Duration::from_secs(1);
/// Flags of files without cached content: the disk serves each byte.
const UNCACHED: FopenFlags = FopenFlags::FOPEN_DIRECT_IO;

/// The files of one folder.
pub(super) struct Files {
    head: Arc<Head>,
    nodes: Mutex<Nodes>,
    open: Mutex<(BTreeMap<u64, Open>, u64)>,
}

/// Object of a handle.
#[derive(Clone)]
enum Open {
    File(Arc<File>),
    Folder(Arc<Vec<(FileType, OsString)>>),
}

impl Files {
    /// Makes the files below `top`.
    pub(super) fn new(top: PathBuf, head: Arc<Head>) -> Self {
        Self { head, nodes: Mutex::new(Nodes::new(top)), open: Mutex::default() }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.nodes)
    }

    fn path(&self, number: INodeNo) -> io::Result<PathBuf> {
        self.nodes().path(number.0).ok_or_else(stale)
    }

    fn path_of(&self, folder: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        self.nodes().path_of(folder.0, name).ok_or_else(stale)
    }

    /// Replies with the entry `name` in `folder`, after `action` on its path.
    fn entry<T>(
        &self,
        folder: INodeNo,
        name: &OsStr,
        action: impl FnOnce(&Path) -> io::Result<T>,
    ) -> io::Result<(FileAttr, T)> {
        let path = self.path_of(folder, name)?;
        let created = action(&path)?;
        let about = fs::symlink_metadata(&path)?;
        Ok((attributes(self.nodes().tell(folder.0, name), &about), created))
    }

    fn keep(&self, open: Open) -> FileHandle {
        let (all, next) = &mut *lock(&self.open);
        *next += 1;
        all.insert(*next, open);
        FileHandle(*next)
    }

    fn file(&self, handle: FileHandle) -> io::Result<Arc<File>> {
        match lock(&self.open).0.get(&handle.0) {
            Some(Open::File(file)) => Ok(Arc::clone(file)),
            _ => Err(stale()),
        }
    }

    fn close(&self, handle: FileHandle, reply: ReplyEmpty) {
        lock(&self.open).0.remove(&handle.0);
        reply.ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stale() -> io::Error {
    io::Error::from_raw_os_error(libc::ESTALE)
}

/// Returns the attributes for the kernel.
fn attributes(number: u64, about: &Metadata) -> FileAttr {
    let since_1970 = |seconds: i64, nanos: i64| {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let whole = if seconds < 0 { UNIX_EPOCH - whole } else { UNIX_EPOCH + whole };
        whole + Duration::from_nanos(nanos.unsigned_abs())
    };
    let changed = since_1970(about.ctime(), about.ctime_nsec());
    FileAttr {
        ino: INodeNo(number),
        size: about.size(),
        blocks: about.blocks(),
        atime: since_1970(about.atime(), about.atime_nsec()),
        mtime: since_1970(about.mtime(), about.mtime_nsec()),
        ctime: changed,
        crtime: changed,
        kind: FileType::from_std(about.file_type()).unwrap_or(FileType::RegularFile),
        perm: (about.mode() & 0o7777) as u16,
        nlink: about.nlink() as u32,
        uid: about.uid(),
        gid: about.gid(),
        rdev: about.rdev() as u32,
        blksize: about.blksize() as u32,
        flags: 0,
    }
}

/// A time to be set; what is not to be set stays.
fn to_set(time: Option<TimeOrNow>) -> TimeSpec {
    match time {
        None => TimeSpec::UTIME_OMIT,
        Some(TimeOrNow::Now) => TimeSpec::UTIME_NOW,
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(since) => TimeSpec::new(since.as_secs() as i64, i64::from(since.subsec_nanos())),
            // Whole seconds before 1970, and nanoseconds on from there.
            Err(before) => {
                let before = before.duration();
                let seconds = before.as_secs() as i64;
                let nanos = i64::from(before.subsec_nanos());
                if nanos == 0 { TimeSpec::new(-seconds, 0) } else { TimeSpec::new(-seconds - 1, 1_000_000_000 - nanos) }
            }
        },
    }
}

/// Replies to a request that takes the disk no time.
macro_rules! answer {
    ($reply:ident, $done:expr, $told:pat => $tell:expr) => {
        match $done {
            Ok($told) => $tell,
            Err(error) => $reply.error(Errno::from(error)),
        }
    };
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer!(reply, self.entry(folder, name, |_| Ok(())), (about, ()) => reply.entry(&TRUE_FOR, &about, Generation(0)));
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        self.nodes().forget(number.0, times);
    }

    fn getattr(&self, _: &Request, number: INodeNo, handle: Option<FileHandle>, reply: ReplyAttr) {
        let about = match handle.and_then(|handle| self.file(handle).ok()) {
            Some(file) => file.metadata(),
            None => self.path(number).and_then(fs::symlink_metadata),
        };
        answer!(reply, about, about => reply.attr(&TRUE_FOR, &attributes(number.0, &about)));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || -> io::Result<Metadata> {
            let path = self.path(number)?;
            if let Some(mode) = mode {
                fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777))?;
            }
            if user.is_some() || group.is_some() {
                lchown(&path, user, group)?;
            }
            if let Some(size) = size {
                OpenOptions::new().write(true).open(&path)?.set_len(size)?;
            }
            if accessed.is_some() || modified.is_some() {
                utimensat(AT_FDCWD, &path, &to_set(accessed), &to_set(modified), UtimensatFlags::NoFollowSymlink)?;
            }
            fs::symlink_metadata(&path)
        };
        answer!(reply, set(), about => reply.attr(&TRUE_FOR, &attributes(number.0, &about)));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = self.path(number).and_then(fs::read_link);
        answer!(reply, target, target => reply.data(target.as_os_str().as_encoded_bytes()));
    }

    fn mkdir(&self, _: &Request, folder: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let made = self.entry(folder, name, |path| fs::DirBuilder::new().mode(mode & !umask).create(path));
        answer!(reply, made, (about, ()) => reply.entry(&TRUE_FOR, &about, Generation(0)));
    }

    fn symlink(&self, _: &Request, folder: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let made = self.entry(folder, name, |path| symlink(target, path));
        answer!(reply, made, (about, ()) => reply.entry(&TRUE_FOR, &about, Generation(0)));
    }

    fn unlink(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.path_of(folder, name).and_then(fs::remove_file);
        answer!(reply, removed, () => {
            self.nodes().remove(folder.0, name);
            reply.ok();
        });
    }

    fn rmdir(&self, _: &Request, folder: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.path_of(folder, name).and_then(fs::remove_dir);
        answer!(reply, removed, () => {
            self.nodes().remove(folder.0, name);
            reply.ok();
        });
    }

    fn rename(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        to_folder: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() {
            // The kernel tries without.
            return reply.error(Errno::EINVAL);
        }
        let renamed = || fs::rename(self.path_of(folder, name)?, self.path_of(to_folder, to_name)?);
        answer!(reply, renamed(), () => {
            self.nodes().rename((folder.0, name), (to_folder.0, to_name));
            reply.ok();
        });
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let mode = flags.acc_mode();
        let mut options = OpenOptions::new();
        options.read(mode != OpenAccMode::O_WRONLY).write(mode != OpenAccMode::O_RDONLY);
        let opened = self.path(number).and_then(|path| options.open(path));
        answer!(reply, opened, file => {
            let handle = self.keep(Open::File(Arc::new(file)));
            self.head.after(Work::Access, move || reply.opened(handle, UNCACHED));
        });
    }

    fn create(
        &self,
        _: &Request,
        folder: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).create_new(flags & libc::O_EXCL != 0).mode(mode & !umask);
        let made = self.entry(folder, name, |path| options.open(path));
        answer!(reply, made, (about, file) => {
            let handle = self.keep(Open::File(Arc::new(file)));
            self.head.after(Work::Access, move || reply.created(&TRUE_FOR, &about, Generation(0), handle, UNCACHED));
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        let count = self.file(handle).and_then(|file| read_all_at(&file, &mut bytes, offset));
        answer!(reply, count, count => {
            bytes.truncate(count);
            self.head.after(Work::Read(count), move || reply.data(&bytes));
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.file(handle).and_then(|file| file.write_all_at(data, offset));
        answer!(reply, written, () => {
            let bytes = data.len();
            self.head.after(Work::Write(bytes), move || reply.written(bytes as u32));
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.file(handle).and_then(|file| file.sync_all()), () => reply.ok());
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close(handle, reply);
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let list = || -> io::Result<Vec<_>> {
            let entries = fs::read_dir(self.path(number)?)?.map(|entry| {
                let entry = entry?;
                let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
                Ok((kind, entry.file_name()))
            });
            let dots = [".", ".."].map(|name| Ok((FileType::Directory, OsString::from(name))));
            dots.into_iter().chain(entries).collect()
        };
        answer!(reply, list(), list => reply.opened(self.keep(Open::Folder(Arc::new(list))), FopenFlags::empty()));
    }

    fn readdir(&self, _: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let Some(Open::Folder(list)) = lock(&self.open).0.get(&handle.0).cloned() else {
            return reply.error(Errno::from(stale()));
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        for (at, (kind, name)) in list.iter().enumerate().skip(start) {
            // Numbers in a list mean nothing: the kernel asks for those of the names that it wants.
            if reply.add(number, at as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.close(handle, reply);
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        let about = self.path(number).and_then(|path| Ok(statvfs(&path)?));
        answer!(reply, about, about => reply.statfs(
            about.blocks(),
            about.blocks_free(),
            about.blocks_available(),
            about.files(),
            about.files_free(),
            about.block_size() as u32,
            about.name_max() as u32,
            about.fragment_size() as u32,
        ));
    }
}

/// Reads until `bytes` are full or the file ends.
fn read_all_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], offset + length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_before_1970_are_whole_seconds_and_nanoseconds_on() {
        let set = |time: SystemTime| to_set(Some(TimeOrNow::SpecificTime(time)));
        assert_eq!(set(UNIX_EPOCH + Duration::new(7, 5)), TimeSpec::new(7, 5));
        assert_eq!(set(UNIX_EPOCH - Duration::new(7, 5)), TimeSpec::new(-8, 999_999_995));
        assert_eq!(set(UNIX_EPOCH - Duration::new(7, 0)), TimeSpec::new(-7, 0));
        assert_eq!(to_set(None), TimeSpec::UTIME_OMIT);
    }
}
