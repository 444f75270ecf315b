//! What a process gives up before it answers anyone: nothing here. Neither Capsicum of FreeBSD nor the sandbox of macOS is used.

use crate::Error;
pub use crate::kept_rights::KeptRights;
use std::fmt;

/// Whether [`confine`] takes anything away.
pub const CONFINES: bool = false;

/// Restrictions in force after a process has confined itself: none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confined(());

/// Formats one line.
impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not confined (this system has only the rights of the user)")
    }
}

/// Gives up nothing, and returns so.
///
/// # Errors
/// None on this system.
pub fn confine(_kept: &KeptRights) -> Result<Confined, Error> {
    Ok(Confined(()))
}
