//! Search for the section of a path where delay or loss begins.
//!
//! A queue that stands before hop q adds its delay to the answers of hop q and of every hop after it, and to those of no hop before
//! it. Loss works alike. What a single router adds, and those after it do not, is its own: routers answer on their CPU, and limit
//! the rate of their answers.

use super::way::{ProbedHop, Probes};
use crate::statistics::{ln_choose, median, rank_sum_test};
use linerate_model::{BlackHole, Confidence, HopRef, PathEffect, PathMtu, PathSection};
use std::ops::Add;

/// Level of the test of one hop's delays.
const LEVEL: f64 = 0.01;
/// Level of the test that there is a queue at all, at the last hop.
const QUEUE_LEVEL: f64 = 0.001;
/// Smallest delay that is taken for a queue, nanoseconds: below it, the time to wake a sleeping core looks alike.
const LEAST_QUEUE: f64 = 1e6;
/// Delay from which on a queue stands out from everything a busy host does, nanoseconds.
const CLEAR_QUEUE: f64 = 5e6;
/// Share of the last hop's added delay that separates hops after the queue from hops before it. A queue fills and empties, so that
/// hops after it do not see all of it.
const BOUNDARY: f64 = 1.0 / 3.0;
/// Smallest number of lost packets, and share of them, that is taken for loss of the path.
const LEAST_LOST: u64 = 3;
const LEAST_LOSS: f64 = 0.002;
/// Loss that is expected of a path without a fault.
const USUAL_LOSS: f64 = 0.001;
/// Probability that a router leaves probes unanswered by itself.
const OWN_LOSS: f64 = 0.02;
/// Difference of log-likelihoods at which a link is excluded: a likelihood ratio of 100.
const EXCLUDED: f64 = 4.6;
/// The same for high confidence: a likelihood ratio of 1,000.
const CLEARLY_EXCLUDED: f64 = 6.9;

/// Returns the sections of a way where delay or loss begins, the most likely cause of a limit first.
pub(super) fn sections(hops: &[ProbedHop], path_mtu: Option<&PathMtu>, under_load: bool) -> Vec<PathSection> {
    let black_hole = path_mtu.and_then(|mtu| Some(lost_large(hops, mtu.black_hole.as_ref()?)));
    let queue = if under_load { queue(hops) } else { None };
    queue.into_iter().chain(loss(hops)).chain(black_hole).collect()
}

/// What the delays of a hop show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// The queue's delay is in them.
    Grown,
    /// It is not.
    Same,
    /// Too few answers, or too much variation.
    Unknown,
}

/// Returns the section where a queue stands under load. `None` if there is none, or the probes do not show it.
fn queue(hops: &[ProbedHop]) -> Option<PathSection> {
    let reference = hops.iter().rev().find(|hop| !hop.idle.delays.is_empty() && !hop.loaded.delays.is_empty())?;
    let added = added(&reference.idle, &reference.loaded)?;
    let is_queue =
        added >= LEAST_QUEUE && rank_sum_test(&reference.idle.delays, &reference.loaded.delays) < QUEUE_LEVEL;
    if !is_queue || !is_on_this_way(reference, added) {
        return None;
    }
    let growths: Vec<Growth> = hops.iter().map(|hop| growth(hop, added * BOUNDARY)).collect();
    // The last hop without the delay: what grew before it was a router's own time.
    let same = growths.iter().rposition(|growth| *growth == Growth::Same);
    let first = same.map_or(0, |index| index + 1);
    let grown = first + growths[first..].iter().position(|growth| *growth == Growth::Grown)?;
    let contradicted = growths[..first].contains(&Growth::Grown);
    // The delay of the first link may be the probing host's own.
    let is_clear = added >= CLEAR_QUEUE || (same.is_some() && added >= 2.0 * LEAST_QUEUE);
    let confidence = if is_clear && !contradicted { Confidence::High } else { Confidence::Medium };
    let after = same.map(|index| &hops[index]);
    Some(section(PathEffect::Queue, after, &hops[grown], confidence, added))
}

/// Returns the delay that the load adds to the median.
fn added(idle: &Probes, loaded: &Probes) -> Option<f64> {
    Some(median(loaded.delays.clone())? - median(idle.delays.clone())?)
}

/// Returns whether the added delay of the far end is one of this way and not of the way back. Without a reflector it is taken to be,
/// as the load goes this way.
fn is_on_this_way(far_end: &ProbedHop, added: f64) -> bool {
    match median_there(&far_end.idle).zip(median_there(&far_end.loaded)) {
        // The offset of the clocks is in both.
        Some((idle, loaded)) => loaded - idle >= added * BOUNDARY,
        None => true,
    }
}

/// Returns the median difference of the clocks at arrival and at sending.
fn median_there(probes: &Probes) -> Option<f64> {
    median(probes.one_way.iter().map(|[there, _]| *there).collect())
}

fn growth(hop: &ProbedHop, boundary: f64) -> Growth {
    let raised: Vec<f64> = hop.idle.delays.iter().map(|delay| delay + boundary).collect();
    if rank_sum_test(&raised, &hop.loaded.delays) < LEVEL {
        Growth::Grown
    } else if rank_sum_test(&hop.loaded.delays, &raised) < LEVEL {
        Growth::Same
    } else {
        Growth::Unknown
    }
}

/// Returns the section where loss begins. `None` if the path loses too little to show where.
fn loss(hops: &[ProbedHop]) -> Option<PathSection> {
    let far_end = hops.last().filter(|hop| hop.is_far_end)?;
    let uses_loaded = lost_there(&far_end.loaded).is_some();
    let lost = if uses_loaded { lost_there(&far_end.loaded) } else { lost_there(&far_end.idle) }?;
    // Loss that does not depend on the load is in both.
    let steady = lost_there(&far_end.idle).filter(|idle| uses_loaded && (1.0 / 3.0..3.0).contains(&(idle / lost)));
    let counts: Vec<Counts> = hops
        .iter()
        .map(|hop| match (uses_loaded, steady) {
            (true, None) => Counts::of(&hop.loaded, hop.rate_limited),
            (true, Some(_)) => Counts::of(&hop.idle, hop.rate_limited) + Counts::of(&hop.loaded, hop.rate_limited),
            (false, _) => Counts::of(&hop.idle, hop.rate_limited),
        })
        .collect();
    let likelihoods: Vec<f64> = (0..hops.len()).map(|first| likelihood(&counts, first, lost)).collect();
    let best = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_left = |excluded: f64| move |likelihood: &f64| best - likelihood < excluded;
    let first = likelihoods.iter().position(is_left(EXCLUDED))?;
    let last = likelihoods.iter().rposition(is_left(EXCLUDED))?;
    if last - first + 1 == hops.len() && hops.len() > 1 {
        return None;
    }
    let sure = (
        likelihoods.iter().position(is_left(CLEARLY_EXCLUDED)),
        likelihoods.iter().rposition(is_left(CLEARLY_EXCLUDED)),
    );
    let confidence = if sure == (Some(first), Some(last)) { Confidence::High } else { Confidence::Medium };
    let after = first.checked_sub(1).map(|index| &hops[index]);
    Some(section(PathEffect::Loss, after, &hops[last], confidence, lost))
}

/// Returns the share of probes that were lost on the way to the far end. `None` if hardly any were, or more on the way back.
fn lost_there(probes: &Probes) -> Option<f64> {
    let arrived = probes.reflected.unwrap_or(probes.answered).min(probes.sent);
    let lost = probes.sent - arrived;
    let lost_back = arrived.saturating_sub(probes.answered);
    let share = lost as f64 / probes.sent.max(1) as f64;
    (lost >= LEAST_LOST && share >= LEAST_LOSS && lost >= 2 * lost_back).then_some(share)
}

/// Probes of one hop.
#[derive(Debug, Clone, Copy)]
struct Counts {
    sent: usize,
    unanswered: usize,
    /// The router limits the rate of its answers.
    is_limited: bool,
}

impl Counts {
    fn of(probes: &Probes, is_limited: bool) -> Self {
        let unanswered = probes.sent.saturating_sub(probes.answered) as usize;
        Self { sent: probes.sent as usize, unanswered, is_limited }
    }

    /// Returns the logarithm of the likelihood of these counts at this loss, without the constant term.
    fn at_loss(self, loss: f64) -> f64 {
        let term = |count: usize, probability: f64| if count > 0 { count as f64 * probability.ln() } else { 0.0 };
        term(self.unanswered, loss) + term(self.sent - self.unanswered, 1.0 - loss)
    }

    /// Returns the same at a loss that is not known, and equally likely to be any: the beta function of both numbers.
    fn at_any_loss(self) -> f64 {
        -((self.sent + 1) as f64).ln() - ln_choose(self.sent, self.unanswered)
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            unanswered: self.unanswered + other.unanswered,
            is_limited: self.is_limited || other.is_limited,
        }
    }
}

/// Returns the logarithm of the likelihood that loss of share `lost` begins before hop `first`, counted from 0.
fn likelihood(hops: &[Counts], first: usize, lost: f64) -> f64 {
    let mut sum = 0.0;
    for (index, counts) in hops.iter().enumerate() {
        let expected = if index < first { USUAL_LOSS } else { lost };
        let of_path = counts.at_loss(expected);
        // A router may lose more by itself, never less.
        let exceeds = counts.unanswered as f64 > expected * counts.sent as f64;
        let own_loss = if counts.is_limited { 1.0 } else { OWN_LOSS };
        sum += if exceeds { of_path.max(own_loss.ln() + counts.at_any_loss()) } else { of_path };
    }
    sum
}

/// Returns the section where large packets vanish.
fn lost_large(hops: &[ProbedHop], hole: &BlackHole) -> PathSection {
    let last = hops.last().map_or(hole.last_answered.saturating_add(1), |hop| hop.ttl);
    let first_lost = hole.first_lost.unwrap_or(last).max(hole.last_answered.saturating_add(1));
    PathSection {
        effect: PathEffect::BlackHole,
        after: reference_to(hops, hole.last_answered),
        before: reference_to(hops, first_lost),
        confidence: if hole.first_lost.is_some() { Confidence::High } else { Confidence::Medium },
        amount: f64::from(hole.lost_bytes),
    }
}

fn section(
    effect: PathEffect,
    after: Option<&ProbedHop>,
    before: &ProbedHop,
    confidence: Confidence,
    amount: f64,
) -> PathSection {
    PathSection {
        effect,
        after: after.map_or(HopRef { ttl: 0, address: None }, reference),
        before: reference(before),
        confidence,
        amount,
    }
}

/// Returns a reference to the hop of this TTL, which may not have answered.
fn reference_to(hops: &[ProbedHop], ttl: u8) -> HopRef {
    let hop = hops.iter().find(|hop| hop.ttl == ttl);
    hop.map_or(HopRef { ttl, address: None }, reference)
}

fn reference(hop: &ProbedHop) -> HopRef {
    HopRef { ttl: hop.ttl, address: hop.addresses.first().copied() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    const MS: f64 = 1e6;

    /// Returns probes with these delays in milliseconds, and one that was lost for each of `lost`.
    fn probes(delays: &[f64], lost: u64) -> Probes {
        let answered = delays.len() as u64;
        let delays = delays.iter().map(|delay| delay * MS).collect();
        Probes { sent: answered + lost, answered, delays, ..Probes::default() }
    }

    fn hop(ttl: u8, idle: Probes, loaded: Probes) -> ProbedHop {
        let addresses = vec![IpAddr::V4(Ipv4Addr::new(198, 18, ttl, 1))];
        ProbedHop { ttl, addresses, idle, loaded, ..ProbedHop::default() }
    }

    /// Returns a path of these loaded delays by hop, whose idle delays are 1 ms. An empty list is a silent router.
    fn path(loaded: &[&[f64]]) -> Vec<ProbedHop> {
        let mut hops: Vec<ProbedHop> = (1..)
            .zip(loaded)
            .map(|(ttl, delays)| {
                let idle = if delays.is_empty() { probes(&[], 5) } else { probes(&[1.0, 1.1, 0.9, 1.05, 0.95], 0) };
                let mut hop = hop(ttl, idle, probes(delays, 0));
                if delays.is_empty() {
                    hop.addresses.clear();
                }
                hop
            })
            .collect();
        let last = hops.last_mut().expect("a path has hops");
        last.is_far_end = true;
        // The far end answers often.
        last.idle.delays = (0..40).map(|step| MS * (1.0 + f64::from(step) / 400.0)).collect();
        last.loaded.delays = last.loaded.delays.iter().flat_map(|delay| [*delay, delay * 1.01, delay * 0.99]).collect();
        hops
    }

    const LOW: &[f64] = &[1.0, 1.1, 0.95, 1.02, 0.98];
    const HIGH: &[f64] = &[40.0, 52.0, 35.0, 48.0, 50.0];

    fn place(hops: &[ProbedHop]) -> Option<(u8, u8)> {
        queue(hops).map(|section| (section.after.ttl, section.before.ttl))
    }

    #[test]
    fn queue_stands_before_the_first_hop_that_all_later_ones_follow() {
        assert_eq!(place(&path(&[LOW, LOW, HIGH, HIGH])), Some((2, 3)));
        assert_eq!(place(&path(&[HIGH, HIGH, HIGH])), Some((0, 1)));
        assert_eq!(place(&path(&[LOW, LOW, HIGH])), Some((2, 3)));
        assert_eq!(place(&path(&[LOW, LOW, LOW])), None);
    }

    #[test]
    fn slow_router_is_no_queue_of_the_path() {
        let section = queue(&path(&[LOW, HIGH, LOW, HIGH])).expect("a queue before the far end");
        assert_eq!((section.after.ttl, section.before.ttl), (3, 4));
        assert_eq!(section.confidence, Confidence::Medium, "something contradicts it");
    }

    #[test]
    fn silent_routers_widen_the_section() {
        assert_eq!(place(&path(&[LOW, &[], HIGH])), Some((1, 3)));
        assert_eq!(place(&path(&[&[], &[], HIGH])), Some((0, 3)));
        let section = queue(&path(&[LOW, &[], &[], HIGH])).expect("a queue");
        assert_eq!(section.confidence, Confidence::High);
        assert!(!section.is_one_link());
    }

    #[test]
    fn few_answers_are_no_evidence() {
        // Two answers cannot be told from chance.
        assert_eq!(place(&path(&[LOW, &[40.0, 50.0], HIGH])), Some((1, 3)));
    }

    #[test]
    fn queue_of_the_way_back_is_not_named() {
        let mut hops = path(&[LOW, HIGH, HIGH]);
        let far_end = hops.last_mut().expect("hops");
        far_end.idle.one_way = vec![[3.0 * MS, 0.5 * MS]; 40];
        far_end.loaded.one_way = vec![[3.1 * MS, 45.0 * MS]; 15];
        assert_eq!(place(&hops), None);
        hops.last_mut().expect("hops").loaded.one_way = vec![[48.0 * MS, 0.5 * MS]; 15];
        assert_eq!(place(&hops), Some((1, 2)));
    }

    /// Returns a path with these probes by hop, sent and lost, the far end last.
    fn lossy(counts: &[(u64, u64)]) -> Vec<ProbedHop> {
        let mut hops: Vec<ProbedHop> = (1..)
            .zip(counts)
            .map(|(ttl, (sent, lost))| {
                hop(ttl, Probes::default(), Probes { sent: *sent, answered: sent - lost, ..Probes::default() })
            })
            .collect();
        hops.last_mut().expect("hops").is_far_end = true;
        hops
    }

    fn loss_place(counts: &[(u64, u64)]) -> Option<(u8, u8)> {
        loss(&lossy(counts)).map(|section| (section.after.ttl, section.before.ttl))
    }

    #[test]
    fn loss_begins_where_all_later_hops_lose() {
        assert_eq!(loss_place(&[(60, 0), (60, 0), (60, 12), (60, 11), (100, 20)]), Some((2, 3)));
        assert_eq!(loss_place(&[(60, 13), (60, 12), (60, 10), (100, 20)]), Some((0, 1)));
        // The far end alone.
        assert_eq!(loss_place(&[(60, 0), (60, 0), (60, 0), (100, 20)]), Some((3, 4)));
    }

    #[test]
    fn router_that_answers_rarely_is_not_where_loss_begins() {
        assert_eq!(loss_place(&[(60, 0), (60, 40), (60, 0), (60, 12), (100, 20)]), Some((3, 4)));
    }

    /// Of a router that limits its answers, a few without an answer say nothing.
    #[test]
    fn rate_limited_routers_count_less() {
        let mut hops = lossy(&[(29, 3), (27, 3), (31, 6), (161, 39)]);
        assert_eq!(loss(&hops).map(|section| section.after.ttl), Some(0));
        hops[0].rate_limited = true;
        hops[1].rate_limited = true;
        let section = loss(&hops).expect("some links are excluded");
        assert!(section.before.ttl >= 3, "{section:?}");
    }

    #[test]
    fn few_probes_leave_several_links() {
        let place = loss_place(&[(6, 0), (6, 0), (6, 1), (6, 2), (100, 20)]).expect("the first link is excluded");
        assert!(place.0 <= 2 && place.1 >= 3, "{place:?}");
        assert_eq!(loss_place(&[(4, 0), (4, 1), (100, 5)]), None, "nothing is excluded");
        assert_eq!(loss_place(&[(60, 0), (60, 0), (1_000, 2)]), None, "too few losses");
    }

    #[test]
    fn loss_of_the_way_back_is_not_named() {
        let mut hops = lossy(&[(60, 0), (60, 12), (100, 20)]);
        hops[2].loaded.reflected = Some(100);
        assert_eq!(loss(&hops), None);
        hops[2].loaded.reflected = Some(80);
        assert!(loss(&hops).is_some());
    }

    #[test]
    fn black_hole_has_a_place() {
        let hops = path(&[LOW, LOW, LOW]);
        let hole = BlackHole { lost_bytes: 1_401, last_answered: 1, first_lost: Some(2) };
        let section = lost_large(&hops, &hole);
        assert_eq!((section.after.ttl, section.before.ttl, section.amount), (1, 2, 1_401.0));
        let unknown = lost_large(&hops, &BlackHole { first_lost: None, ..hole });
        assert_eq!((unknown.after.ttl, unknown.before.ttl, unknown.confidence), (1, 3, Confidence::Medium));
    }

    proptest! {
        /// Routers answer late by chance; a queue of 20 to 60 ms stands before one of them.
        #[test]
        fn truth_lies_within_the_section(
            routers in 2usize..7,
            at in 0usize..7,
            jitter in prop::collection::vec(prop::collection::vec((0.0f64..3.0, 20.0f64..60.0), 12), 7),
        ) {
            let at = at % routers;
            let mut hops: Vec<ProbedHop> = (0..routers)
                .map(|index| {
                    let idle: Vec<f64> = jitter[index].iter().map(|(own, _)| 1.0 + own).collect();
                    let loaded: Vec<f64> = jitter[index].iter().rev()
                        .map(|(own, queue)| 1.0 + own + if index >= at { *queue } else { 0.0 }).collect();
                    hop(index as u8 + 1, probes(&idle, 0), probes(&loaded, 0))
                })
                .collect();
            hops.last_mut().expect("hops").is_far_end = true;
            let section = queue(&hops).expect("a queue");
            prop_assert!(usize::from(section.after.ttl) <= at && at < usize::from(section.before.ttl), "{section:?} at {at}");
        }
    }
}
