//! The user that runs this program.

pub use crate::nfs_ids::NfsIds;

/// Returns the IDs of this program's user. Always `None`: Windows does not number its users.
pub fn nfs_ids() -> Option<NfsIds> {
    None
}
