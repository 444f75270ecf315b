//! The link or host that affected pairs have in common.

use std::collections::BTreeMap;

/// Fewest affected pairs of a common cause.
const FEWEST: usize = 3;
/// Share of its pairs that a cause affects, at least.
const MAJORITY: f64 = 0.5;
/// Share of its pairs that keeps a cause that was found before.
const KEPT: f64 = 0.25;
/// Share of a mesh's pairs that makes the mesh the cause.
const WHOLE_MESH: f64 = 0.8;

/// Something that pairs have in common, from the most to the least specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// A direction of a declared link, by index.
    Link(usize, Direction),
    /// A host as sender or as receiver, by number.
    Host(u32, Direction),
    /// The mesh.
    Mesh,
}

/// Direction of the data, seen from a link's site or a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Out,
    In,
}

/// A measured pair: what it has in common with others, and whether it is affected.
#[derive(Debug, Clone)]
pub(super) struct Candidate<P> {
    pub(super) pair: P,
    pub(super) causes: Vec<Cause>,
    pub(super) affected: bool,
}

/// Assigns affected pairs to causes. Pairs without a common cause are returned apart.
///
/// The cause that explains most is taken first, and its pairs are left out of the search for the next one. `known` causes of an
/// earlier call come before others, and need fewer affected pairs.
pub(super) fn common_causes<P: Copy>(
    mut pairs: Vec<Candidate<P>>,
    known: &[Cause],
) -> (BTreeMap<Cause, Vec<P>>, Vec<P>) {
    let mut causes = BTreeMap::new();
    loop {
        let mut counts: BTreeMap<Cause, (usize, usize)> = BTreeMap::new();
        for pair in &pairs {
            for cause in &pair.causes {
                let (all, affected) = counts.entry(*cause).or_default();
                *all += 1;
                *affected += usize::from(pair.affected);
            }
        }
        let affected = pairs.iter().filter(|pair| pair.affected).count();
        let mut best: Option<(f64, Cause)> = None;
        for (cause, (all, through)) in counts {
            let Some(score) = score(cause, all, through, pairs.len(), affected, known.contains(&cause)) else {
                continue;
            };
            if best.is_none_or(|(other, _)| score > other) {
                best = Some((score, cause));
            }
        }
        let Some((_, cause)) = best else { break };
        let (explained, rest): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|pair| pair.causes.contains(&cause));
        pairs = rest;
        causes.insert(cause, explained.into_iter().filter(|pair| pair.affected).map(|pair| pair.pair).collect());
    }
    (causes, pairs.into_iter().filter(|pair| pair.affected).map(|pair| pair.pair).collect())
}

/// Returns how well a cause explains the affected pairs. `None` if it does not.
fn score(cause: Cause, all: usize, through: usize, pairs: usize, affected: usize, is_known: bool) -> Option<f64> {
    let share = through as f64 / all as f64;
    let others = pairs - all;
    let outside = if others == 0 { 0.0 } else { (affected - through) as f64 / others as f64 };
    let least = match cause {
        Cause::Mesh => WHOLE_MESH,
        Cause::Link(..) | Cause::Host(..) => MAJORITY,
    };
    let is_cause = through >= FEWEST && share >= least && share > outside;
    let is_kept = is_known && through > 0 && share >= KEPT;
    (is_cause || is_kept).then_some(through as f64 * (share - outside) + if is_kept { pairs as f64 } else { 0.0 })
}
