//! The engines of this agent: the one table that says who does which task.

use linerate_copy::{AllowedFolders, Copy};
use linerate_engine::Engine;
use linerate_frames::Frames;
use linerate_iperf3::Iperf3;
use linerate_nfs::Nfs;
use linerate_nfsd::NfsService;
use linerate_oncrpc::OncRpc;
use linerate_probes::Probes;
use linerate_streams::Streams;
use std::sync::Arc;

/// Resources of the host that engines may use. By default they touch no file.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Folders that copies may read and write.
    pub folders: AllowedFolders,
    /// Service of the NFS servers of trials: content and speed.
    pub nfs: NfsService,
}

/// Makes all engines, with the resources of the host they may use.
pub(crate) fn table(options: &EngineOptions) -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(Streams),
        Box::new(Iperf3),
        Box::new(OncRpc),
        Box::new(Nfs { server: Arc::new(options.nfs.clone()) }),
        Box::new(Frames),
        Box::new(Probes),
        Box::new(Copy::new(options.folders.clone())),
    ]
}
