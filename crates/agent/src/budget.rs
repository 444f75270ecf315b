//! What all sessions of an agent may take of its host together.

use linerate_engine::Needs;
use linerate_observe::{UsableMemory, usable_memory};
use linerate_sys::descriptors;
use linerate_units::ByteCount;

/// Memory, threads and descriptors of all sessions together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Memory of this process; the kernel's socket buffers are not counted.
    pub memory: ByteCount,
    /// Threads at a time.
    pub threads: u64,
    /// Open descriptors at a time.
    pub descriptors: u64,
}

impl Default for Budget {
    /// A quarter of the memory that this process may use, 8,192 threads, and seven eighths of the descriptors.
    fn default() -> Self {
        let memory = match usable_memory() {
            UsableMemory::Known(bytes) => ByteCount::new(bytes / 4),
            UsableMemory::Unknown => Self::MEMORY_OF_UNKNOWN,
        };
        Self { memory, threads: 8_192, descriptors: descriptors::most().unwrap_or(1_024) / 8 * 7 }
    }
}

impl Budget {
    /// Memory of all sessions together where the limit of this process is unknown: small containers have 512 MiB.
    pub const MEMORY_OF_UNKNOWN: ByteCount = ByteCount::new(128 << 20);

    /// Memory that the files of a trial's NFS servers may take where nothing is said: 1 GiB, or half of it all if that is less.
    pub fn nfs_memory(&self) -> ByteCount {
        ByteCount::new(1 << 30).min(ByteCount::new(self.memory.get() / 2))
    }

    /// Returns a part of the budget, as a fraction.
    pub(crate) fn part(&self, numerator: u64, denominator: u64) -> Self {
        let part = |all: u64| all / denominator * numerator;
        let memory = ByteCount::new(part(self.memory.get()));
        Self { memory, threads: part(self.threads), descriptors: part(self.descriptors) }
    }

    /// Checks that a session may have what it `needs` beside what `others` have.
    ///
    /// # Errors
    /// Something would be more than all may have; the text says what, and the remedy.
    pub(crate) fn check<'a>(
        &self,
        needs: &Needs,
        others: impl Iterator<Item = &'a Needs> + Clone,
    ) -> Result<(), String> {
        let with = |amount: fn(&Needs) -> u64| others.clone().map(amount).fold(amount(needs), u64::saturating_add);
        let fewer = "ask for smaller messages, fewer flows or fewer calls under way, or wait for other trials to end";
        let memory = with(|needs| needs.memory);
        if memory > self.memory.get() {
            return Err(format!(
                "with this trial the host is to take {} of memory, this agent allows {}; {fewer}, or start it with a higher \
                 `linerate serve --max-memory`",
                ByteCount::new(memory),
                self.memory
            ));
        }
        let threads = with(|needs| needs.threads);
        if threads > self.threads {
            return Err(format!(
                "with this trial the host is to have {threads} threads, this agent allows {}; {fewer}",
                self.threads
            ));
        }
        let descriptors = with(|needs| needs.descriptors);
        if descriptors > self.descriptors {
            return Err(format!(
                "with this trial the host is to have {descriptors} files and sockets open, this agent allows {}; {fewer}, or \
                 start it with a higher `ulimit -n`",
                self.descriptors
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_had_beyond_the_budget_of_all_sessions() {
        let budget = Budget { memory: ByteCount::new(1_000), threads: 10, descriptors: 100 };
        let needs = |memory, threads, descriptors| Needs { memory, threads, descriptors, ..Needs::default() };
        let other = needs(400, 6, 60);
        let check = |needs: &Needs, others: &[Needs]| budget.check(needs, others.iter());
        assert_eq!(check(&needs(600, 4, 40), std::slice::from_ref(&other)), Ok(()));
        for (beyond, part) in [
            (needs(601, 0, 0), "--max-memory"),
            (needs(0, 5, 0), "11 threads"),
            (needs(0, 0, 41), "101 files and sockets"),
            (needs(u64::MAX, 0, 0), "--max-memory"),
        ] {
            let error = check(&beyond, std::slice::from_ref(&other)).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(check(&needs(1_000, 10, 100), &[]), Ok(()), "what ended has given its part back");
    }

    #[test]
    fn the_default_is_a_part_of_what_the_host_has() {
        let budget = Budget::default();
        match usable_memory() {
            UsableMemory::Known(bytes) => assert_eq!(budget.memory.get(), bytes / 4),
            UsableMemory::Unknown => assert_eq!(budget.memory, Budget::MEMORY_OF_UNKNOWN),
        }
        assert!(budget.memory.get() > 0);
        assert!(budget.descriptors > 0 && budget.nfs_memory() <= ByteCount::new(budget.memory.get() / 2));
    }
}
