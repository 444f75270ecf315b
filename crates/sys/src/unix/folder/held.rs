//! Folders that a process holds for its own use. Whoever finds one that nobody holds knows that its process is gone.

use super::{Folder, LIST};
use nix::fcntl::openat;
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::geteuid;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime};

/// A folder that this process holds by a lock until this is dropped.
#[derive(Debug)]
pub struct HeldFolder(File);

impl Folder {
    /// Makes the folder `name` for this user alone, and holds it.
    ///
    /// # Errors
    /// The kind is `AlreadyExists` if the name is taken. Another folder took the place of the new one.
    pub fn make_held(&self, name: &[u8]) -> io::Result<HeldFolder> {
        self.make_folder(name, 0o700)?;
        let folder = self.open_own(name)?;
        if !Self::from(folder.try_clone()?).first_names(1)?.is_empty() || !is_own(&fstat(&folder)?) {
            return Err(io::Error::other("another folder took the place of the new one"));
        }
        let folder = File::from(folder);
        folder.lock()?;
        Ok(HeldFolder(folder))
    }

    /// Holds the folder `name`. Returns `None` if another process holds it, another user made it, or it was changed within `age`.
    ///
    /// # Errors
    /// There is no folder of this name, or this user may not read it.
    pub fn hold_abandoned(&self, name: &[u8], age: Duration) -> io::Result<Option<HeldFolder>> {
        let folder = self.open_own(name)?;
        let about = fstat(&folder)?;
        let folder = File::from(folder);
        let abandoned = is_own(&about) && is_older(&about, age) && folder.try_lock().is_ok();
        Ok(abandoned.then_some(HeldFolder(folder)))
    }

    fn open_own(&self, name: &[u8]) -> nix::Result<OwnedFd> {
        openat(&self.0, OsStr::from_bytes(name), LIST, Mode::empty())
    }
}

impl HeldFolder {
    /// Returns the folder.
    ///
    /// # Errors
    /// This process may not open more.
    pub fn folder(&self) -> io::Result<Folder> {
        Folder::from(OwnedFd::from(self.0.try_clone()?)).to_list()
    }

    /// Removes the folder, which is empty, from `above`, where it was made as `name`.
    ///
    /// # Errors
    /// It is not empty, or was moved elsewhere.
    pub fn remove(self, above: &Folder, name: &[u8]) -> io::Result<()> {
        above.remove_folder(name)?;
        // Another folder may have had its name. File systems in user space and NFS no longer find a removed folder.
        match fstat(&self.0).map(|about| about.st_nlink) {
            Ok(0) | Err(nix::Error::ENOENT | nix::Error::ESTALE) => Ok(()),
            Ok(_) => Err(io::Error::other("it was moved, and is empty now")),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_own(about: &FileStat) -> bool {
    about.st_uid == geteuid().as_raw()
}

fn is_older(about: &FileStat, age: Duration) -> bool {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let changed = Duration::from_secs(u64::try_from(about.st_mtime).unwrap_or_default());
    now.checked_sub(changed).is_some_and(|since| since > age)
}
