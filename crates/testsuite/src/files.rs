//! Permissions and locks of files, links and pipes.

use std::fs::{Permissions, metadata, read_to_string, set_permissions};
use std::io::{self, PipeReader};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

/// Returns the permission bits of a file, as in `0o600`.
///
/// # Panics
/// There is no such file.
pub fn mode(path: &Path) -> u32 {
    metadata(path).expect("the file exists").permissions().mode() & 0o777
}

/// Sets the permission bits of a file.
///
/// # Panics
/// They cannot be set.
pub fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).expect("permissions can be set");
}

/// Returns the user and the group that own a file.
///
/// # Panics
/// There is no such file.
pub fn owner(path: &Path) -> (u32, u32) {
    let about = metadata(path).expect("the file exists");
    (about.uid(), about.gid())
}

/// Gives a file to a user and a group, which needs root.
///
/// # Errors
/// It cannot be given away.
pub fn change_owner(path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    chown(path, Some(user), Some(group))
}

/// Returns whether the kernel lists a lock on a file (proc_locks(5)).
///
/// # Panics
/// There is no such file, or the kernel lists no locks.
pub fn is_locked(path: &Path) -> bool {
    let inode = metadata(path).expect("the file exists").ino();
    let locks = read_to_string("/proc/locks").expect("the kernel's locks");
    let is_on_file = |place: &str| place.split(':').count() == 3 && place.ends_with(&format!(":{inode}"));
    locks.lines().any(|lock| lock.split_whitespace().any(is_on_file))
}

/// Makes a symbolic link at `link` that leads to `target`.
///
/// # Panics
/// It cannot be made.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, link).expect("a link can be made");
}

/// Returns a path by which this process can open the pipe.
pub fn pipe_path(pipe: &PipeReader) -> PathBuf {
    format!("/proc/self/fd/{}", pipe.as_raw_fd()).into()
}
