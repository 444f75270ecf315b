//! Why a host could not be described.

use std::io;
use std::path::PathBuf;

/// Something about the host could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// A system call failed.
    #[error("cannot observe this host: {0}")]
    Call(#[from] linerate_sys::Error),
    /// A file of the kernel's could not be read.
    #[error("cannot observe this host: read {}: {source}; is /proc mounted?", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
