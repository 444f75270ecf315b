//! Numbers of users.

/// Numbers of a user and a group, as NFS servers know them (AUTH_SYS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NfsIds {
    /// The user ID.
    pub user: u32,
    /// The group ID.
    pub group: u32,
}
