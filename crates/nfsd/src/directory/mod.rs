//! A directory of this host, served to others, and never left.
//!
//! Every path is opened by `openat2` from the exported directory with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and
//! RESOLVE_NO_XDEV: the kernel refuses what would lead out of it, through a link or onto another file system. The links
//! themselves are read and made like other objects, and followed by nobody here.
//!
//! Whatever is made belongs to the agent's user and gets no set-user-ID bit; devices, pipes and sockets are seen but
//! not opened.

mod attributes;
mod known;
#[cfg(test)]
mod tests;

use crate::handle::Handle;
use crate::memory::FILE_MAXIMUM;
use crate::store::{DirOpArgs, Entry, Made, Name, New, Removed, Result, Space, Store};
use attributes::{errno, status};
use known::{Known, ROOT};
use linerate_sys::folder::Folder;
use nfs3_types::nfs3::{
    Nfs3Option, createverf3, fattr3, ftype3, nfsstat3, nfstime3, sattr3, set_atime, set_mtime, stable_how, wcc_data,
};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2, readlinkat, renameat};
use nix::sys::stat::{Mode, futimens, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The bits of a mode that callers may set.
const MODE_BITS: u32 = 0o777;
/// The cookies of `.` and `..`.
const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

/// Returns a store of the directory at `path`, which the agent's owner named: links on the way are followed.
/// What callers learn of takes at most `memory` bytes.
pub(crate) fn open(path: &Path, memory: u64) -> std::io::Result<Arc<dyn Store>> {
    Ok(Arc::new(DirectoryStore::open(path, memory)?))
}

/// Returns a store of an open folder.
pub(crate) fn of_folder(folder: &Folder, memory: u64) -> std::io::Result<Arc<dyn Store>> {
    Ok(Arc::new(DirectoryStore::new(File::from(folder.descriptor()?), memory)?))
}

/// Returns what to do about an error of [`open`] or [`of_folder`].
pub(crate) fn remedy(error: &std::io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSYS | Errno::EPERM) => "openat2, which Linux has since 5.6, is not allowed or not there",
        _ => "it must be a directory that this user may read",
    }
}

/// A directory of this host.
#[derive(Debug)]
pub(crate) struct DirectoryStore {
    generation: u64,
    root: File,
    /// Held while something is opened by its path, so that nothing moves away meanwhile.
    known: RwLock<Known>,
    cookies: RandomState,
}

impl DirectoryStore {
    fn open(path: &Path, memory: u64) -> std::io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Self::new(File::from(nix::fcntl::open(path, flags, Mode::empty())?), memory)
    }

    /// Serves the directory that is open as `root`.
    pub(crate) fn new(root: File, memory: u64) -> std::io::Result<Self> {
        // Kernels before 5.6 do not have the call, and some containers do not let it pass.
        let inode = open_beneath(&root, c".", OFlag::O_PATH, Mode::empty())?.metadata()?.ino();
        let known = RwLock::new(Known::new(inode, memory));
        Ok(Self { generation: rand::random(), root, known, cookies: RandomState::new() })
    }

    fn handle(&self, id: u64) -> Handle {
        Handle { generation: self.generation, id }
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a known object, if it is still the same.
    fn open_known(&self, handle: Handle, flags: OFlag, kinds: &[ftype3]) -> Result<(File, Metadata)> {
        let id = handle.of(self.generation)?;
        let known = self.known();
        let object = known.get(id)?;
        if !kinds.is_empty() && !kinds.contains(&object.kind) {
            return Err(match (object.kind, kinds) {
                (_, [ftype3::NF3DIR]) => nfsstat3::NFS3ERR_NOTDIR,
                (ftype3::NF3DIR, [ftype3::NF3REG]) => nfsstat3::NFS3ERR_ISDIR,
                _ => nfsstat3::NFS3ERR_INVAL,
            });
        }
        let opened =
            open_beneath(&self.root, &known.path(id)?, flags, Mode::empty()).map_err(|error| match errno(error) {
                nfsstat3::NFS3ERR_NOENT | nfsstat3::NFS3ERR_NOTDIR => nfsstat3::NFS3ERR_STALE,
                other => other,
            })?;
        let metadata = attributes::of(&opened)?;
        let same = metadata.ino() == object.inode && attributes::kind(&metadata) == object.kind;
        if same { Ok((opened, metadata)) } else { Err(nfsstat3::NFS3ERR_STALE) }
    }

    fn open_directory(&self, handle: Handle) -> Result<(File, Metadata)> {
        self.open_known(handle, OFlag::O_PATH, &[ftype3::NF3DIR])
    }

    fn open_file(&self, handle: Handle, flags: OFlag) -> Result<(File, Metadata)> {
        self.open_known(handle, flags, &[ftype3::NF3REG])
    }

    /// Returns the object at a place in an open directory.
    fn child(&self, opened: &File, place: DirOpArgs<'_>) -> Result<(Handle, Metadata)> {
        let child = open_beneath(opened, &text(place.name)?, OFlag::O_PATH, Mode::empty()).map_err(errno)?;
        let metadata = attributes::of(&child)?;
        let parent = place.directory.of(self.generation)?;
        let id = self.known_mut().number(parent, place.name, metadata.ino(), attributes::kind(&metadata))?;
        Ok((self.handle(id), metadata))
    }

    /// Sets size, mode and times. The attributes of links and the owner of an object stay as they are.
    fn set(&self, object: Handle, to: &sattr3) -> Result<()> {
        let (_, metadata) = self.open_known(object, OFlag::O_PATH, &[])?;
        if let Nfs3Option::Some(size) = to.size {
            self.open_file(object, OFlag::O_WRONLY)?.0.set_len(size).map_err(|error| status(&error))?;
        }
        let accessed = access_time(to.atime);
        let modified = modification_time(to.mtime);
        let keeps_times = [accessed, modified] == [TimeSpec::UTIME_OMIT; 2];
        if (to.mode.is_none() && keeps_times) || metadata.is_symlink() {
            return Ok(());
        }
        let (opened, _) = self.open_known(object, OFlag::O_RDONLY, &[ftype3::NF3REG, ftype3::NF3DIR])?;
        if let Nfs3Option::Some(mode) = to.mode {
            let mode = Permissions::from_mode(mode & MODE_BITS);
            opened.set_permissions(mode).map_err(|error| status(&error))?;
        }
        if keeps_times { Ok(()) } else { futimens(&opened, &accessed, &modified).map_err(errno) }
    }

    /// A new file, which must not be there.
    fn make_file(&self, directory: &File, name: &CStr, mode: u32) -> Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        open_beneath(directory, name, flags, permissions(mode)).map_err(errno)
    }

    /// Makes `new` in an open directory.
    fn make_in(&self, directory: &File, place: DirOpArgs<'_>, new: New<'_>) -> Result<()> {
        let name = text(place.name)?;
        let mode = |attributes: &sattr3, usual: u32| match attributes.mode {
            Nfs3Option::Some(mode) => mode & MODE_BITS,
            Nfs3Option::None => usual,
        };
        match new {
            New::Guarded { attributes } => {
                self.make_file(directory, &name, mode(attributes, 0o644))?;
                self.set_new(directory, place, attributes)
            }
            New::Unchecked { attributes } => match self.make_file(directory, &name, mode(attributes, 0o644)) {
                Ok(_) => self.set_new(directory, place, attributes),
                Err(nfsstat3::NFS3ERR_EXIST) => {
                    let (found, metadata) = self.child(directory, place)?;
                    if metadata.is_file() { self.set(found, attributes) } else { Err(nfsstat3::NFS3ERR_EXIST) }
                }
                Err(other) => Err(other),
            },
            New::Exclusive { number } => match self.make_file(directory, &name, 0o644) {
                Ok(file) => {
                    let [accessed, modified] = as_times(number).map(|seconds| TimeSpec::new(i64::from(seconds), 0));
                    futimens(&file, &accessed, &modified).map_err(errno)
                }
                Err(nfsstat3::NFS3ERR_EXIST) => {
                    let (_, metadata) = self.child(directory, place)?;
                    let times = [metadata.atime(), metadata.mtime()];
                    let same = metadata.is_file() && times == as_times(number).map(i64::from);
                    if same { Ok(()) } else { Err(nfsstat3::NFS3ERR_EXIST) }
                }
                Err(other) => Err(other),
            },
            New::Directory { attributes } => {
                mkdirat(directory, name.as_c_str(), permissions(mode(attributes, 0o755))).map_err(errno)
            }
            New::Link { text, .. } => symlinkat(OsStr::from_bytes(text), directory, name.as_c_str()).map_err(errno),
        }
    }

    /// Sets what a file could not be made with.
    fn set_new(&self, directory: &File, place: DirOpArgs<'_>, attributes: &sattr3) -> Result<()> {
        let attributes = sattr3 { mode: Nfs3Option::None, ..attributes.clone() };
        let (made, _) = self.child(directory, place)?;
        self.set(made, &attributes)
    }
}

impl Store for DirectoryStore {
    fn root(&self) -> Handle {
        self.handle(ROOT)
    }

    fn verifier(&self) -> [u8; 8] {
        self.generation.to_be_bytes()
    }

    fn attributes(&self, object: Handle) -> Result<fattr3> {
        let (_, metadata) = self.open_known(object, OFlag::O_PATH, &[])?;
        Ok(attributes::all(&metadata))
    }

    fn set_attributes(&self, object: Handle, to: &sattr3, guard: Option<nfstime3>) -> Result<wcc_data> {
        let (opened, before) = self.open_known(object, OFlag::O_PATH, &[])?;
        if guard.is_some_and(|time| time != attributes::changed(&before)) {
            return Err(nfsstat3::NFS3ERR_NOT_SYNC);
        }
        let other = |wanted, own: u32| matches!(wanted, Nfs3Option::Some(wanted) if wanted != own);
        if other(to.uid, before.uid()) || other(to.gid, before.gid()) {
            return Err(nfsstat3::NFS3ERR_PERM);
        }
        self.set(object, to)?;
        Ok(attributes::change(&before, &attributes::of(&opened)?))
    }

    fn lookup(&self, place: DirOpArgs<'_>) -> Result<(Handle, fattr3)> {
        let (opened, _) = self.open_directory(place.directory)?;
        let (handle, metadata) = self.child(&opened, place)?;
        Ok((handle, attributes::all(&metadata)))
    }

    fn parent(&self, directory: Handle) -> Result<(Handle, fattr3)> {
        self.open_directory(directory)?;
        let parent = self.known().get(directory.id)?.parent;
        let parent = self.handle(parent);
        Ok((parent, self.attributes(parent)?))
    }

    fn link_text(&self, link: Handle) -> Result<(Vec<u8>, fattr3)> {
        let (opened, metadata) = self.open_known(link, OFlag::O_PATH, &[ftype3::NF3LNK])?;
        let text = readlinkat(&opened, c"").map_err(errno)?;
        Ok((text.into_vec(), attributes::all(&metadata)))
    }

    fn read(&self, file: Handle, offset: u64, count: u32, data: &mut Vec<u8>) -> Result<(bool, fattr3)> {
        let (opened, metadata) = self.open_file(file, OFlag::O_RDONLY)?;
        let count = metadata.len().saturating_sub(offset).min(u64::from(count)) as usize;
        let start = data.len();
        data.resize(start + count, 0);
        let mut length = 0;
        while length < count {
            match opened.read_at(&mut data[start + length..], offset + length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(status(&error)),
            }
        }
        data.truncate(start + length);
        Ok((offset.saturating_add(length as u64) >= metadata.len(), attributes::all(&metadata)))
    }

    fn write(&self, file: Handle, offset: u64, data: &[u8], stable: stable_how) -> Result<wcc_data> {
        let (opened, before) = self.open_file(file, OFlag::O_WRONLY)?;
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > FILE_MAXIMUM) {
            return Err(nfsstat3::NFS3ERR_FBIG);
        }
        let written = opened.write_all_at(data, offset).and_then(|()| match stable {
            stable_how::UNSTABLE => Ok(()),
            stable_how::DATA_SYNC => opened.sync_data(),
            stable_how::FILE_SYNC => opened.sync_all(),
        });
        written.map_err(|error| status(&error))?;
        Ok(attributes::change(&before, &attributes::of(&opened)?))
    }

    fn commit(&self, file: Handle) -> Result<wcc_data> {
        let (opened, before) = self.open_file(file, OFlag::O_WRONLY)?;
        opened.sync_all().map_err(|error| status(&error))?;
        Ok(attributes::change(&before, &attributes::of(&opened)?))
    }

    fn make(&self, place: DirOpArgs<'_>, new: New<'_>) -> Result<Made> {
        let (opened, before) = self.open_directory(place.directory)?;
        self.make_in(&opened, place, new)?;
        let (handle, metadata) = self.child(&opened, place)?;
        let directory = attributes::change(&before, &attributes::of(&opened)?);
        Ok(Made { handle, attributes: attributes::all(&metadata), directory })
    }

    fn remove(&self, place: DirOpArgs<'_>, what: Removed) -> Result<wcc_data> {
        let (opened, before) = self.open_directory(place.directory)?;
        let (_, removed) = self.child(&opened, place)?;
        let flag = match what {
            Removed::File => UnlinkatFlags::NoRemoveDir,
            Removed::Directory => UnlinkatFlags::RemoveDir,
        };
        {
            // In one piece: a new object could get the inode in between, and its number would be forgotten.
            let mut known = self.known_mut();
            unlinkat(&opened, text(place.name)?.as_c_str(), flag).map_err(errno)?;
            known.forget(removed.ino());
        }
        Ok(attributes::change(&before, &attributes::of(&opened)?))
    }

    fn rename(&self, from: DirOpArgs<'_>, to: DirOpArgs<'_>) -> Result<(wcc_data, wcc_data)> {
        let (source, source_before) = self.open_directory(from.directory)?;
        let (target, target_before) = self.open_directory(to.directory)?;
        let (_, moved) = self.child(&source, from)?;
        let replaced = self.child(&target, to).ok().filter(|(_, replaced)| replaced.ino() != moved.ino());
        let parent = to.directory.of(self.generation)?;
        {
            let mut known = self.known_mut();
            let old = text(from.name)?;
            let new = text(to.name)?;
            renameat(&source, old.as_c_str(), &target, new.as_c_str()).map_err(errno)?;
            if let Some((_, replaced)) = replaced {
                known.forget(replaced.ino());
            }
            known.number(parent, to.name, moved.ino(), attributes::kind(&moved))?;
        }
        let source = attributes::change(&source_before, &attributes::of(&source)?);
        Ok((source, attributes::change(&target_before, &attributes::of(&target)?)))
    }

    /// The names come in the order of a number made of each, so that a cookie stays good without anything being kept;
    /// every call reads the whole directory for it.
    fn list(&self, directory: Handle, cookie: u64, each: &mut dyn FnMut(Entry<'_>) -> bool) -> Result<(fattr3, bool)> {
        let (opened, metadata) = self.open_directory(directory)?;
        let (parent, _) = self.parent(directory)?;
        let parent = self.known().get(parent.id)?.inode;
        let mut names = vec![(DOT, metadata.ino(), b".".to_vec()), (DOT_DOT, parent, b"..".to_vec())];
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut listing = Dir::openat(&opened, c".", flags, Mode::empty()).map_err(errno)?;
        for entry in listing.iter() {
            let entry = entry.map_err(errno)?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                let number = (self.cookies.hash_one(name) >> 1).max(DOT_DOT + 1);
                names.push((number, entry.ino(), name.to_vec()));
            }
        }
        names.sort_unstable();
        let behind = names.partition_point(|(number, ..)| *number <= cookie);
        let mut entries = names[behind..].iter();
        let all = entries.all(|(cookie, file_id, name)| each(Entry { name, file_id: *file_id, cookie: *cookie }));
        Ok((attributes::all(&metadata), all))
    }

    fn space(&self) -> Result<Space> {
        let root = open_beneath(&self.root, c".", OFlag::O_RDONLY, Mode::empty()).map_err(errno)?;
        let all = fstatvfs(&root).map_err(errno)?;
        let bytes = |blocks: u64| blocks.saturating_mul(all.fragment_size());
        Ok(Space {
            bytes: bytes(all.blocks()),
            bytes_free: bytes(all.blocks_available()),
            files: all.files(),
            files_free: all.files_available(),
        })
    }
}

/// Opens what lies beneath `directory`, and nothing else.
fn open_beneath(directory: &File, path: &CStr, flags: OFlag, mode: Mode) -> nix::Result<File> {
    let resolve = ResolveFlag::RESOLVE_BENEATH
        | ResolveFlag::RESOLVE_NO_SYMLINKS
        | ResolveFlag::RESOLVE_NO_MAGICLINKS
        | ResolveFlag::RESOLVE_NO_XDEV;
    // A pipe that took a file's place must not hold the thread.
    let further = match flags.contains(OFlag::O_PATH) {
        true => OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW,
        false => OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY,
    };
    openat2(directory, path, OpenHow::new().flags(flags | further).mode(mode).resolve(resolve)).map(File::from)
}

fn text(name: Name<'_>) -> Result<CString> {
    CString::new(name.bytes()).map_err(|_| nfsstat3::NFS3ERR_INVAL)
}

fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & MODE_BITS)
}

/// An exclusive creation's number, kept as the file's two times, as servers do without a place of its own (RFC 1813
/// section 3.3.8).
fn as_times(number: createverf3) -> [u32; 2] {
    let (accessed, modified) = number.0.split_at(4);
    [accessed, modified].map(|half| half.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn access_time(to: set_atime) -> TimeSpec {
    match to {
        set_atime::DONT_CHANGE => TimeSpec::UTIME_OMIT,
        set_atime::SET_TO_SERVER_TIME => TimeSpec::UTIME_NOW,
        set_atime::SET_TO_CLIENT_TIME(time) => TimeSpec::new(i64::from(time.seconds), i64::from(time.nseconds)),
    }
}

fn modification_time(to: set_mtime) -> TimeSpec {
    match to {
        set_mtime::DONT_CHANGE => TimeSpec::UTIME_OMIT,
        set_mtime::SET_TO_SERVER_TIME => TimeSpec::UTIME_NOW,
        set_mtime::SET_TO_CLIENT_TIME(time) => TimeSpec::new(i64::from(time.seconds), i64::from(time.nseconds)),
    }
}
