//! A file of the kernel that is opened once and written later: also by a process that may open it no more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

/// A file to be written, kept open from its first use on.
#[derive(Debug)]
pub struct HeldFile {
    path: &'static str,
    file: OnceLock<File>,
}

impl HeldFile {
    /// The file at `path`, not open yet.
    pub const fn new(path: &'static str) -> Self {
        Self { path, file: OnceLock::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Opens it, if it can be opened. Otherwise [`HeldFile::write`] tries again, and returns the error.
    pub fn hold(&self) {
        let _ = self.opened();
    }

    /// Writes `bytes` at its beginning.
    ///
    /// # Errors
    /// It cannot be opened or written.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.opened()?.write_all_at(bytes, 0)
    }

    fn opened(&self) -> io::Result<&File> {
        match self.file.get() {
            Some(file) => Ok(file),
            None => {
                let file = OpenOptions::new().write(true).open(self.path)?;
                Ok(self.file.get_or_init(|| file))
            }
        }
    }
}
