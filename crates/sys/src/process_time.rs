//! CPU time of a process.

use linerate_units::Nanos;

/// CPU time of this process so far, of all its threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessTime {
    /// Time in the program.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
}
