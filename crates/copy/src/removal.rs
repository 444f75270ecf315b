//! Removal of what is in a folder, by descriptors: no path is used twice, and no link is followed.

use nix::dir::Dir;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::vec;

/// A folder that is being emptied.
struct Level {
    folder: OwnedFd,
    /// In the folder above.
    name: OsString,
    /// The next names in it, [`NAMES`] at most: whoever fills a folder does not fill this host's memory.
    names: vec::IntoIter<OsString>,
}

/// Names of a folder that are read at a time.
const NAMES: usize = 4_096;

/// Removes all that is in `folder`, read-only folders included, and leaves the folder itself. There is one open
/// descriptor for each level.
///
/// # Errors
/// Something could not be opened or removed; what is left stays.
pub(crate) fn empty(folder: impl AsFd) -> io::Result<()> {
    let mut levels = vec![Level::new(folder, OsString::new())?];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.names.next() else {
            level.names = next_names(&level.folder)?;
            if level.names.len() > 0 {
                continue;
            }
            let Some(emptied) = levels.pop() else { break };
            if let Some(above) = levels.last() {
                unlinkat(&above.folder, emptied.name.as_os_str(), UnlinkatFlags::RemoveDir)?;
            }
            continue;
        };
        match unlinkat(&level.folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
            // Linux says EISDIR of a folder; POSIX, and so some file systems, EPERM (unlink(2)).
            Err(nix::Error::EISDIR | nix::Error::EPERM) => {
                let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let below = openat(&level.folder, name.as_os_str(), flags, Mode::empty())?;
                levels.push(Level::new(below, name)?);
            }
            Ok(()) | Err(nix::Error::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Level {
    fn new(folder: impl AsFd, name: OsString) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let open = || openat(&folder, OsStr::new("."), flags, Mode::empty());
        let folder = match open() {
            Err(nix::Error::EACCES) => {
                // fchmod(2) takes no descriptor of O_PATH; this link leads to what is open, whatever has its name now.
                let link = format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd());
                fs::set_permissions(link, Permissions::from_mode(0o700))?;
                open()?
            }
            opened => opened?,
        };
        if fstat(&folder)?.st_mode & 0o700 != 0o700 {
            fchmod(&folder, Mode::S_IRWXU)?;
        }
        Ok(Self { folder, name, names: Vec::new().into_iter() })
    }
}

/// Reads the first names in `folder`. Those read before must be removed. The folder is opened anew: file systems in
/// user space may list what it held when it was opened.
fn next_names(folder: &OwnedFd) -> io::Result<vec::IntoIter<OsString>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut folder = Dir::openat(folder, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in folder.iter() {
        let entry = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if !matches!(entry.as_bytes(), b"." | b"..") {
            names.push(entry);
        }
        if names.len() >= NAMES {
            break;
        }
    }
    Ok(names.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_tree_is_removed_and_what_its_links_name_stays() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        fs::create_dir(outside.path().join("kept")).expect("made");
        fs::set_permissions(outside.path().join("kept"), Permissions::from_mode(0o500)).expect("set");
        fs::create_dir_all(inside.path().join("a/b/c")).expect("made");
        fs::write(inside.path().join("a/b/file"), "x").expect("written");
        for number in 0..NAMES + 1 {
            fs::write(inside.path().join(format!("a/b/{number}")), "").expect("written");
        }
        symlink(outside.path(), inside.path().join("a/link")).expect("a link");
        symlink("missing", inside.path().join("dangling")).expect("a link");
        empty(fs::File::open(inside.path()).expect("opened")).expect("emptied");
        assert_eq!(fs::read_dir(inside.path()).expect("listed").count(), 0);
        let kept = fs::metadata(outside.path().join("kept")).expect("there");
        assert_eq!(kept.permissions().mode() & 0o777, 0o500);
    }
}
