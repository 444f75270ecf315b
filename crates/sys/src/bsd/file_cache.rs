//! The system's cache of files.

use crate::Error;
use std::io;

/// Does nothing: nothing empties the cache.
pub fn hold() {}

/// Empties no cache: the system has no call for it.
///
/// # Errors
/// Always, with a source of the kind `Unsupported`.
pub fn empty() -> Result<(), Error> {
    Err(Error::new("empty", "the cache of files", io::ErrorKind::Unsupported))
}
