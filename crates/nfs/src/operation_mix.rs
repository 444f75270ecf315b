//! Which operation comes next: the mix's shares exactly, in an order left to chance.

use linerate_model::{NfsMix, NfsOperation};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Operations dealt at a time. Shares hold over each deck, so that a part of one, at the window's edges, shifts them little.
const CARDS: usize = 100;

/// Deals operations like cards: each deck holds every operation as often as its share says, shuffled.
///
/// Operations drawn each on its own would miss their shares by chance: one of 1 % by 4 % of itself in 50,000.
#[derive(Debug)]
pub(crate) struct Deck {
    shares: Vec<Share>,
    cards: Vec<NfsOperation>,
    random: SmallRng,
}

#[derive(Debug)]
struct Share {
    operation: NfsOperation,
    /// Cards of each deck, not a whole number.
    cards: f64,
    /// Cards that it should have had so far and has not; below zero if it had more.
    owed: f64,
}

impl Deck {
    /// A deck of a mix that was checked.
    pub(crate) fn new(mix: &NfsMix, seed: u64) -> Self {
        let sum: f64 = mix.percent.values().sum();
        let share = |(operation, percent): (&NfsOperation, &f64)| Share {
            operation: *operation,
            cards: percent / sum * CARDS as f64,
            owed: 0.0,
        };
        let shares = mix.percent.iter().filter(|(_, percent)| **percent > 0.0).map(share).collect();
        Self { shares, cards: Vec::new(), random: SmallRng::seed_from_u64(seed) }
    }

    /// The next operation.
    pub(crate) fn draw(&mut self) -> NfsOperation {
        if self.cards.is_empty() {
            self.deal();
        }
        self.cards.pop().expect("a deck has cards")
    }

    /// The most cards of `operation` that a deck holds.
    pub(crate) fn most(&self, operation: NfsOperation) -> usize {
        self.shares.iter().find(|share| share.operation == operation).map_or(0, |share| share.cards.ceil() as usize + 1)
    }

    fn deal(&mut self) {
        self.shares.iter_mut().for_each(|share| share.owed += share.cards);
        for _ in 0..CARDS {
            // The one that is owed most; fractions are thus made good by later decks.
            let share = self.shares.iter_mut().max_by(|a, b| a.owed.total_cmp(&b.owed)).expect("a mix is not empty");
            share.owed -= 1.0;
            self.cards.push(share.operation);
        }
        for last in (1..self.cards.len()).rev() {
            self.cards.swap(last, self.random.random_range(0..=last));
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
            let mut deck = Deck::new(mix, 7 + flow);
            (0..operations / flows).for_each(|_| *counts.entry(deck.draw()).or_default() += 1);
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
    fn the_order_is_left_to_chance() {
        let mix = NfsMix::named("sfs97-like").expect("built in");
        let drawn = |seed| {
            let mut deck = Deck::new(&mix, seed);
            (0..1_000).map(|_| deck.draw()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1), "the same by the same seed");
        assert_ne!(drawn(1), drawn(2));
        assert_ne!(drawn(1)[..100], drawn(1)[100..200], "each deck is shuffled anew");
        // 18 % of reads: independent draws would follow one another in 3.2 % of all pairs.
        let pairs = drawn(1).windows(2).filter(|pair| *pair == [NfsOperation::Read; 2]).count();
        assert!((15..=50).contains(&pairs), "{pairs} pairs of reads in 1,000");
    }
}
