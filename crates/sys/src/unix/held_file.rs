//! A file of the kernel that is opened once and written later: also by a process that may open it no more.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::sync::{Mutex, PoisonError};

/// A file to be written, kept open from its first use on.
#[derive(Debug)]
pub struct HeldFile {
    path: &'static str,
    file: Mutex<Option<File>>,
}

impl HeldFile {
    /// The file at `path`, not open yet.
    pub const fn new(path: &'static str) -> Self {
        Self { path, file: Mutex::new(None) }
    }

    /// Where it is.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Opens it, if it can be opened. Otherwise [`HeldFile::write`] tries again, and returns the error.
    pub fn hold(&self) {
        let _ = self.opened(|_| Ok(()));
    }

    /// Writes `bytes` at its beginning.
    ///
    /// # Errors
    /// It cannot be opened or written.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.opened(|file| {
            // Files of /proc may refuse to be written at a place (pwrite).
            file.rewind()?;
            file.write_all(bytes)
        })
    }

    fn opened(&self, work: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *held {
            Some(file) => file,
            none => none.insert(OpenOptions::new().write(true).open(self.path)?),
        };
        work(file)
    }
}
