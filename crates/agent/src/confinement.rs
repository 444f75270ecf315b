//! What an agent gives up before it answers anyone: capabilities, files, programs, system calls.
//!
//! A fault in the code that reads foreign bytes is then worth what the agent's options allow, and no more. Nothing of
//! it can be taken back while the process lives. It binds the thread that starts the agent and all threads that this
//! one starts; so an agent that is to be confined is started before its process has others.

use crate::StartError;
use crate::options::{AgentOptions, Confinement};
pub use linerate_sys::confinement::Confined;
use linerate_sys::confinement::{KeptRights, confine};
use std::path::PathBuf;

impl Confinement {
    /// Gives up all that an agent with these `options` does not need. What the system does not have is left out, and shown by the
    /// result.
    ///
    /// # Errors
    /// A folder cannot be opened, or the system refuses what it has.
    pub(crate) fn apply(&self, options: &AgentOptions) -> Result<Confined, StartError> {
        if options.limits.cold_cache {
            linerate_copy::hold_cache_dropping();
        }
        // Some things are tried by means that are given up.
        linerate_observe::capabilities();
        let written = written(options);
        let kept = KeptRights {
            reads: self.reads.clone(),
            files_of_all_users: !written.is_empty(),
            writes: written.into_iter().chain(self.writes.clone()).collect(),
            frames: !options.limits.frames.is_none(),
            net_admin: self.net_admin,
            low_ports: self.low_ports,
        };
        confine(&kept).map_err(StartError::Confinement)
    }
}

/// Folders that engines may write.
fn written(options: &AgentOptions) -> Vec<PathBuf> {
    let engines = &options.engines;
    let mut all: Vec<PathBuf> = engines.folders.allowed.clone();
    all.extend(engines.folders.scratch.clone());
    all.extend(engines.nfs.directory.clone());
    all
}
