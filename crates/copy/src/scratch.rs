//! Scratch folders: made for one copy, and removed with all that is in them when it ends.
//!
//! Descriptors are used for everything, so that a link that takes a folder's place leads nowhere.

use crate::CopyError;
use crate::removal;
use crate::storage::local::{LocalFolder, open_untouched};
use linerate_units::ByteCount;
use nix::dir::Dir;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, mkdirat};
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Beginning of the names of scratch folders.
const PREFIX: &str = "linerate-copy-";
/// A folder of a copy that is this old has its lock, if it is to have one.
const SETTLED: Duration = Duration::from_secs(60);
/// Names that are tried before it is given up; each is one of 2^64.
const ATTEMPTS: usize = 8;

/// A folder that is removed with all that is in it.
pub(crate) struct Scratch {
    pub(crate) storage: LocalFolder,
    home: OwnedFd,
    name: OsString,
    /// Path, for messages.
    path: PathBuf,
    /// Scratch folder. Its lock shows that its copy still runs.
    folder: File,
    removed: bool,
}

impl Scratch {
    /// Makes one with room for `bytes` in the folder at `home`, which the agent's owner named.
    pub(crate) fn new(home: &Path, bytes: ByteCount) -> Result<Self, CopyError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let opened = nix::fcntl::open(home, flags, Mode::empty()).map_err(io::Error::from);
        let opened = opened.map_err(CopyError::at("open", home))?;
        let free = fstatvfs(&opened).map_err(|error| CopyError::at("statvfs", home)(error.into()))?;
        let free = ByteCount::new(free.blocks_available().saturating_mul(free.fragment_size()));
        if free < bytes {
            return Err(CopyError::NoRoom { path: home.display().to_string(), needed: bytes, free });
        }
        sweep(&opened);
        let (name, folder) = make(&opened).map_err(CopyError::at("mkdir", home))?;
        let path = home.join(&name);
        let folder = File::from(folder);
        folder.lock().map_err(CopyError::at("flock", &path))?;
        let root = open_untouched(&folder, OsStr::new("."), OFlag::O_DIRECTORY).map_err(io::Error::from);
        let storage = LocalFolder::new(Arc::new(root.map_err(CopyError::at("open", &path))?));
        Ok(Self { storage, home: opened, name, path, folder, removed: false })
    }

    /// Removes the folder. Returns what remains and why, or `None` if all is gone.
    pub(crate) fn remove(mut self) -> Option<String> {
        self.clear().err().map(|error| format!("the folder {}: {error}", self.path.display()))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.removed = true;
        removal::empty(&self.folder)?;
        unlinkat(&self.home, self.name.as_os_str(), UnlinkatFlags::RemoveDir)?;
        // Another folder may have had its name. File systems in user space and NFS no longer find a removed folder.
        match fstat(&self.folder).map(|about| about.st_nlink) {
            Ok(0) | Err(nix::Error::ENOENT | nix::Error::ESTALE) => Ok(()),
            Ok(_) => Err(io::Error::other("it was moved, and is empty now")),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            // The copy has failed already, and its error is reported. The next copy sweeps the remains.
            let _ = self.clear();
        }
    }
}

/// A new folder in `home`: its name and the folder itself.
fn make(home: &OwnedFd) -> io::Result<(OsString, OwnedFd)> {
    for attempt in 0..ATTEMPTS {
        let name = OsString::from(format!("{PREFIX}{:016x}", RandomState::new().hash_one(attempt)));
        match mkdirat(home, name.as_os_str(), Mode::S_IRWXU) {
            Err(nix::Error::EEXIST) => continue,
            made => made?,
        }
        let folder = open_folder(home, &name)?;
        let mut entries = Dir::from_fd(folder.try_clone()?)?.into_iter().flatten();
        let empty = entries.all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."));
        if !empty || fstat(&folder)?.st_uid != geteuid().as_raw() {
            return Err(io::Error::other("another folder took the place of the new one"));
        }
        return Ok((name, folder));
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes folders of copies with a killed agent: nobody holds their locks any more. What cannot be removed now is
/// tried again by the next copy.
fn sweep(home: &OwnedFd) {
    let names = open_folder(home, OsStr::new(".")).map_err(io::Error::from).and_then(|home| Ok(Dir::from_fd(home)?));
    for entry in names.into_iter().flatten().flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if !name.as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Ok(folder) = open_folder(home, name) else { continue };
        let folder = File::from(folder);
        if fstat(&folder).is_ok_and(|about| is_old(&about))
            && folder.try_lock().is_ok()
            && removal::empty(&folder).is_ok()
        {
            let _ = unlinkat(home, name, UnlinkatFlags::RemoveDir);
        }
    }
}

fn is_old(about: &FileStat) -> bool {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let made = Duration::from_secs(u64::try_from(about.st_mtime).unwrap_or_default());
    about.st_uid == geteuid().as_raw() && now.checked_sub(made).is_some_and(|age| age > SETTLED)
}

fn open_folder(above: &OwnedFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage as _;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_folder_that_a_killed_copy_left_is_swept_and_no_other() {
        let home = tempfile::tempdir().expect("a folder");
        let old = std::time::SystemTime::now() - SETTLED * 2;
        let made = ["linerate-copy-dead", "linerate-copy-new", "others"].map(|name| {
            let path = home.path().join(name);
            fs::create_dir_all(path.join("below")).expect("made");
            path
        });
        for path in [&made[0], &made[2]] {
            File::open(path).expect("opened").set_modified(old).expect("set");
        }
        let live = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
        let _other = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
        assert_eq!(made.map(|path| path.exists()), [false, true, true]);
        assert!(live.storage.another().list(b"").is_ok());
    }

    #[test]
    fn scratch_is_gone_at_the_end_and_never_larger_than_the_disk() {
        let home = tempfile::tempdir().expect("a folder");
        let inside = || fs::read_dir(home.path()).expect("listed").next().expect("one").expect("read").path();
        let [removed, dropped] = [(); 2].map(|()| {
            let scratch = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
            let inside = inside();
            fs::create_dir_all(inside.join("a/b")).expect("made");
            fs::write(inside.join("a/b/file"), "x").expect("written");
            for (name, mode) in [("a/b", 0o000), ("a", 0o500)] {
                fs::set_permissions(inside.join(name), Permissions::from_mode(mode)).expect("set");
            }
            (scratch, inside)
        });
        assert_eq!(removed.0.remove(), None);
        assert!(!removed.1.exists());
        drop(dropped.0);
        assert!(!dropped.1.exists());
        assert!(matches!(Scratch::new(home.path(), ByteCount::new(1 << 60)), Err(CopyError::NoRoom { .. })));
    }

    #[test]
    fn a_scratch_folder_that_was_moved_is_emptied_and_told() {
        let home = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
        let made = scratch.path.clone();
        let moved = home.path().join("moved");
        fs::rename(&made, &moved).expect("moved");
        fs::write(moved.join("file"), "x").expect("written");
        fs::create_dir(&made).expect("another");
        let remains = scratch.remove().expect("it stays");
        assert!(remains.contains("moved"), "{remains}");
        assert_eq!(fs::read_dir(&moved).expect("listed").count(), 0);
    }
}
