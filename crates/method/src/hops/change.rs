//! Changes of the round trip in the course of one run without a load.

use super::way::{ProbedRun, nanos};
use crate::statistics::{change_points, median};
use linerate_model::{DelayChange, Hop, HopRef};

/// Answers whose median is one value of the series. Delays of neighbours depend on each other, their medians less.
const ANSWERS: usize = 5;
/// Values of the series at most.
const MAX_VALUES: usize = 120;
/// Smallest change that is reported: a share of the level before, and nanoseconds.
const MIN_SHARE: f64 = 0.1;
const MIN_CHANGE: f64 = 100_000.0;
/// A hop has a change if its own level changed by at least this share of it.
const OF_HOP: f64 = 0.5;

/// Time of sending and round trip, nanoseconds.
type Answer = (u64, f64);

/// Returns the changes of the round trip to the last hop that answered.
pub(super) fn changes(run: &ProbedRun<'_>) -> Vec<DelayChange> {
    let hops = &run.way.hops;
    let Some(last) = hops.iter().rev().find(|hop| !hop.samples.is_empty()) else { return Vec::new() };
    let series = answers(last);
    let groups: Vec<&[Answer]> = series.chunks(ANSWERS.max(series.len().div_ceil(MAX_VALUES))).collect();
    let levels: Vec<f64> = groups.iter().filter_map(|group| level(group.iter())).collect();
    let starts: Vec<u64> =
        change_points(&levels).iter().filter_map(|change| groups[change.at].first()).map(|(at, _)| *at).collect();
    let mut changes = Vec::new();
    for (index, at) in starts.iter().enumerate() {
        let from = if index == 0 { 0 } else { starts[index - 1] };
        let until = starts.get(index + 1).copied().unwrap_or(u64::MAX);
        let step = |answers: &[Answer]| step(answers, [from, *at, until]);
        let Some([before, after]) = step(&series) else { continue };
        let change = after - before;
        if change.abs() < MIN_CHANGE.max(MIN_SHARE * before) {
            continue;
        }
        let has_it = |hop: &Hop| step(&answers(hop)).map(|[before, after]| (after - before) / change >= OF_HOP);
        changes.push(DelayChange {
            at: nanos(*at as f64),
            before: nanos(before),
            after: nanos(after),
            first_hop: first_with(hops, has_it),
        });
    }
    changes
}

/// Returns the first hop from which on all hops have it. `None` if it is not known whether the hop before has it.
fn first_with(hops: &[Hop], has_it: impl Fn(&Hop) -> Option<bool>) -> Option<HopRef> {
    let changed: Vec<Option<bool>> = hops.iter().map(has_it).collect();
    let first = changed.iter().rposition(|has_it| *has_it != Some(true)).map_or(0, |last| last + 1);
    let is_known = first == 0 || changed[first - 1] == Some(false);
    let hop = hops.get(first).filter(|_| is_known)?;
    Some(HopRef { ttl: hop.ttl, address: hop.addresses.first().map(|known| known.address) })
}

fn answers(hop: &Hop) -> Vec<Answer> {
    hop.samples.iter().filter_map(|sample| Some((sample.at.get(), sample.delay?.get() as f64))).collect()
}

/// Returns the levels between the first two times and between the last two. `None` if one of them has too few answers.
fn step(answers: &[Answer], [from, at, until]: [u64; 3]) -> Option<[f64; 2]> {
    let within = |from: u64, until: u64| {
        let there = || answers.iter().filter(move |(sent, _)| (from..until).contains(sent));
        if there().count() < ANSWERS { None } else { level(there()) }
    };
    Some([within(from, at)?, within(at, until)?])
}

fn level<'a>(answers: impl Iterator<Item = &'a Answer>) -> Option<f64> {
    median(answers.map(|(_, delay)| *delay).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{HopAddress, HopSample, ProbePacket, ProbedWay};
    use linerate_units::Nanos;
    use rand::rngs::SmallRng;
    use rand::{RngExt as _, SeedableRng as _};
    use std::net::{IpAddr, Ipv4Addr};

    const MS: f64 = 1e6;

    fn address(ttl: u8) -> IpAddr {
        Ipv4Addr::new(198, 18, ttl, 2).into()
    }

    /// A way of 4 hops with a probe of each every 100 ms, for a minute. `delay` returns the round trip of a hop at a time in seconds.
    fn changes_of(delay: impl Fn(u8, f64) -> f64) -> Vec<DelayChange> {
        let mut random = SmallRng::seed_from_u64(7);
        let mut hops = Vec::new();
        for ttl in 1..=4 {
            let samples = (0..600).map(|number: u32| {
                let noise = random.random_range(0.0..0.3) * MS;
                let delay = Some(Nanos::new((delay(ttl, f64::from(number) / 10.0) + noise) as u64));
                HopSample { at: Nanos::from_millis(u64::from(number) * 100), delay, one_way: None }
            });
            let (first, last) = (Nanos::default(), Nanos::from_secs(60));
            let addresses = vec![HopAddress { address: address(ttl), answers: 600, first, last, labels: Vec::new() }];
            hops.push(Hop { ttl, addresses, samples: samples.collect(), ..Hop::default() });
        }
        let way = ProbedWay {
            packet: ProbePacket::Udp,
            given_up: Vec::new(),
            source: address(0),
            destination: address(4),
            hops,
            path_mtu: None,
            sent: 2_400,
            sent_bytes: 2_400 * 140,
            rejected: 0,
        };
        changes(&ProbedRun { way: &way, clock: None })
    }

    #[test]
    fn a_change_has_its_time_its_size_and_its_hop() {
        let found = changes_of(|ttl, at| f64::from(ttl) * MS + if ttl >= 3 && at >= 40.0 { 5.0 * MS } else { 0.0 });
        let [change] = &found[..] else { panic!("{found:?}") };
        assert!((39..=41).contains(&(change.at.get() / 1_000_000_000)), "{change:?}");
        let change_ms = (change.after.get() as f64 - change.before.get() as f64) / MS;
        assert!((change_ms - 5.0).abs() < 0.2, "{change:?}");
        assert_eq!(change.first_hop, Some(HopRef { ttl: 3, address: Some(address(3)) }));
    }

    #[test]
    fn a_change_and_its_end_are_two() {
        let found = changes_of(|_, at| if (20.0..40.0).contains(&at) { 9.0 * MS } else { 2.0 * MS });
        let [rise, fall] = &found[..] else { panic!("{found:?}") };
        assert!(rise.after > rise.before && fall.after < fall.before);
        assert_eq!(rise.first_hop.as_ref().map(|hop| hop.ttl), Some(1));
    }

    #[test]
    fn what_one_router_shows_is_no_change_of_the_path() {
        assert_eq!(changes_of(|ttl, at| if ttl == 2 && at > 30.0 { 20.0 * MS } else { 2.0 * MS }), []);
        assert_eq!(changes_of(|_, at| 2.0 * MS + at * 500.0), [], "30 us are too little");
    }
}
