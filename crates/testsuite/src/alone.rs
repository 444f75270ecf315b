//! Tests that disturb each other.

use crate::file_lock::locked;
use std::fs::File;

/// Guard that makes other tests that call [`alone`] wait until it is dropped.
#[derive(Debug)]
pub struct Alone {
    _lock: File,
}

/// Waits until no other test of any program holds the guard.
///
/// It is for tests that count leftovers on the machine or compare a rate with another program's, and for tests that
/// would change such a count.
///
/// # Panics
/// The lock file cannot be opened or locked.
pub fn alone() -> Alone {
    Alone { _lock: locked(&std::env::temp_dir(), "alone", File::lock) }
}
