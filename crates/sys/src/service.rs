//! Services that the system starts by itself. These systems have managers with files of their own, such as the units of systemd, so that all
//! calls fail here.

use crate::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Returns `None`: there is no such folder.
pub fn folder() -> Option<PathBuf> {
    None
}

/// Fails on this system.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn install(_arguments: &[OsString]) -> Result<(), Error> {
    Err(unsupported())
}

/// Fails on this system.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn remove() -> Result<(), Error> {
    Err(unsupported())
}

/// Fails on this system, and does not call `body`.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn run(_folder: &Path, _body: impl FnOnce() -> u8 + Send + 'static) -> Result<(), Error> {
    Err(unsupported())
}

fn unsupported() -> Error {
    Error::new("a service", "this system", io::ErrorKind::Unsupported)
}
