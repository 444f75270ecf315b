//! Files that can be read beyond the length that they had when they were opened.
//!
//! The crate `smb` reads no further than that length. What is being written could so be read back by a second handle only, which is two
//! calls more for each file, to open and to close it. But its [`File`] is such a length and a handle, and handles can be exchanged:
//! a file made by hand, of a length that none reaches, takes the handle of one after the other.

use smb::{File, ResourceHandle};
use std::sync::{Arc, Mutex, PoisonError};

/// Those that no file uses, their handles closed.
#[derive(Clone, Default)]
pub(crate) struct Endless {
    unused: Arc<Mutex<Vec<File>>>,
}

/// A file without an end. What it does with `handle` is not asked for.
pub(crate) fn of(handle: ResourceHandle) -> File {
    File::new(handle, u64::MAX)
}

/// `file`, as one without an end. The handle that was `endless`'s own until now is closed.
pub(crate) fn with_handle_of(mut endless: File, mut file: File) -> File {
    std::mem::swap::<ResourceHandle>(&mut endless, &mut file);
    endless
}

impl Endless {
    /// One whose handle is closed.
    pub(crate) fn take(&self) -> Option<File> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps one whose handle is closed.
    pub(crate) fn put(&self, endless: File) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).push(endless);
    }

    /// Drops them all.
    pub(crate) fn clear(&self) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
