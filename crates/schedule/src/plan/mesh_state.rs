//! A mesh as its rounds become due.

use super::mesh_clock::MeshClock;
use super::rounds::Rounds;
use crate::file::{Estimate, Pattern};

/// State of a mesh.
#[derive(Debug)]
pub(super) struct MeshState {
    pub(super) clock: MeshClock,
    pub(super) rounds: Rounds,
    /// Rounds of a period.
    pub(super) rounds_a_period: u64,
    pub(super) estimate: Estimate,
    /// Hash of seed and name.
    pub(super) seed: u64,
    /// Time of the mesh up to which rounds were computed.
    pub(super) computed_ms: Option<u64>,
    /// Rounds by which the cycle is shifted.
    pub(super) shift: u64,
    /// Whether slots of this cycle were missed for the budget.
    pub(super) lacks_budget: bool,
    /// Unix time of the newest run before this planner.
    pub(super) newest_run: Option<u64>,
}

impl MeshState {
    /// Returns the first round that is due after a time of the mesh.
    pub(super) fn next_round(&self, mesh_ms: u64) -> u64 {
        let passed = u128::from(mesh_ms.saturating_sub(self.phase_ms())) * u128::from(self.rounds_a_period);
        let mut round = (passed / u128::from(self.clock.period_ms())) as u64;
        while self.due_ms(round) <= mesh_ms {
            round += 1;
        }
        round
    }

    /// Returns the time of the mesh at which a round is due.
    pub(super) fn due_ms(&self, round: u64) -> u64 {
        let passed = u128::from(round) * u128::from(self.clock.period_ms()) / u128::from(self.rounds_a_period);
        self.phase_ms() + passed as u64
    }

    /// Returns the time of the first round, by which meshes of equal periods differ.
    fn phase_ms(&self) -> u64 {
        self.seed % (self.clock.period_ms() / self.rounds_a_period).max(1)
    }
}

/// Returns the rounds of a period.
pub(super) fn rounds_a_period(rounds: &Rounds, pattern: &Pattern, sample: Option<u32>) -> u64 {
    let all = rounds.count();
    let Some(sample) = sample.map(u64::from) else { return all };
    match (pattern, rounds) {
        // The sample counts the hubs of a spoke. If spokes are more than hubs, each has a hub in a part of the rounds.
        (Pattern::Hub { .. }, Rounds::Bipartite { from, to, .. }) if to.len() > from.len() && !from.is_empty() => {
            (sample * to.len() as u64).div_ceil(from.len() as u64).min(all)
        }
        _ => sample.min(all),
    }
}
