//! Locks on single bytes of a file that the system drops when their holder ends, however it ends (LockFileEx).

use crate::Error;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;
use std::thread;
use std::time::Duration;
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_FUNCTION, ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, ERROR_NOT_SUPPORTED,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_TYPE_DISK, GetFileType, LOCK_FILE_FLAGS, LOCKFILE_EXCLUSIVE_LOCK,
    LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};

/// Offset of the locks. A locked byte cannot be read by others, so that no byte with content is locked.
const OFFSET: u64 = 1 << 62;
/// Attempts to take a lock. [`ByteLock::is_taken`] of another program locks the byte for an instant.
const ATTEMPTS: u32 = 4;
/// Time between two attempts.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);

/// An exclusive lock on one byte of a file, held until this is dropped or the process ends.
///
/// It is a lock of the opened file, not of the process: a second one in the same process conflicts with it, and closing another
/// handle of the file does not drop it. A child process does not inherit it. The content of the file can be read and written by all.
#[derive(Debug)]
pub struct ByteLock {
    file: File,
    byte: u64,
}

impl Drop for ByteLock {
    fn drop(&mut self) {
        // If that fails, closing the file drops the lock.
        let _ = unlock(&self.file, self.byte);
    }
}

impl ByteLock {
    /// Locks `byte` of the file at `path`, which is created if it is missing and need not be that long. Returns `None` if the
    /// byte is locked already.
    ///
    /// # Errors
    /// The file cannot be opened for writing, it is a link or no regular file, or its file system has no locks ([`has_no_locks`]).
    pub fn take(path: &Path, byte: u64) -> Result<Option<Self>, Error> {
        Self::of(path, OpenOptions::new().read(true).write(true).create(true).truncate(false), byte)
    }

    /// Creates the file at `path` and locks `byte` of it.
    ///
    /// # Errors
    /// There is something at `path`, the file cannot be created, or its file system has no locks ([`has_no_locks`]).
    pub fn take_new(path: &Path, byte: u64) -> Result<Option<Self>, Error> {
        Self::of(path, OpenOptions::new().read(true).write(true).create_new(true), byte)
    }

    fn of(path: &Path, options: &mut OpenOptions, byte: u64) -> Result<Option<Self>, Error> {
        let file = open_regular(path, options)?;
        for attempt in 1..=ATTEMPTS {
            if lock(&file, path, byte, LOCKFILE_EXCLUSIVE_LOCK)? {
                return Ok(Some(Self { file, byte }));
            }
            if attempt < ATTEMPTS {
                thread::sleep(BETWEEN_ATTEMPTS);
            }
        }
        Ok(None)
    }

    /// Returns the locked file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns whether `byte` of the file at `path` is locked by anybody. A missing file has no locks.
    ///
    /// # Errors
    /// The file cannot be opened for reading, it is a link or no regular file, or its file system has no locks ([`has_no_locks`]).
    pub fn is_taken(path: &Path, byte: u64) -> Result<bool, Error> {
        let file = match open_regular(path, OpenOptions::new().read(true)) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        // A shared lock does not disturb another program that asks the same.
        let free = lock(&file, path, byte, 0)?;
        if free {
            unlock(&file, byte).map_err(|error| Error::new("UnlockFileEx", path.display().to_string(), error))?;
        }
        Ok(!free)
    }
}

/// Opens the regular file at `path` as `options` say. A link is not followed, and no pipe or device is opened.
///
/// A new file inherits the permissions of its folder.
///
/// # Errors
/// It cannot be opened, or it is something else.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> Result<File, Error> {
    let failed = |error| Error::new("open", path.display().to_string(), error);
    let file = options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path).map_err(failed)?;
    // SAFETY: the handle is open as long as the file.
    let kind = unsafe { GetFileType(file.as_raw_handle()) };
    if kind != FILE_TYPE_DISK || !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")));
    }
    Ok(file)
}

/// Returns whether a lock failed because the file system has none.
pub fn has_no_locks(error: &Error) -> bool {
    let without = [ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED].map(u32::cast_signed);
    error.call == "LockFileEx" && error.source.raw_os_error().is_some_and(|code| without.contains(&code))
}

/// Locks `byte` of a file without waiting, shared without further `flags`. Returns `false` if another lock conflicts.
fn lock(file: &File, path: &Path, byte: u64, flags: LOCK_FILE_FLAGS) -> Result<bool, Error> {
    let failed = |error| Error::new("LockFileEx", path.display().to_string(), error);
    if byte >= OFFSET {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, format!("no file has a byte {byte}"))));
    }
    let mut place = place(byte);
    // SAFETY: the handle is open as long as the file, and `place` outlives the call, which does not wait.
    let locked =
        unsafe { LockFileEx(file.as_raw_handle(), flags | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &raw mut place) };
    if locked != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    let conflicts = [ERROR_LOCK_VIOLATION, ERROR_IO_PENDING].map(u32::cast_signed);
    if error.raw_os_error().is_some_and(|code| conflicts.contains(&code)) { Ok(false) } else { Err(failed(error)) }
}

/// Unlocks `byte` of a file.
fn unlock(file: &File, byte: u64) -> io::Result<()> {
    let mut place = place(byte);
    // SAFETY: the handle is open as long as the file, and `place` outlives the call.
    let unlocked = unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &raw mut place) };
    if unlocked == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the place of the lock for `byte`.
fn place(byte: u64) -> OVERLAPPED {
    let start = OFFSET + byte;
    let halves = OVERLAPPED_0_0 { Offset: start as u32, OffsetHigh: (start >> 32) as u32 };
    OVERLAPPED { Anonymous: OVERLAPPED_0 { Anonymous: halves }, ..OVERLAPPED::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    /// A file that is removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            Self(std::env::temp_dir().join(format!("linerate-byte-lock-{test}-{}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn take(path: &Path, byte: u64) -> Option<ByteLock> {
        ByteLock::take(path, byte).expect("locks")
    }

    fn is_taken(path: &Path, byte: u64) -> bool {
        ByteLock::is_taken(path, byte).expect("locks")
    }

    #[test]
    fn lock_is_exclusive_within_the_process_and_ends_when_dropped() {
        let file = Scratch::new("exclusive");
        assert!(!is_taken(&file.0, 7), "a missing file has no locks");
        let held = take(&file.0, 7).expect("free");
        assert!(is_taken(&file.0, 7) && take(&file.0, 7).is_none());
        assert!(!is_taken(&file.0, 6) && !is_taken(&file.0, 8), "one byte only");
        let other = take(&file.0, 8).expect("another byte is free");
        let copy = held.file().try_clone().expect("copied");
        drop(held);
        assert!(!is_taken(&file.0, 7) && is_taken(&file.0, 8));
        drop((other, copy));
        assert!(take(&file.0, 8).is_some());
        assert_eq!(fs::metadata(&file.0).expect("the file").len(), 0, "locks need no content");
    }

    #[test]
    fn locked_file_can_be_read_written_and_renamed_by_others() {
        let [file, renamed] = ["read", "renamed"].map(Scratch::new);
        let held = ByteLock::take_new(&file.0, 0).expect("locks").expect("free");
        assert!(ByteLock::take_new(&file.0, 0).is_err(), "it is there already");
        held.file().write_all(b"text").expect("written");
        assert_eq!(fs::read(&file.0).expect("read"), b"text");
        fs::write(&renamed.0, "old").expect("written");
        fs::rename(&file.0, &renamed.0).expect("renamed");
        assert!(is_taken(&renamed.0, 0));
        fs::remove_file(&renamed.0).expect("removed");
    }

    #[test]
    fn folders_and_bytes_beyond_any_file_are_refused() {
        let file = Scratch::new("beyond");
        let error = ByteLock::take(&file.0, u64::MAX).expect_err("beyond");
        assert!(error.to_string().contains("no file has a byte 18446744073709551615"), "{error}");
        assert!(!has_no_locks(&error) && take(&file.0, OFFSET - 1).is_some());
        ByteLock::take(&std::env::temp_dir(), 0).expect_err("a folder");
        open_regular(Path::new("NUL"), OpenOptions::new().read(true)).expect_err("a device");
    }

    const HOLDER: &str = "LINERATE_TEST_BYTE_LOCK";

    #[test]
    fn lock_of_a_killed_process_ends() {
        if let Some(path) = std::env::var_os(HOLDER) {
            let _held = take(Path::new(&path), 5).expect("free");
            println!("holding");
            // Until it is killed, or its parent ends.
            std::io::stdin().read_to_end(&mut Vec::new()).expect("stdin");
            return;
        }
        let file = Scratch::new("killed");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "windows::byte_lock::tests::lock_of_a_killed_process_ends", "--nocapture"])
            .env(HOLDER, &file.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
        assert!(lines.any(|line| line.expect("text").ends_with("holding")), "it ended early");
        assert!(is_taken(&file.0, 5) && take(&file.0, 5).is_none(), "the other process holds it");
        child.kill().expect("killed");
        child.wait().expect("ends");
        assert!(!is_taken(&file.0, 5) && take(&file.0, 5).is_some());
    }
}
