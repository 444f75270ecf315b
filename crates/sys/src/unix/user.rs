//! The user that runs this program.

use nix::unistd::{getegid, geteuid};

/// Numbers of a user and a group, as NFS servers know them (AUTH_SYS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NfsIds {
    /// The user ID.
    pub user: u32,
    /// The group ID.
    pub group: u32,
}

/// Returns the IDs of this program's user. `None` if the system does not number its users.
pub fn nfs_ids() -> Option<NfsIds> {
    Some(NfsIds { user: geteuid().as_raw(), group: getegid().as_raw() })
}
