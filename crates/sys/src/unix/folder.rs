//! Folders by their open descriptors: each name is opened from the folder that it is in, and no symbolic link is followed. So nothing
//! leads out of the folder, and no path is too long.
//!
//! A name is one component of a path, as bytes.

mod file;
mod held;

pub use file::FolderFile;
pub use held::HeldFolder;

use crate::entry::{About, What};
use nix::dir::{Dir, OwningIter};
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fchmod, fstat, fstatat, futimens, mkdirat, utimensat};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path};
use std::sync::Arc;

/// Steps in which times are kept, in nanoseconds.
pub const TIME_STEP: i64 = 1;
/// Whether [`Folder::sync`] makes all files durable at once, as syncfs(2) of Linux does.
pub const SYNCS_AT_ONCE: bool = cfg!(target_os = "linux");

/// Opens a folder that need not be readable.
#[cfg(target_os = "linux")]
const SEARCH: OFlag = OFlag::O_PATH;
/// Opens a folder that need not be readable.
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlag = OFlag::from_bits_retain(libc::O_SEARCH);
/// Leaves the time of last access as it is.
#[cfg(target_os = "linux")]
const NO_ACCESS_TIME: OFlag = OFlag::O_NOATIME;
/// Other systems have no flag that leaves the time of last access as it is.
#[cfg(not(target_os = "linux"))]
const NO_ACCESS_TIME: OFlag = OFlag::empty();

/// Flags for a folder that is only passed through.
const PASS: OFlag = SEARCH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// Flags for a folder that is listed.
const LIST: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// The folder itself.
const SELF: &[u8] = b".";
/// The time of last access stays as it is.
const UNTOUCHED: TimeSpec = TimeSpec::UTIME_OMIT;

/// An open folder. Clones share it.
#[derive(Debug, Clone)]
pub struct Folder(Arc<OwnedFd>);

impl Folder {
    /// Opens the folder at `path` to be listed. Links are followed.
    ///
    /// # Errors
    /// There is no such folder, or this user may not read it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::from(open(path, LIST.difference(OFlag::O_NOFOLLOW), Mode::empty())?))
    }

    /// Opens the folder at `path`, an absolute path without links, to go on from. It need not be readable. A link that took the place of
    /// a name meanwhile is not followed.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn open_without_links(path: &Path) -> io::Result<Self> {
        let mut folder = Self::from(open("/", PASS, Mode::empty())?);
        for part in path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?.components() {
            let Component::Normal(name) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
            folder = folder.enter(name.as_bytes())?;
        }
        Ok(folder)
    }

    /// Opens the folder `name` to go on from. It need not be readable.
    ///
    /// # Errors
    /// There is no folder of this name.
    pub fn enter(&self, name: &[u8]) -> io::Result<Self> {
        Ok(Self::from(openat(&self.0, OsStr::from_bytes(name), PASS, Mode::empty())?))
    }

    /// Opens the folder `name` to be listed, without a trace of that where the system allows it.
    ///
    /// # Errors
    /// There is no folder of this name, or this user may not read it.
    pub fn open_folder(&self, name: &[u8]) -> io::Result<Self> {
        Ok(Self::from(open_untouched(&self.0, name, OFlag::O_DIRECTORY)?))
    }

    /// Opens the folder itself to be listed, like [`Self::open_folder`].
    ///
    /// # Errors
    /// This user may not read it.
    pub fn to_list(&self) -> io::Result<Self> {
        self.open_folder(SELF)
    }

    /// Opens the folder `name` to be emptied, whatever its permissions.
    ///
    /// # Errors
    /// There is no folder of this name, or its permissions cannot be changed.
    pub fn open_to_empty(&self, name: &[u8]) -> io::Result<Self> {
        self.enter(name)?.to_empty()
    }

    /// Opens the folder itself to be emptied, like [`Self::open_to_empty`].
    ///
    /// # Errors
    /// Its permissions cannot be changed.
    pub fn to_empty(&self) -> io::Result<Self> {
        let opened = || openat(&self.0, ".", LIST, Mode::empty());
        let folder = match opened() {
            Err(nix::Error::EACCES) => {
                self.make_accessible()?;
                opened()?
            }
            opened => opened?,
        };
        if fstat(&folder)?.st_mode & 0o700 != 0o700 {
            fchmod(&folder, Mode::S_IRWXU)?;
        }
        Ok(Self::from(folder))
    }

    /// Lets the owner list and change the folder.
    #[cfg(target_os = "linux")]
    fn make_accessible(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::fs::PermissionsExt as _;
        // fchmod(2) takes no descriptor of O_PATH; this link leads to what is open, whatever has its name now.
        let link = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        std::fs::set_permissions(link, std::fs::Permissions::from_mode(0o700))
    }

    /// Lets the owner list and change the folder.
    #[cfg(not(target_os = "linux"))]
    fn make_accessible(&self) -> io::Result<()> {
        Ok(fchmod(&self.0, Mode::S_IRWXU)?)
    }

    /// Makes the folder `name` with the permissions `mode`, less the mask of this process.
    ///
    /// # Errors
    /// The kind is `AlreadyExists` if the name is taken.
    pub fn make_folder(&self, name: &[u8], mode: u32) -> io::Result<()> {
        Ok(mkdirat(&self.0, OsStr::from_bytes(name), permissions(mode))?)
    }

    /// Lists a folder that was opened to be listed.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn list(&self) -> io::Result<Listing> {
        Ok(Listing { names: Dir::from_fd(self.0.try_clone()?)?.into_iter(), folder: self.clone() })
    }

    /// Returns the first `count` names. The folder is opened anew: file systems in user space may list what it held when it was opened.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn first_names(&self, count: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut folder = Dir::openat(&self.0, ".", LIST, Mode::empty())?;
        let mut names = Vec::new();
        for entry in folder.iter() {
            if names.len() >= count {
                break;
            }
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(name.to_vec());
            }
        }
        Ok(names)
    }

    /// Returns the attributes of the entry `name`.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn about(&self, name: &[u8]) -> io::Result<About> {
        Ok(about(&fstatat(&self.0, OsStr::from_bytes(name), AtFlags::AT_SYMLINK_NOFOLLOW)?))
    }

    /// Opens the file `name` for reading, without a trace of that where the system allows it. Returns its attributes, too: they show whether
    /// it is a file.
    ///
    /// # Errors
    /// There is no such entry, or this user may not read it.
    pub fn open_file(&self, name: &[u8]) -> io::Result<(FolderFile, About)> {
        FolderFile::existing(open_untouched(&self.0, name, OFlag::empty())?)
    }

    /// Makes the file `name` with the permissions `mode`, less the mask of this process, and opens it for writing and reading.
    ///
    /// # Errors
    /// The name is taken, or the folder has no room for it.
    pub fn create_file(&self, name: &[u8], mode: u32) -> io::Result<FolderFile> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.0, OsStr::from_bytes(name), flags, permissions(mode))?;
        Ok(FolderFile::new(file))
    }

    /// Returns an error if the folder cannot hold an entry called `name`.
    ///
    /// # Errors
    /// Never: a folder holds any name that is a component of a path.
    pub fn check_name(&self, _name: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Gives `file`, which is called `from`, the name `to` in place of the file or link that has it.
    ///
    /// # Errors
    /// A folder has the name, or the file is no longer there.
    pub fn rename(&self, _file: &FolderFile, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(renameat(&self.0, OsStr::from_bytes(from), &self.0, OsStr::from_bytes(to))?)
    }

    /// Returns the target of the symbolic link `name`.
    ///
    /// # Errors
    /// There is no such link.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, OsStr::from_bytes(name))?.into_vec())
    }

    /// Makes the symbolic link `name`, first under the name `temporary`, with the time of last change `modified`, in nanoseconds since 1970.
    /// It takes the place of the file or link that has its name.
    ///
    /// # Errors
    /// A folder has the name, or the file system holds no links.
    pub fn make_link(&self, temporary: &[u8], name: &[u8], target: &[u8], modified: i64) -> io::Result<()> {
        let temporary_name = OsStr::from_bytes(temporary);
        symlinkat(OsStr::from_bytes(target), &self.0, temporary_name)?;
        let made = utimensat(&self.0, temporary_name, &UNTOUCHED, &time(modified), UtimensatFlags::NoFollowSymlink)
            .and_then(|()| renameat(&self.0, temporary_name, &self.0, OsStr::from_bytes(name)));
        if made.is_err() {
            // One that cannot be removed keeps its temporary name.
            let _ = self.remove_file(temporary);
        }
        Ok(made?)
    }

    /// Gives a folder that was opened to be listed its permissions and its time of last change, in nanoseconds since 1970.
    ///
    /// # Errors
    /// This user may not change them.
    pub fn settle(&self, mode: u32, modified: i64) -> io::Result<()> {
        fchmod(&self.0, permissions(mode))?;
        Ok(futimens(&self.0, &UNTOUCHED, &time(modified))?)
    }

    /// Removes the file or link `name`.
    ///
    /// # Errors
    /// The kind is `IsADirectory` if it is a folder.
    pub fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        match unlinkat(&self.0, OsStr::from_bytes(name), UnlinkatFlags::NoRemoveDir) {
            // Linux returns EISDIR for a folder; POSIX, and so some file systems, EPERM (unlink(2)).
            Err(nix::Error::EPERM) if self.about(name).is_ok_and(|about| about.what == What::Folder) => {
                Err(io::ErrorKind::IsADirectory.into())
            }
            removed => Ok(removed?),
        }
    }

    /// Removes the empty folder `name`.
    ///
    /// # Errors
    /// It is not empty, or no folder.
    pub fn remove_folder(&self, name: &[u8]) -> io::Result<()> {
        Ok(unlinkat(&self.0, OsStr::from_bytes(name), UnlinkatFlags::RemoveDir)?)
    }

    /// Makes all that was written to the folder's file system durable; without [`SYNCS_AT_ONCE`] the folder alone.
    ///
    /// # Errors
    /// The file system could not write it.
    pub fn sync(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        nix::unistd::syncfs(&self.0)?;
        #[cfg(not(target_os = "linux"))]
        nix::unistd::fsync(&self.0)?;
        Ok(())
    }

    /// Returns the number of the device that the folder is on, as its files have it (`st_dev`). `None` if the system has none.
    #[allow(clippy::unnecessary_cast, reason = "macOS has 32 bits")]
    pub fn device(&self) -> Option<u64> {
        fstat(&self.0).ok().map(|stat| stat.st_dev as u64)
    }

    /// Returns how many bytes this user may still write to the folder's file system.
    ///
    /// # Errors
    /// The file system does not report it.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let disk = fstatvfs(&self.0)?;
        Ok((disk.blocks_available() as u64).saturating_mul(disk.fragment_size()))
    }

    /// Returns a descriptor of the folder.
    ///
    /// # Errors
    /// This process may not have more.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

impl From<OwnedFd> for Folder {
    fn from(folder: OwnedFd) -> Self {
        Self(Arc::new(folder))
    }
}

/// Entries of a folder, `.` and `..` left out: names and attributes. An error ends it.
#[derive(Debug)]
pub struct Listing {
    folder: Folder,
    names: OwningIter,
}

impl Iterator for Listing {
    type Item = io::Result<(Vec<u8>, io::Result<About>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let name = match self.names.next()? {
                Ok(entry) => entry.file_name().to_bytes().to_vec(),
                Err(error) => return Some(Err(error.into())),
            };
            if !matches!(&name[..], b"." | b"..") {
                let about = self.folder.about(&name);
                return Some(Ok((name, about)));
            }
        }
    }
}

/// Opens for reading without a trace where that is allowed: only a file's owner may leave its access time alone.
fn open_untouched(folder: impl AsFd, name: &[u8], flags: OFlag) -> nix::Result<OwnedFd> {
    let name = OsStr::from_bytes(name);
    let flags = flags | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    match openat(&folder, name, flags | NO_ACCESS_TIME, Mode::empty()) {
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
    About {
        mode: mode_bits(stat),
        modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
        changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
        what,
    }
}

/// Returns the permissions in the attributes of an entry.
#[allow(clippy::unnecessary_cast, reason = "macOS and FreeBSD have 16 bits")]
fn mode_bits(stat: &FileStat) -> u32 {
    (stat.st_mode & 0o7777) as u32
}

/// Converts permissions.
#[allow(clippy::unnecessary_cast, reason = "macOS and FreeBSD have 16 bits")]
fn permissions(bits: u32) -> Mode {
    Mode::from_bits_truncate(bits as libc::mode_t)
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// A time for the system.
fn time(nanos: i64) -> TimeSpec {
    TimeSpec::new(nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn folders_are_deeper_than_any_path_that_the_system_takes() {
        let scratch = std::env::temp_dir().join(format!("linerate-deep-{}", std::process::id()));
        fs::create_dir(&scratch).expect("made");
        let mut way = vec![Folder::open(&scratch).expect("opened")];
        let name = b"folder-of-some-length";
        for _ in 0..250 {
            let above = way.last().expect("one");
            above.make_folder(name, 0o700).expect("made");
            let below = above.enter(name).expect("entered");
            way.push(below);
        }
        way.pop();
        while let Some(above) = way.pop() {
            above.remove_folder(name).expect("removed");
        }
        fs::remove_dir(&scratch).expect("it is empty");
    }
}
