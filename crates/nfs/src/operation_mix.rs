//! Random order of operations with the exact shares of a mix.

use linerate_model::{NfsMix, NfsOperation};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Operations shuffled at a time. Shares hold over each batch, so that a partial batch at the window's edges shifts
/// them little.
const BATCH: usize = 100;

/// Shuffled operations, in batches that contain each operation according to its share.
///
/// Independent draws would miss the shares by chance: a share of 1 % by 4 % of itself in 50,000 draws.
#[derive(Debug)]
pub(crate) struct OperationMix {
    shares: Vec<Share>,
    batch: Vec<NfsOperation>,
    random: SmallRng,
}

#[derive(Debug)]
struct Share {
    operation: NfsOperation,
    /// Average count in a batch, not a whole number.
    per_batch: f64,
    /// Count that it lacks so far; below zero if it had more.
    lacking: f64,
}

impl OperationMix {
    /// Makes batches of a mix that was checked.
    pub(crate) fn new(mix: &NfsMix, seed: u64) -> Self {
        let sum: f64 = mix.percent.values().sum();
        let mut shares = Vec::new();
        for (&operation, &percent) in &mix.percent {
            if percent > 0.0 {
                shares.push(Share { operation, per_batch: percent / sum * BATCH as f64, lacking: 0.0 });
            }
        }
        Self { shares, batch: Vec::new(), random: SmallRng::seed_from_u64(seed) }
    }

    /// Returns the next operation.
    pub(crate) fn next(&mut self) -> NfsOperation {
        if self.batch.is_empty() {
            self.shuffle_batch();
        }
        self.batch.pop().expect("a batch has operations")
    }

    /// Returns the largest count of `operation` in a batch.
    pub(crate) fn max_per_batch(&self, operation: NfsOperation) -> usize {
        self.shares
            .iter()
            .find(|share| share.operation == operation)
            .map_or(0, |share| share.per_batch.ceil() as usize + 1)
    }

    fn shuffle_batch(&mut self) {
        for share in &mut self.shares {
            share.lacking += share.per_batch;
        }
        for _ in 0..BATCH {
            // The operation that lacks most comes next, so that later batches make up for fractions.
            let share =
                self.shares.iter_mut().max_by(|a, b| a.lacking.total_cmp(&b.lacking)).expect("a mix is not empty");
            share.lacking -= 1.0;
            self.batch.push(share.operation);
        }
        for last in (1..self.batch.len()).rev() {
            self.batch.swap(last, self.random.random_range(0..=last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn counts(mix: &NfsMix, flows: u64, operations: u64) -> BTreeMap<NfsOperation, u64> {
        let mut counts = BTreeMap::new();
        for flow in 0..flows {
            let mut operation_mix = OperationMix::new(mix, 7 + flow);
            for _ in 0..operations / flows {
                *counts.entry(operation_mix.next()).or_default() += 1;
            }
        }
        counts
    }

    #[test]
    fn shares_hold_within_one_percent_of_themselves() {
        let odd = BTreeMap::from([(NfsOperation::Read, 99.63), (NfsOperation::Write, 0.37)]);
        let odd = NfsMix::new("odd", odd, Default::default()).expect("valid");
        for mix in NfsMix::names().into_iter().map(|name| NfsMix::named(name).expect("built in")).chain([odd]) {
            for flows in [1, 8] {
                for (operation, count) in counts(&mix, flows, 50_000) {
                    let expected = mix.percent(operation) * 500.0;
                    let off = (count as f64 - expected).abs();
                    assert!(off <= (expected * 0.01).max(2.0), "{} {operation}: {count} of {expected}", mix.name);
                }
            }
        }
    }

    #[test]
    fn the_order_is_random() {
        let mix = NfsMix::named("sfs97-like").expect("built in");
        let drawn = |seed| {
            let mut operation_mix = OperationMix::new(&mix, seed);
            (0..1_000).map(|_| operation_mix.next()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1), "the same by the same seed");
        assert_ne!(drawn(1), drawn(2));
        assert_ne!(drawn(1)[..100], drawn(1)[100..200], "each batch is shuffled anew");
        // 18 % of reads: independent draws would follow one another in 3.2 % of all pairs.
        let pairs = drawn(1).windows(2).filter(|pair| *pair == [NfsOperation::Read; 2]).count();
        assert!((15..=50).contains(&pairs), "{pairs} pairs of reads in 1,000");
    }
}
