//! One way: what its probes found, in all runs together.

use super::section::sections;
use super::{change, one_way};
use linerate_model::{
    ClockOffset, Hop, HopDelay, HopFigures, HopSample, HostName, MplsLabel, OneWayFigures, PathMtu, ProbedWay,
    WayFigures,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Runs of one way, on the idle path and while the load ran.
pub(super) struct ProbedRuns<'a> {
    pub(super) idle: Vec<ProbedRun<'a>>,
    pub(super) loaded: Vec<ProbedRun<'a>>,
}

/// One way in one run.
pub(super) struct ProbedRun<'a> {
    pub(super) way: &'a ProbedWay,
    /// Clock of the far end less that of the probing host. `None` if it is not known.
    pub(super) clock: Option<ClockOffset>,
}

/// Probes of one TTL in all runs.
#[derive(Debug, Clone, Default)]
pub(super) struct ProbedHop {
    pub(super) ttl: u8,
    pub(super) is_far_end: bool,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) idle: Probes,
    pub(super) loaded: Probes,
    pub(super) labels: Vec<MplsLabel>,
    pub(super) rate_limited: bool,
}

/// Probes of one TTL, idle or loaded.
#[derive(Debug, Clone, Default)]
pub(super) struct Probes {
    pub(super) sent: u64,
    pub(super) answered: u64,
    /// Probes that reached the far end, where it counts them.
    pub(super) reflected: Option<u64>,
    /// Round trips, nanoseconds.
    pub(super) delays: Vec<f64>,
    /// Differences of the clocks at arrival and at sending, there and back, nanoseconds.
    pub(super) one_way: Vec<[f64; 2]>,
}

impl Probes {
    fn add(&mut self, hop: &Hop) {
        self.sent += hop.sent;
        self.answered += hop.answered;
        if let Some(reflected) = hop.reflected {
            *self.reflected.get_or_insert_default() += reflected;
        }
        self.delays.extend(hop.samples.iter().filter_map(delay_ns));
        self.one_way.extend(hop.samples.iter().filter_map(|sample| Some(sample.one_way?.map(|time| time as f64))));
    }

    fn figures(&self) -> Option<HopDelay> {
        let mut sorted = self.delays.clone();
        sorted.sort_by(f64::total_cmp);
        (self.sent > 0).then(|| HopDelay {
            sent: self.sent,
            answered: self.answered,
            p50: quantile(&sorted, 0.5).map(nanos),
            p99: quantile(&sorted, 0.99).map(nanos),
        })
    }
}

fn delay_ns(sample: &HopSample) -> Option<f64> {
    sample.delay.map(|delay| delay.get() as f64)
}

pub(super) fn nanos(value: f64) -> Nanos {
    Nanos::new(value.max(0.0) as u64)
}

/// Returns the smallest value that a `share` of `sorted` does not exceed. `None` without values.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

impl ProbedRuns<'_> {
    /// Returns the figures of the way. `None` if no run probed it.
    pub(super) fn figures(&self, from: &HostName, to: &HostName, under_load: bool) -> Option<WayFigures> {
        let last = self.all().last()?.way;
        let hops = self.hops();
        let path_mtu = self.path_mtu();
        let sections = sections(&hops, path_mtu.as_ref(), under_load);
        let (idle, loaded) = (one_way::delay(&self.idle), one_way::delay(&self.loaded));
        Some(WayFigures {
            from: from.clone(),
            to: to.clone(),
            packet: last.packet,
            under_load,
            sections,
            one_way: (idle.is_some() || loaded.is_some()).then_some(OneWayFigures { idle, loaded }),
            probe_bps: self.all().map(probe_bps).fold(0.0, f64::max),
            path_changed: self.path_changed(),
            changes: self.idle.last().map(change::changes).unwrap_or_default(),
            hops: hops.iter().map(ProbedHop::figures).collect(),
            path_mtu,
        })
    }

    fn all(&self) -> impl Iterator<Item = &ProbedRun<'_>> {
        self.idle.iter().chain(&self.loaded)
    }

    fn hops(&self) -> Vec<ProbedHop> {
        let mut hops: BTreeMap<u8, ProbedHop> = BTreeMap::new();
        for (run, is_idle) in self.idle.iter().map(|run| (run, true)).chain(self.loaded.iter().map(|run| (run, false)))
        {
            for hop in &run.way.hops {
                let whole = hops.entry(hop.ttl).or_insert_with(|| ProbedHop { ttl: hop.ttl, ..ProbedHop::default() });
                whole.is_far_end |= hop.is_far_end;
                whole.rate_limited |= hop.rate_limited;
                if is_idle { &mut whole.idle } else { &mut whole.loaded }.add(hop);
                for known in &hop.addresses {
                    if !whole.addresses.contains(&known.address) {
                        whole.addresses.push(known.address);
                    }
                    if !known.labels.is_empty() {
                        whole.labels.clone_from(&known.labels);
                    }
                }
            }
        }
        // Nothing lies beyond the far end.
        let far_end = hops.values().find(|hop| hop.is_far_end).map_or(u8::MAX, |hop| hop.ttl);
        hops.into_values().filter(|hop| hop.ttl <= far_end).collect()
    }

    fn path_mtu(&self) -> Option<PathMtu> {
        self.all().filter_map(|run| run.way.path_mtu.clone()).last()
    }

    /// Returns whether one address of a hop was replaced by another for good, which equal branches are not.
    fn path_changed(&self) -> bool {
        let within_a_run = self.all().any(|run| run.way.hops.iter().any(is_replaced));
        let runs: Vec<&ProbedRun<'_>> = self.all().collect();
        let between_runs = runs.windows(2).any(|pair| {
            pair[0].way.hops.iter().any(|hop| {
                let addresses = pair[0].only_address(hop.ttl).zip(pair[1].only_address(hop.ttl));
                addresses.is_some_and(|(one, other)| one != other)
            })
        });
        within_a_run || between_runs
    }
}

/// Returns whether one of two routers answered only before, and the other only later.
fn is_replaced(hop: &Hop) -> bool {
    match &hop.addresses[..] {
        [one, other] => one.last < other.first || other.last < one.first,
        _ => false,
    }
}

impl ProbedRun<'_> {
    /// Returns the address of a hop that answered from one address only.
    fn only_address(&self, ttl: u8) -> Option<IpAddr> {
        let hop = self.way.hops.iter().find(|hop| hop.ttl == ttl)?;
        if let [only] = &hop.addresses[..] { Some(only.address) } else { None }
    }
}

/// Returns the rate of the probes of a run, bit/s. Samples show for how long they were sent.
fn probe_bps(run: &ProbedRun<'_>) -> f64 {
    let samples = run.way.hops.iter().flat_map(|hop| &hop.samples);
    let until = samples.map(|sample| sample.at.get()).max().unwrap_or_default() as f64 / 1e9;
    let in_window: u64 = run.way.hops.iter().map(|hop| hop.sent).sum();
    let bytes = in_window as f64 * run.way.sent_bytes as f64 / run.way.sent.max(1) as f64;
    if until > 0.0 { bytes * 8.0 / until } else { 0.0 }
}

impl ProbedHop {
    fn figures(&self) -> HopFigures {
        HopFigures {
            ttl: self.ttl,
            addresses: self.addresses.clone(),
            is_far_end: self.is_far_end,
            labels: self.labels.clone(),
            rate_limited: self.rate_limited,
            idle: self.idle.figures(),
            loaded: self.loaded.figures(),
        }
    }
}
