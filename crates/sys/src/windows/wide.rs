//! Texts as calls of the Windows API take and return them.

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt as _;

/// Returns `text` in UTF-16 with a zero at its end.
///
/// # Errors
/// The text has a zero in it.
pub(crate) fn wide(text: impl AsRef<OsStr>) -> io::Result<Vec<u16>> {
    let mut wide: Vec<u16> = text.as_ref().encode_wide().collect();
    if wide.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the text has a zero in it"));
    }
    wide.push(0);
    Ok(wide)
}
