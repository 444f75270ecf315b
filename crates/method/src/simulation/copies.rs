//! Copies of folder trees: as fast as the path or the destination's storage lets them.

use super::Network;
use super::streams::MSS;
use linerate_model::{
    CopyCounts, CopySide, CopyStage, CopyTask, CopyTree, Net, RoleKind, StageTime, TcpFlow, Transport, WorkTime,
};
use linerate_units::Nanos;

/// What a tree that is a folder has.
const FOLDER_FILES: u64 = 10;
const FOLDER_BYTES: u64 = 1_000_000;

impl Network {
    /// What a part of a copy counts: a side for each host at its other end.
    pub(super) fn copier(&self, kind: &RoleKind, task: &CopyTask) -> CopyCounts {
        let (files, folders, bytes) = tree(task);
        let (time, stored) = (self.copy_time(task), self.storage_is_slower());
        let links = match kind {
            RoleKind::Source => task.destinations.len(),
            RoleKind::Destination | RoleKind::FileServer => task.sources.len(),
            _ => 1,
        };
        let busy = |stage| StageTime {
            threads: 1,
            busy: time,
            busiest: WorkTime { busy: time, ..WorkTime::default() },
            ..stage
        };
        let idle = |previous| StageTime {
            threads: 1,
            waiting_for_previous: if previous { time } else { Nanos::default() },
            waiting_for_next: if previous { Nanos::default() } else { time },
            ..StageTime::default()
        };
        let stages = match kind {
            // The slowest stage has work all the time. Those before it wait for it, and those after it wait for data.
            RoleKind::Source if stored => vec![(CopyStage::Read, idle(false)), (CopyStage::Send, idle(false))],
            RoleKind::Source => vec![(CopyStage::Read, idle(false)), (CopyStage::Send, busy(StageTime::default()))],
            _ if stored => vec![(CopyStage::Receive, idle(false)), (CopyStage::Write, busy(StageTime::default()))],
            _ => vec![(CopyStage::Receive, idle(true)), (CopyStage::Write, idle(true))],
        };
        let rate = bytes as f64 * 8.0 / time.as_secs_f64();
        let net = Net::plain(Transport::Tcp);
        let side = CopySide {
            time,
            files,
            folders,
            bytes,
            verified: files,
            stages: stages.into_iter().collect(),
            tcp: match kind {
                RoleKind::Source => vec![TcpFlow { mss: MSS, ..self.tcp_flow(&net, rate, time) }],
                _ => Vec::new(),
            },
            complete: true,
            ..CopySide::default()
        };
        CopyCounts { sides: vec![side; links.max(1)], faults: Vec::new(), faults_total: 0 }
    }

    /// How long a copy takes: each destination gets a tree of each source, and all share the line and the storage.
    pub(super) fn copy_time(&self, task: &CopyTask) -> Nanos {
        let (_, _, bytes) = tree(task);
        let pairs = (task.sources.len().max(1) * task.destinations.len().max(1)) as u64;
        let path = self.copy_path();
        let per_s = path.min(self.storage as f64);
        Nanos::new(((bytes * pairs) as f64 / per_s * 1e9).ceil() as u64).max(Nanos::new(1))
    }

    /// Bytes a second that the path takes of a copy.
    fn copy_path(&self) -> f64 {
        let line = self.payload(Transport::Tcp, linerate_model::IpVersion::V4, 1 << 20);
        line.min(self.reno().unwrap_or(f64::INFINITY)) / 8.0
    }

    fn storage_is_slower(&self) -> bool {
        (self.storage as f64) < self.copy_path()
    }
}

/// Files, folders and bytes of the tree.
fn tree(task: &CopyTask) -> (u64, u64, u64) {
    match &task.tree {
        CopyTree::Made(tree) => (tree.files, tree.folders, tree.bytes.get()),
        CopyTree::Folder(_) => (FOLDER_FILES, 1, FOLDER_BYTES),
    }
}
