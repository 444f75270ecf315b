//! Rights of a confined process.

use std::path::PathBuf;

/// Rights that a process keeps when it gives up all others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptRights {
    /// Folders that it reads, with what is below them.
    pub reads: Vec<PathBuf>,
    /// Folders that it writes, with what is below them.
    pub writes: Vec<PathBuf>,
    /// Reading and writing of all users' files below the folders.
    pub files_of_all_users: bool,
    /// Raw frames.
    pub frames: bool,
    /// Socket buffers beyond the system's limits, busy polling and all congestion controls.
    pub net_admin: bool,
    /// Binding of ports below 1024.
    pub low_ports: bool,
}
