//! Options of a lab.

use std::path::PathBuf;

/// Options of a lab.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// Program that runs the agent in each host.
    pub program: PathBuf,
    /// Whether the lab may outlive this program ([`Lab::keep`](crate::Lab::keep)).
    pub keep: bool,
    /// Folders of this machine that copies in the lab may read and write.
    pub folders: Vec<PathBuf>,
}
