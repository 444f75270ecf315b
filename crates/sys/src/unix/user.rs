//! The user that runs this program.

pub use crate::nfs_ids::NfsIds;
use nix::unistd::{getegid, geteuid};

/// Returns the IDs of this program's user. `None` if the system does not number its users.
pub fn nfs_ids() -> Option<NfsIds> {
    Some(NfsIds { user: geteuid().as_raw(), group: getegid().as_raw() })
}
