//! What the rules weigh of a copy: where the stages of its slowest pair spent their time, and what their hosts saw.

use super::bus::BusUse;
use super::end::THROTTLED;
use super::server_load::ServerLoad;
use super::tcp::Tcp;
use super::window::WindowFacts;
use linerate_model::{CopyStage, Observation, StageShare, WorkShare};
use linerate_units::BitRate;
use std::collections::BTreeMap;

/// Of a copy, what this leaves goes by while the first files are read and the last ones made durable.
pub(crate) const MOSTLY_FULL: f64 = 0.85;

/// The facts of one copy, from the source to the destination that was done last.
#[derive(Debug, Clone)]
pub(crate) struct CopyFacts {
    /// How well the copy was observed.
    pub(crate) window: WindowFacts,
    /// It is read from files.
    pub(crate) reads: bool,
    /// It is written to files.
    pub(crate) writes: bool,
    /// A file server is the end that it is read from, or written to.
    pub(crate) server: Option<ServerEnd>,
    /// What an agent on that server counted meanwhile.
    pub(crate) server_load: Option<ServerLoad>,
    /// It goes from host to host.
    pub(crate) crosses: bool,
    /// One thread does all stages of a lane in turn, so that their times add up; but for `list`, which has its own.
    pub(crate) in_turn: bool,
    /// What is written is read back.
    pub(crate) reads_back: bool,
    /// Each file is made durable while others are written, and not all at the end.
    pub(crate) syncs_each: bool,
    /// Where the time went.
    pub(crate) stages: BTreeMap<CopyStage, StageShare>,
    /// The host that reads.
    pub(crate) source: CopyEnd,
    /// The host that writes.
    pub(crate) destination: CopyEnd,
    /// The rate of the fullest link whose speed is known, and the share of it that was used.
    pub(crate) line: Option<(BitRate, f64)>,
    /// The fullest bus that is slower than its card's link.
    pub(crate) bus: Option<BusUse>,
    /// What TCP says of the connections; none where the way is none of linerate's own.
    pub(crate) tcp: Option<Tcp>,
    /// Share of the time in which the path carried nothing.
    pub(crate) outage: f64,
    /// Share of a host's time that the hypervisor took, the most of any.
    pub(crate) steal: f64,
}

/// What a file server does for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerEnd {
    Read,
    Written,
}

/// What a host saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct CopyEnd {
    /// Of the periods of its CPU quota, the share in which that was used up, and the cores' worth it allows.
    pub(crate) throttled: Option<(f64, f64)>,
    /// The busiest of the disks that hold its folders, and the share of the time that it had work.
    pub(crate) disk: Option<(String, f64)>,
    /// Share of the time that some task of the host waited for storage, whoever's (PSI); none where the kernel keeps no count.
    pub(crate) stalled: Option<f64>,
}

impl CopyFacts {
    fn stage(&self, stage: CopyStage) -> StageShare {
        self.stages.get(&stage).copied().unwrap_or_default()
    }

    /// Share of the time that a stage, in its busiest lane, was at work and neither on a core nor waiting for one: it waited for what it works on.
    pub(crate) fn blocked(&self, stage: CopyStage) -> f64 {
        let WorkShare { busy, cpu, queued } = self.stage(stage).busiest;
        (busy - cpu - queued).max(0.0)
    }

    /// Largest share of the time that one of `stages`, in its busiest lane, waited for a core.
    pub(crate) fn waited(&self, stages: &[CopyStage]) -> f64 {
        stages.iter().map(|stage| self.stage(*stage).busiest.queued).fold(0.0, f64::max)
    }

    /// Share of the time that a stage had nothing to do.
    pub(crate) fn starved(&self, stage: CopyStage) -> f64 {
        self.stage(stage).waiting_for_previous
    }

    /// Share of the time that data waited to be sent while the destination had none. What the hypervisor took looks like waiting.
    pub(crate) fn held_on_path(&self) -> f64 {
        self.blocked(CopyStage::Send).min(self.starved(CopyStage::Receive)) - self.steal
    }

    /// What TCP says of a path that its hosts had time for; none where that is not known.
    pub(crate) fn path(&self) -> Option<&Tcp> {
        let stopped = self.source.is_throttled() || self.destination.is_throttled();
        self.tcp.as_ref().filter(|_| self.crosses && !stopped)
    }

    /// Of `stages`, the one that was on a core or waiting for one the most in its busiest lane, and for how long.
    pub(crate) fn computes(&self, stages: &[CopyStage]) -> Option<(CopyStage, WorkShare)> {
        let there = stages.iter().filter_map(|stage| Some((*stage, self.stages.get(stage)?.busiest)));
        there.max_by(|(_, l), (_, r)| (l.cpu + l.queued).total_cmp(&(r.cpu + r.queued)))
    }

    /// Share of the time that `stages`, done in turn by one thread, were on a core or waited for one.
    pub(crate) fn computed(&self, stages: &[CopyStage]) -> f64 {
        let of_lane = stages.iter().filter(|stage| **stage != CopyStage::List);
        let share = |stage: &CopyStage| self.stage(*stage).busiest;
        of_lane.map(share).map(|work| work.cpu + work.queued).sum::<f64>().min(1.0)
    }

    /// Of `stages`, the one that was blocked the most, and for how long: with all others of its thread, where they are done in turn.
    pub(crate) fn most_blocked(&self, stages: &[CopyStage]) -> (Option<CopyStage>, f64) {
        let there = || stages.iter().filter(|stage| self.stages.contains_key(stage));
        let worst = there().map(|stage| (*stage, self.blocked(*stage))).max_by(|l, r| l.1.total_cmp(&r.1));
        let Some((stage, share)) = worst else { return (None, 0.0) };
        let of_lane = there().filter(|stage| self.in_turn && **stage != CopyStage::List);
        (Some(stage), share.max(of_lane.map(|stage| self.blocked(*stage)).sum::<f64>().min(1.0)))
    }
}

impl CopyEnd {
    pub(crate) fn of(seen: &Observation) -> Self {
        let throttled = seen.quota.filter(|quota| quota.periods > 0);
        let window = seen.window.get().max(1) as f64;
        let disks = seen.disks.iter().map(|disk| (disk.name.clone(), (disk.busy.get() as f64 / window).min(1.0)));
        Self {
            throttled: throttled.map(|quota| (quota.throttled as f64 / quota.periods as f64, quota.cores)),
            disk: disks.max_by(|l, r| l.1.total_cmp(&r.1)),
            stalled: seen.pressure.map(|pressure| (pressure.io.some.get() as f64 / window).min(1.0)),
        }
    }

    /// A CPU quota stops its threads, whatever they do.
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled.is_some_and(|(share, _)| share >= THROTTLED)
    }
}
