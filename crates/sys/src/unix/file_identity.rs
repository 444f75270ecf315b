//! Which file is open, and whether it has changed.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Identity of a file. It stays when the file is renamed. A file that replaces another one has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// The system does not return it.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }
}

impl From<&Metadata> for FileId {
    fn from(about: &Metadata) -> Self {
        Self { device: about.dev(), inode: about.ino() }
    }
}

/// One state of a file: its identity, content, owner and permissions. Two states differ if any of these has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    id: FileId,
    /// Last change of the content or of the inode: seconds and nanoseconds (ctime).
    changed: (i64, i64),
    length: u64,
    /// Permissions. On older kernels two changes within a tick have the same ctime.
    mode: u32,
}

impl FileState {
    /// Returns the state of the file at `path`.
    ///
    /// # Errors
    /// There is no such file, or the system does not return its state.
    pub fn of(path: &Path) -> io::Result<Self> {
        let about = fs::metadata(path)?;
        Ok(Self {
            id: FileId::from(&about),
            changed: (about.ctime(), about.ctime_nsec()),
            length: about.len(),
            mode: about.mode(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_file_has_another_identity() {
        let path = |name: &str| std::env::temp_dir().join(format!("linerate-file-id-{name}-{}", std::process::id()));
        let [old, new] = ["old", "new"].map(path);
        fs::write(&old, "1").expect("written");
        fs::write(&new, "2").expect("written");
        let opened = File::open(&old).expect("opened");
        let state = FileState::of(&old).expect("a state");
        assert_eq!(FileState::of(&old).ok(), Some(state));
        let same = File::open(&old).expect("opened");
        assert_eq!(FileId::of(&opened).ok(), FileId::of(&same).ok());
        fs::rename(&new, &old).expect("replaced");
        let other = File::open(&old).expect("opened");
        assert_ne!(FileId::of(&opened).ok(), FileId::of(&other).ok());
        assert_ne!(FileState::of(&old).ok(), Some(state));
        fs::remove_file(&old).expect("removed");
    }
}
