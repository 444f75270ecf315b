//! Which file is open, and whether it has changed.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_READ_ATTRIBUTES, FileBasicInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx,
};

/// Identity of a file: its volume, and its number there. It stays when the file is renamed. A file that replaces another one has
/// its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    volume: u32,
    index: u64,
}

impl FileId {
    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// The system does not return it.
    pub fn of(file: &File) -> io::Result<Self> {
        information(file).map(|about| Self::from(&about))
    }
}

impl From<&BY_HANDLE_FILE_INFORMATION> for FileId {
    fn from(about: &BY_HANDLE_FILE_INFORMATION) -> Self {
        Self { volume: about.dwVolumeSerialNumber, index: joined(about.nFileIndexHigh, about.nFileIndexLow) }
    }
}

/// One state of a file: its identity, content, owner and permissions. Two states differ if any of these has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    id: FileId,
    /// Last change of the content or of the attributes, in steps of 100 ns. Zero on a file system that does not record it.
    changed: i64,
    /// Last change of the content, in steps of 100 ns.
    written: i64,
    length: u64,
}

impl FileState {
    /// Returns the state of the file at `path`.
    ///
    /// # Errors
    /// There is no such file, or the system does not return its state.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.access_mode(FILE_READ_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        let file = options.open(path)?;
        let about = information(&file)?;
        let mut times = FILE_BASIC_INFO::default();
        // SAFETY: the handle is open as long as the file; the system writes at most the size of the live structure.
        let result = unsafe {
            GetFileInformationByHandleEx(
                file.as_raw_handle(),
                FileBasicInfo,
                (&raw mut times).cast(),
                mem::size_of_val(&times) as u32,
            )
        };
        if result == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            id: FileId::from(&about),
            changed: times.ChangeTime,
            written: times.LastWriteTime,
            length: joined(about.nFileSizeHigh, about.nFileSizeLow),
        })
    }
}

fn information(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut about = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as the file, and the system writes into a live structure.
    let result = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut about) };
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(about) }
}

fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn id(path: &Path) -> FileId {
        FileId::of(&File::open(path).expect("opened")).expect("an identity")
    }

    #[test]
    fn replaced_file_has_another_identity() {
        let path = |name: &str| std::env::temp_dir().join(format!("linerate-file-id-{name}-{}", std::process::id()));
        let [old, new] = ["old", "new"].map(path);
        fs::write(&old, "1").expect("written");
        fs::write(&new, "2").expect("written");
        let before = (id(&old), FileState::of(&old).expect("a state"));
        assert_eq!((id(&old), FileState::of(&old).expect("a state")), before);
        // No file is open: Wine 8 does not replace open ones, as Windows 10 does.
        fs::rename(&new, &old).expect("replaced");
        assert_ne!(id(&old), before.0);
        assert_ne!(FileState::of(&old).expect("a state"), before.1);
        fs::remove_file(&old).expect("removed");
    }
}
