//! Trials that have a time.

/// Rank of a waiting slot: missed before (0) or not (1), due time, sequence number. Lower ranks begin first.
pub(super) type Precedence = (u8, u64, u64);

/// A pair of hosts in a mesh, by index of the mesh and numbers of the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PairOfMesh {
    pub(super) mesh: u32,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// A trial of a pair, with the Unix times between which it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) pair: PairOfMesh,
    pub(super) due: u64,
    pub(super) not_after: u64,
    pub(super) suspicion: bool,
}

impl Slot {
    /// Returns the Unix time from which it reserves its resources: half of its slip has passed.
    pub(super) fn reserves_at(self) -> u64 {
        self.due + (self.not_after - self.due).div_ceil(2)
    }

    /// Returns the Unix times at which it changes without an event.
    pub(super) fn timers(self) -> [u64; 2] {
        [self.reserves_at(), self.not_after + 1]
    }
}
