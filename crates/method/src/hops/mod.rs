//! Probes along a path: delays and losses by hop, and where on the path they begin.

mod change;
mod one_way;
mod section;
mod way;

use crate::beside;
use crate::clock_offset::between;
use crate::verdict::percent;
use linerate_model::{
    Caveat, CaveatKind, Counts, Direction, HopRef, HopsCounts, HopsTask, HostName, Limit, LimitPlace, Measurement,
    Message, Path, PathEffect, PathSection, ProbedWay, Task, TaskKind, Transport, Trial, TrialResult, Verdict,
    WayFigures, message, tcp_packet,
};
use linerate_units::{BitRate, Nanos};
use way::ProbedRuns;

/// Above this share of the stream's rate, probes take a visible part of the path.
const PROBE_SHARE: f64 = 0.01;

/// Returns the figures of all probed ways of a cell, over its runs. Empty if it has no probes.
pub(crate) fn ways(cell: &Trial, runs: &[&TrialResult], idle: &[&TrialResult]) -> Vec<WayFigures> {
    let Some(task) = probes(cell) else { return Vec::new() };
    // Without a load, the runs themselves are those of the idle path.
    let (idle, loaded) = if cell.task().kind() == TaskKind::Hops { (runs, &[][..]) } else { (idle, runs) };
    let mut ways = Vec::new();
    for (index, path) in task.paths.iter().enumerate() {
        for end in [End::Client, End::Server] {
            let probed = ProbedRuns { idle: end.ways(index, idle), loaded: end.ways(index, loaded) };
            ways.extend(probed.figures(end.from(path), end.to(path), end.is_loaded(cell)));
        }
    }
    ways
}

/// Gives the verdict on a load of flows its section of the path, if the probes show one that fits the limit.
pub(crate) fn locate(result: &mut Measurement, cell: &Trial) {
    if let Some(section) = limiting_black_hole(result) {
        let verdict = Verdict::new(Limit::MtuBlackHole, section.confidence, vec![evidence(&section)]);
        let next = message!(
            "hops-next-black-hole",
            "Lower the MTU or the segment size (--mss), or let the router ahead of that link send ICMP \"packet too big\"."
        );
        let weighed = std::mem::take(&mut result.verdict.weighed);
        let place = Some(LimitPlace::ForwardPath);
        result.verdict = Verdict { place, section: Some(section), next: vec![next], weighed, ..verdict };
        return;
    }
    let effects: &[PathEffect] = match result.verdict.limit {
        Limit::Shaper | Limit::Wire | Limit::Device => &[PathEffect::Queue, PathEffect::Loss],
        Limit::PathLoss => &[PathEffect::Loss],
        Limit::MtuBlackHole => &[PathEffect::BlackHole],
        _ => return,
    };
    let is_return = result.verdict.place == Some(LimitPlace::ReturnPath);
    let ways = result.ways();
    let is_probed = ways.iter().any(|way| way.under_load);
    let on_way = ways.iter().filter(|way| way.under_load != is_return);
    let sections: Vec<&PathSection> = on_way.flat_map(|way| &way.sections).collect();
    let section = effects.iter().find_map(|effect| sections.iter().find(|section| section.effect == *effect));
    let verdict_changes = match section {
        Some(section) => Some((Some((*section).clone()), evidence(section))),
        None if is_probed => Some((None, not_located(cell))),
        None => None,
    };
    if let Some((section, text)) = verdict_changes {
        if section.is_some() && result.verdict.place.is_none() {
            result.verdict.place = Some(LimitPlace::ForwardPath);
        }
        result.verdict.section = section;
        result.verdict.evidence.push(text);
    }
}

/// Returns the black hole of the way that a TCP stream took, if nothing arrived although smaller packets do.
fn limiting_black_hole(result: &Measurement) -> Option<PathSection> {
    let flows = result.flows()?;
    let is_stalled = result.main.median == 0.0 && flows.transport == Transport::Tcp;
    let loaded = result.ways().iter().filter(|way| way.under_load);
    let mut sections = loaded.flat_map(|way| &way.sections);
    let hole = sections.find(|section| section.effect == PathEffect::BlackHole)?;
    let packet = flows.tcp.as_ref().map(|tcp| tcp_packet(flows.ip, tcp.mss))?;
    (is_stalled && f64::from(packet) >= hole.amount).then(|| hole.clone())
}

/// Returns what the probes show of a section, in a sentence.
pub(crate) fn evidence(section: &PathSection) -> Message {
    let after = hop_name(&section.after);
    let before = hop_name(&section.before);
    match section.effect {
        PathEffect::Queue => message!(
            "hops-queue",
            "Under load, probes took {added} longer from {before} on, and no longer up to {after}.",
            added = Nanos::new(section.amount as u64),
            before,
            after
        ),
        PathEffect::Loss => message!(
            "hops-loss",
            "{share} of the probes were lost from {before} on, and hardly any up to {after}.",
            share = percent(section.amount),
            before,
            after
        ),
        PathEffect::BlackHole => message!(
            "hops-black-hole",
            "Packets of {bytes} bytes passed {after}, and did not reach {before}; nothing reported that they were too big.",
            bytes = section.amount as u64,
            before,
            after
        ),
    }
}

/// Returns the name of a hop in a sentence, as in `hop 3 (198.18.4.1)`.
pub(crate) fn hop_name(hop: &HopRef) -> Message {
    match hop.address {
        _ if hop.ttl == 0 => message!("hop-self", "the probing host"),
        Some(address) => {
            message!("hop-named", "hop {ttl} ({address})", ttl = u64::from(hop.ttl), address = address.to_string())
        }
        None => message!("hop-silent", "hop {ttl}, which does not answer", ttl = u64::from(hop.ttl)),
    }
}

fn not_located(cell: &Trial) -> Message {
    match cell.net().map(|net| net.transport) {
        Some(Transport::Tcp) => message!(
            "hops-not-located",
            "The probes do not show where on the path: they are a flow of their own, which a fair queue or another branch treats \
             differently, or too few routers answered."
        ),
        _ => message!("hops-not-located-udp", "The probes do not show where on the path: too few routers answered."),
    }
}

/// Returns a caveat if the probes took more than a hundredth of what a stream of `stream` bit/s reached.
pub(crate) fn probe_share(ways: &[WayFigures], stream: f64) -> Option<Caveat> {
    let probes = ways.iter().filter(|way| way.under_load).map(|way| way.probe_bps).fold(0.0, f64::max);
    (probes > stream * PROBE_SHARE).then(|| {
        let text = message!(
            "caveat-hops-share",
            "the probes of the routers took {probes} of the path, {share} as much as the stream, which therefore reached less; measure \
             without --hops for the throughput alone",
            probes = BitRate::per_second(probes as u64),
            share = percent(probes / stream.max(1.0))
        );
        Caveat::new(CaveatKind::ProbeShare, text)
    })
}

/// Returns the caveats of probed ways: paths that changed, and packets that were not the first choice.
pub(crate) fn caveats(ways: &[WayFigures]) -> Vec<Caveat> {
    let changed = ways.iter().filter(|way| way.path_changed);
    changed
        .map(|way| {
            let text = message!(
                "caveat-path-changed",
                "the path from {from} to {to} changed while it was probed: both routers of a hop are listed, and delays are those of \
                 both",
                from = &way.from,
                to = &way.to
            );
            Caveat::new(CaveatKind::PathChanged, text)
        })
        .collect()
}

/// Returns the probes of a cell, measured or next to its load.
pub(crate) fn probes(cell: &Trial) -> Option<&HopsTask> {
    cell.loads.iter().find_map(|load| match &load.task {
        Task::Hops(task) => Some(task),
        _ => None,
    })
}

/// End of a path that probes the way to the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Client,
    Server,
}

impl End {
    fn from(self, path: &Path) -> &HostName {
        if self == Self::Client { &path.client } else { path.server.name() }
    }

    fn to(self, path: &Path) -> &HostName {
        if self == Self::Client { path.server.name() } else { &path.client }
    }

    /// Returns whether the measured load of `cell` sends data from this end.
    fn is_loaded(self, cell: &Trial) -> bool {
        match cell.task() {
            Task::Hops(_) => false,
            Task::Stream(stream) => match stream.direction {
                Direction::Send => self == Self::Client,
                Direction::Receive => self == Self::Server,
                Direction::Both => true,
            },
            _ => true,
        }
    }

    /// Returns the way from this end of path `index` in each run, with the offset of the clocks of its ends.
    fn ways<'a>(self, index: usize, runs: &[&'a TrialResult]) -> Vec<way::ProbedRun<'a>> {
        runs.iter().filter_map(|run| self.way(index, run)).collect()
    }

    fn way(self, index: usize, run: &TrialResult) -> Option<way::ProbedRun<'_>> {
        let Some(Counts::Hops(paths)) = beside::counts(run, TaskKind::Hops) else { return None };
        let counts = paths.get(index)?;
        let path = probes(&run.trial)?.paths.get(index)?;
        Some(way::ProbedRun { way: self.probed(counts)?, clock: between(&run.clocks, self.from(path), self.to(path)) })
    }

    fn probed(self, counts: &HopsCounts) -> Option<&ProbedWay> {
        let end = if self == Self::Client { Some(&counts.client) } else { counts.server.as_ref() };
        end?.way.as_ref()
    }
}
