//! Rounds of disjoint pairs.

use std::collections::BTreeSet;

/// All pairs of a mesh as rounds, in none of which a host occurs twice. Hosts are numbers.
///
/// A round is computed when it is due: the pairs of a large mesh are never all in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rounds {
    /// All pairs of a list, by the circle method: one host stays in its place, the others rotate.
    Circle(Vec<u32>),
    /// Each host of the first list with each of the second.
    Bipartite {
        /// First hosts.
        from: Vec<u32>,
        /// Second hosts.
        to: Vec<u32>,
        /// Hosts in both lists.
        shared: BTreeSet<u32>,
    },
    /// Listed rounds.
    Listed(Vec<Vec<(u32, u32)>>),
}

impl Rounds {
    pub(super) fn bipartite(from: Vec<u32>, to: Vec<u32>) -> Self {
        let first: BTreeSet<u32> = from.iter().copied().collect();
        let shared = to.iter().copied().filter(|host| first.contains(host)).collect();
        Self::Bipartite { from, to, shared }
    }

    /// Puts each pair into the first round in which both of its hosts are free.
    pub(super) fn listed(pairs: &[(u32, u32)]) -> Self {
        let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut hosts: Vec<BTreeSet<u32>> = Vec::new();
        for (from, to) in pairs {
            let free = hosts.iter().position(|hosts| !hosts.contains(from) && !hosts.contains(to));
            let index = free.unwrap_or(rounds.len());
            if index == rounds.len() {
                rounds.push(Vec::new());
                hosts.push(BTreeSet::new());
            }
            rounds[index].push((*from, *to));
            hosts[index].extend([*from, *to]);
        }
        Self::Listed(rounds)
    }

    /// Returns the number of rounds that have all pairs.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Circle(hosts) if hosts.len() < 2 => 0,
            Self::Circle(hosts) => (hosts.len() + hosts.len() % 2 - 1) as u64,
            Self::Bipartite { from, to, .. } if from.is_empty() || to.is_empty() => 0,
            Self::Bipartite { from, to, .. } => from.len().max(to.len()) as u64,
            Self::Listed(rounds) => rounds.len() as u64,
        }
    }

    /// Returns the number of pairs in all rounds.
    pub(super) fn pairs_in_all(&self) -> u64 {
        match self {
            Self::Circle(hosts) => hosts.len() as u64 * (hosts.len() as u64).saturating_sub(1) / 2,
            Self::Bipartite { from, to, shared } => {
                let both = shared.len() as u64;
                from.len() as u64 * to.len() as u64 - both - both * both.saturating_sub(1) / 2
            }
            Self::Listed(rounds) => rounds.iter().map(|round| round.len() as u64).sum(),
        }
    }

    /// Returns the pairs of a round below [`Rounds::count`].
    pub(super) fn pairs(&self, round: u64) -> Vec<(u32, u32)> {
        let round = round as usize;
        match self {
            Self::Circle(hosts) => circle(hosts, round),
            Self::Bipartite { from, to, shared } => {
                let fewer = from.len().min(to.len());
                let more = from.len().max(to.len());
                let mut pairs = Vec::with_capacity(fewer);
                for index in 0..fewer {
                    // Even distances, so that a few rounds reach all hosts of the longer list.
                    let place = (index * more / fewer + round) % more;
                    let (one, other) =
                        if from.len() <= to.len() { (from[index], to[place]) } else { (from[place], to[index]) };
                    // Of two hosts in both lists, only one order is a pair.
                    let is_twice = one > other && shared.contains(&one) && shared.contains(&other);
                    if one != other && !is_twice {
                        pairs.push((one, other));
                    }
                }
                pairs
            }
            Self::Listed(rounds) => rounds[round].clone(),
        }
    }
}

fn circle(hosts: &[u32], round: usize) -> Vec<(u32, u32)> {
    // An odd number of hosts gets a place that is empty: its peer rests.
    let places = hosts.len() + hosts.len() % 2;
    let turning = places - 1;
    let mut pairs = Vec::with_capacity(places / 2);
    if let Some(fixed) = hosts.get(turning) {
        pairs.push((hosts[round % turning], *fixed));
    }
    for step in 1..places / 2 {
        pairs.push((hosts[(round + step) % turning], hosts[(round + turning - step) % turning]));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(rounds: &Rounds) -> Result<BTreeSet<(u32, u32)>, TestCaseError> {
        let mut all = BTreeSet::new();
        for round in 0..rounds.count() {
            let mut hosts = BTreeSet::new();
            for (from, to) in rounds.pairs(round) {
                let fresh = all.insert((from.min(to), from.max(to)));
                prop_assert!(fresh, "{from} {to} twice");
                let disjoint = hosts.insert(from) | matches!(rounds, Rounds::Bipartite { .. });
                prop_assert!(disjoint, "{from} twice in round {round}");
                prop_assert!(from != to);
            }
        }
        prop_assert_eq!(all.len() as u64, rounds.pairs_in_all());
        Ok(all)
    }

    proptest! {
        #[test]
        fn circles_have_each_pair_once(count in 0u32..40) {
            let rounds = Rounds::Circle((0..count).collect());
            check(&rounds)?;
            for round in 0..rounds.count() {
                let pairs = rounds.pairs(round);
                let hosts: BTreeSet<u32> = pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
                prop_assert_eq!(hosts.len(), 2 * pairs.len());
                prop_assert_eq!(pairs.len(), count as usize / 2);
            }
        }

        #[test]
        fn two_groups_have_each_pair_once(from in 0u32..15, to in 0u32..15, shared in 0u32..5) {
            let first: Vec<u32> = (0..from).collect();
            let begin = from.saturating_sub(shared);
            let rounds = Rounds::bipartite(first, (begin..begin + to).collect());
            check(&rounds)?;
        }

        #[test]
        fn listed_pairs_are_in_disjoint_rounds(pairs in proptest::collection::btree_set((0u32..12, 12u32..24), 0..40)) {
            let pairs: Vec<(u32, u32)> = pairs.into_iter().collect();
            let all = check(&Rounds::listed(&pairs))?;
            prop_assert_eq!(all.len(), pairs.len());
        }
    }
}
