//! Lifetime of the processes of a lab: each ends when its standard input ends.

use linerate_sys::Error;
use std::io::{self, Read as _};

/// Waits until standard input ends, which means that the lab is gone.
///
/// # Errors
/// Fails if standard input cannot be read.
pub(crate) fn wait_for_end() -> Result<(), Error> {
    io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(|error| Error::new("read", "standard input", error))
}
