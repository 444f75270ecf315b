//! Locks on single bytes of a file that the kernel drops when their holder ends, however it ends (fcntl_locking(2)).

use crate::Error;
use std::fs::{File, OpenOptions};
use std::io;
#[cfg(not(target_os = "freebsd"))]
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// An exclusive lock on one byte of a file, held until this is dropped or the process ends, by `kill -9` too.
///
/// It is a lock of the open file description (`F_OFD_SETLK`), not of the process: a second one in the same process
/// conflicts with it, and closing another descriptor of the file does not drop it. A child that is started meanwhile
/// does not inherit it.
#[derive(Debug)]
pub struct ByteLock {
    /// Its open file description has the lock.
    file: File,
    /// What to ask of the kernel so that it drops the lock.
    unlock: libc::flock,
}

impl Drop for ByteLock {
    /// Unlocks the byte before the descriptor is closed. A child has a copy of the descriptor between fork and exec,
    /// and would hold the lock until then.
    fn drop(&mut self) {
        // If that fails, closing the last copy of the descriptor drops the lock.
        let _ = set(&self.file, &self.unlock);
    }
}

impl ByteLock {
    /// Locks `byte` of the file at `path`, which is made if missing and need not be that long; none if the byte is
    /// locked already.
    ///
    /// # Errors
    /// The file cannot be opened for writing, it is a link or no regular file, or its file system has no locks ([`has_no_locks`]).
    pub fn take(path: &Path, byte: u64) -> Result<Option<Self>, Error> {
        Self::of(path, OpenOptions::new().read(true).write(true).create(true).truncate(false), byte)
    }

    /// Makes the file at `path` and locks `byte` of it. Whoever may write the folder cannot have put a file of his own
    /// there, nor a link.
    ///
    /// # Errors
    /// There is something at `path`, the file cannot be made, or its file system has no locks ([`has_no_locks`]).
    pub fn take_new(path: &Path, byte: u64) -> Result<Option<Self>, Error> {
        Self::of(path, OpenOptions::new().read(true).write(true).create_new(true), byte)
    }

    fn of(path: &Path, options: &mut OpenOptions, byte: u64) -> Result<Option<Self>, Error> {
        let file = open_regular(path, options)?;
        let lock = exclusive(path, byte)?;
        match set(&file, &lock) {
            Ok(()) => Ok(Some(Self { file, unlock: libc::flock { l_type: libc::F_UNLCK as libc::c_short, ..lock } })),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(None),
            Err(error) => Err(Error::new("fcntl(F_OFD_SETLK)", path.display().to_string(), error)),
        }
    }

    /// The locked file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether `byte` of the file at `path` is locked by anybody; a missing file has no locks.
    ///
    /// # Errors
    /// The file cannot be opened for reading, it is a link or no regular file, or its file system has no locks ([`has_no_locks`]).
    pub fn is_taken(path: &Path, byte: u64) -> Result<bool, Error> {
        let object = || path.display().to_string();
        let file = match open_regular(path, OpenOptions::new().read(true)) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let mut lock = exclusive(path, byte)?;
        get(&file, &mut lock).map_err(|error| Error::new("fcntl(F_OFD_GETLK)", object(), error))?;
        // The kernel writes back what is in the way, or that nothing is.
        Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
    }
}

/// Opens the regular file at `path` as `options` say. A link is not followed, and nothing else is opened either: a pipe
/// that nobody writes would hold up its reader. A new file is for its owner alone.
///
/// # Errors
/// It cannot be opened, or it is something else.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let failed = |error| Error::new("open", path.display().to_string(), error);
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")));
    }
    Ok(file)
}

/// Returns whether a lock failed because the file system, or the kernel, has none of this kind.
pub fn has_no_locks(error: &Error) -> bool {
    let without = [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL];
    error.call.starts_with("fcntl(F_OFD_") && error.source.raw_os_error().is_some_and(|code| without.contains(&code))
}

/// The request for an exclusive lock on `byte`.
fn exclusive(path: &Path, byte: u64) -> Result<libc::flock, Error> {
    let start = i64::try_from(byte).map_err(|_| {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, format!("no file has a byte {byte}"));
        Error::new("lock a byte", path.display().to_string(), reason)
    })?;
    // SAFETY: `flock` is made of integers, for which all zeroes is a value. Locks of a description demand a process number of zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start;
    lock.l_len = 1;
    Ok(lock)
}

/// Takes or drops the lock that `request` describes.
#[cfg(not(target_os = "freebsd"))]
fn set(file: &File, request: &libc::flock) -> io::Result<()> {
    // SAFETY: the kernel reads one live structure; the descriptor is borrowed for the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, std::ptr::from_ref(request)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Replaces `request` by the lock that is in its way, or by F_UNLCK if none is.
#[cfg(not(target_os = "freebsd"))]
fn get(file: &File, request: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the kernel reads and writes one live structure; the descriptor is borrowed for the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, std::ptr::from_mut(request)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Fails: FreeBSD has locks of processes, which any close of the file drops, and locks of whole files.
#[cfg(target_os = "freebsd")]
fn set(_: &File, _: &libc::flock) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Fails, as [`set`] does.
#[cfg(target_os = "freebsd")]
fn get(_: &File, _: &mut libc::flock) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};

    /// A file of this test's own that goes when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let name = format!("linerate-byte-lock-{test}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn take(path: &Path, byte: u64) -> Option<ByteLock> {
        ByteLock::take(path, byte).expect("a lock or none")
    }

    fn is_taken(path: &Path, byte: u64) -> bool {
        ByteLock::is_taken(path, byte).expect("locked or not")
    }

    #[test]
    fn a_lock_is_exclusive_within_the_process_and_goes_when_dropped() {
        let file = Scratch::new("exclusive");
        assert!(!is_taken(&file.0, 7), "a missing file has no locks");
        let held = take(&file.0, 7).expect("free");
        assert!(is_taken(&file.0, 7) && take(&file.0, 7).is_none());
        assert!(!is_taken(&file.0, 6) && !is_taken(&file.0, 8), "one byte only");
        let other = take(&file.0, 8).expect("another byte is free");
        drop(held);
        assert!(!is_taken(&file.0, 7) && is_taken(&file.0, 8));
        drop(other);
        assert!(take(&file.0, 8).is_some());
        assert_eq!(std::fs::metadata(&file.0).expect("the file").len(), 0, "locks need no content");
    }

    #[test]
    fn neither_links_nor_pipes_are_opened() {
        let (target, link, pipe) = (Scratch::new("target"), Scratch::new("link"), Scratch::new("pipe"));
        std::os::unix::fs::symlink(&target.0, &link.0).expect("a link");
        nix::unistd::mkfifo(&pipe.0, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for path in [&link.0, &pipe.0] {
            assert!(ByteLock::take(path, 0).is_err() && ByteLock::take_new(path, 0).is_err());
            assert!(ByteLock::is_taken(path, 0).is_err());
        }
        assert!(!target.0.exists(), "the target of the link was not made");
        std::fs::write(&target.0, "x").expect("written");
        assert!(ByteLock::take_new(&target.0, 0).is_err(), "it is there already");
    }

    #[test]
    fn bytes_beyond_any_file_are_refused() {
        let file = Scratch::new("beyond");
        let error = ByteLock::take(&file.0, u64::MAX).expect_err("beyond");
        assert!(error.to_string().contains("no file has a byte 18446744073709551615"), "{error}");
        assert!(take(&file.0, i64::MAX as u64).is_some());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = ByteLock::take(Path::new("/proc/no-locks-here"), 1).expect_err("/proc");
        assert!(error.to_string().contains("open on /proc/no-locks-here"), "{error}");
        assert!(!has_no_locks(&error));
    }

    #[test]
    fn file_systems_without_locks_are_told_from_other_failures() {
        let failed = |call, code| has_no_locks(&Error::new(call, "file", io::Error::from_raw_os_error(code)));
        assert!(failed("fcntl(F_OFD_SETLK)", libc::ENOLCK) && failed("fcntl(F_OFD_GETLK)", libc::EOPNOTSUPP));
        assert!(!failed("fcntl(F_OFD_SETLK)", libc::EIO) && !failed("open", libc::EINVAL));
    }

    const HOLDER: &str = "LINERATE_TEST_BYTE_LOCK";

    /// Another process that holds byte 5 of the file at `path`: this test binary again, told so by [`HOLDER`].
    fn holder(path: &Path) -> Child {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "unix::byte_lock::tests::the_lock_of_a_killed_process_is_gone", "--nocapture"])
            .env(HOLDER, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
        assert!(lines.any(|line| line.expect("text").ends_with("holding")), "it ended early");
        child
    }

    #[test]
    fn the_lock_of_a_killed_process_is_gone() {
        if let Some(path) = std::env::var_os(HOLDER) {
            let _held = take(Path::new(&path), 5).expect("free");
            println!("holding");
            // Until it is killed, or its parent ends.
            std::io::stdin().read_to_end(&mut Vec::new()).expect("stdin");
            return;
        }
        let file = Scratch::new("killed");
        let mut child = holder(&file.0);
        assert!(is_taken(&file.0, 5) && take(&file.0, 5).is_none(), "the other process holds it");
        child.kill().expect("SIGKILL");
        child.wait().expect("ends");
        assert!(!is_taken(&file.0, 5) && take(&file.0, 5).is_some());
    }

    #[test]
    fn a_child_does_not_inherit_the_lock() {
        let file = Scratch::new("inherited");
        let held = take(&file.0, 5).expect("free");
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat");
        drop(held);
        assert!(!is_taken(&file.0, 5));
        drop(child.stdin.take());
        child.wait().expect("ends");
    }

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let file = Scratch::new("copied");
        let held = take(&file.0, 5).expect("free");
        // A child has such a copy between fork and exec.
        let copy = held.file.try_clone().expect("copied");
        drop(held);
        assert!(!is_taken(&file.0, 5) && take(&file.0, 5).is_some());
        drop(copy);
    }
}
