//! What a fleet file would do, without running it.

use super::order::{FleetHost, Moment, Outcome};
use super::planner::Planner;
use super::warning::PlanWarning;
use crate::file::FleetFile;
use linerate_model::HostName;
use linerate_units::{ByteCount, Nanos};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A plan for a span of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// Trials that begin together, in order of time.
    pub rounds: Vec<PreviewRound>,
    /// Estimated bytes of all trials.
    pub bytes: ByteCount,
    /// Time from the beginning of the span to the end of the last trial.
    pub time: Nanos,
    /// Each mesh of the file, in its order.
    pub meshes: Vec<PreviewMesh>,
    /// What of the file does not fit the hosts.
    pub warnings: Vec<PlanWarning>,
}

/// Trials that begin together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewRound {
    /// Unix time, in seconds.
    pub begins_unix_s: u64,
    /// Index of the mesh in [`Preview::meshes`], and the pair.
    pub pairs: Vec<(usize, HostName, HostName)>,
}

/// A mesh in a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewMesh {
    /// Name.
    pub mesh: String,
    /// Trials that begin in the span.
    pub trials: u64,
    /// Pairs of hosts of the mesh.
    pub pairs: u64,
    /// Periods in which all pairs have their turn: 1 without `sample`.
    pub periods_for_all: u64,
    /// Estimated bytes.
    pub bytes: ByteCount,
    /// Estimated time of its trials, one after the other.
    pub time: Nanos,
    /// Missed slots by reason.
    pub missed: BTreeMap<String, u64>,
}

/// Plans the trials of a span of time. Hosts stay as they are, and each trial takes its estimated time.
///
/// A planner with the same seed that is asked at the same moments begins the same trials.
pub fn preview(file: FleetFile, seed: u64, hosts: Vec<FleetHost>, from: Moment, span: Nanos) -> Preview {
    let mut planner = Planner::new(file, seed);
    planner.set_hosts(hosts);
    let mut meshes: Vec<PreviewMesh> = Vec::new();
    for (index, mesh) in planner.file().meshes.iter().enumerate() {
        let (pairs, periods_for_all) = planner.size(index);
        meshes.push(PreviewMesh {
            mesh: mesh.name.clone(),
            trials: 0,
            pairs,
            periods_for_all,
            bytes: ByteCount::new(0),
            time: Nanos::new(0),
            missed: BTreeMap::new(),
        });
    }
    let numbers: BTreeMap<String, usize> =
        meshes.iter().enumerate().map(|(index, mesh)| (mesh.mesh.clone(), index)).collect();
    let end = from.unix_s.saturating_add(span.get() / 1_000_000_000);
    let mut rounds = Vec::new();
    let mut ends = BinaryHeap::new();
    let mut last_end = from.unix_s;
    let mut now = from;
    while now.unix_s < end {
        while let Some(Reverse((at, _, _))) = ends.peek() {
            if *at > now.unix_s {
                break;
            }
            if let Some(Reverse((_, id, bytes))) = ends.pop() {
                planner.ended(&id, Outcome::Done, bytes, now);
            }
        }
        let mut pairs = Vec::new();
        for order in planner.due(now) {
            let mesh = numbers[&order.mesh];
            let ends_at = now.unix_s + order.time.get().div_ceil(1_000_000_000);
            last_end = last_end.max(ends_at);
            meshes[mesh].trials += 1;
            meshes[mesh].bytes += order.bytes;
            meshes[mesh].time = meshes[mesh].time + order.time;
            ends.push(Reverse((ends_at, order.id.clone(), order.bytes)));
            pairs.push((mesh, order.from.clone(), order.to.clone()));
        }
        if !pairs.is_empty() {
            rounds.push(PreviewRound { begins_unix_s: now.unix_s, pairs });
        }
        for missed in planner.missed() {
            *meshes[numbers[&missed.mesh]].missed.entry(missed.reason.to_string()).or_default() += 1;
        }
        let wake = planner.next_wake(now).unwrap_or(end).max(now.unix_s + 1);
        let next_end = ends.peek().map_or(end, |Reverse((at, _, _))| *at);
        now.unix_s = wake.min(next_end.max(now.unix_s + 1)).min(end);
    }
    Preview {
        rounds,
        bytes: meshes.iter().map(|mesh| mesh.bytes).sum(),
        time: Nanos::from_secs(last_end - from.unix_s),
        warnings: planner.warnings(),
        meshes,
    }
}
