//! Tests that disturb each other.

use crate::file_lock::locked;
use std::fs::File;

/// Keeps other tests that call [`alone`] waiting until it is dropped.
#[derive(Debug)]
pub struct Alone {
    _lock: File,
}

/// Waits until no other test of any program holds the guard. A test needs it that counts what is left on the machine, or that
/// compares a rate with what another program measured; so do the tests beside it that would change such a count.
///
/// # Panics
/// The lock file cannot be opened or locked.
pub fn alone() -> Alone {
    Alone { _lock: locked(&std::env::temp_dir(), "alone", File::lock) }
}
