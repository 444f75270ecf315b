//! Time of a core.

use linerate_units::Nanos;

/// Times of one core since the system was started. A part that the system does not count apart is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// In programs.
    pub user: Nanos,
    /// In the kernel, on behalf of programs. On macOS interrupts are in it.
    pub kernel: Nanos,
    /// In deferred procedure calls of Windows: network receive and transmit work.
    pub deferred: Nanos,
    /// In interrupts. On FreeBSD network receive work is in it.
    pub interrupt: Nanos,
    /// Idle.
    pub idle: Nanos,
}
