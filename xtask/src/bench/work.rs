//! The works on which linerate and its peers are compared, and the goals. The goals' source is the project's own
//! comparison of the field; docs/benchmarks.md explains each.

use super::figure::Unit;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Bulk TCP.
    Tcp { flows: u16, flags: Flags },
    /// UDP as fast as possible.
    Udp { size: u32, offload: bool },
    /// One byte there, one byte back.
    Transact { udp: bool, wait: Wait },
}

/// How a tool is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    /// As its users call it first.
    Plain,
    /// With the flags that make it fastest.
    Best,
}

/// How a transaction waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Blocked in the kernel.
    Blocking,
    /// linerate polls; the peers that count still block.
    BusyPoll,
}

/// One row group of the comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) load: Load,
    /// linerate's figure is to be at least so many times the best peer's.
    pub(super) goal: f64,
}

impl Work {
    pub(super) fn unit(&self) -> Unit {
        match self.load {
            Load::Tcp { .. } | Load::Udp { offload: true, .. } => Unit::Payload,
            Load::Udp { offload: false, .. } => Unit::Datagrams,
            Load::Transact { .. } => Unit::Transactions,
        }
    }
}

/// Every work, in the order they run and are printed.
pub(super) const WORKS: &[Work] = &[
    Work { name: "tcp-1-plain", load: Load::Tcp { flows: 1, flags: Flags::Plain }, goal: 1.8 },
    Work { name: "tcp-1-best", load: Load::Tcp { flows: 1, flags: Flags::Best }, goal: 1.05 },
    Work { name: "tcp-2-plain", load: Load::Tcp { flows: 2, flags: Flags::Plain }, goal: 1.8 },
    Work { name: "tcp-2-best", load: Load::Tcp { flows: 2, flags: Flags::Best }, goal: 1.05 },
    Work { name: "udp-1448-offload", load: Load::Udp { size: 1448, offload: true }, goal: 1.1 },
    Work { name: "udp-64", load: Load::Udp { size: 64, offload: false }, goal: 2.0 },
    Work { name: "tcp-rr", load: Load::Transact { udp: false, wait: Wait::Blocking }, goal: 1.0 },
    Work { name: "udp-rr", load: Load::Transact { udp: true, wait: Wait::Blocking }, goal: 1.0 },
    Work { name: "tcp-rr-busy-poll", load: Load::Transact { udp: false, wait: Wait::BusyPoll }, goal: 2.0 },
    Work { name: "udp-rr-busy-poll", load: Load::Transact { udp: true, wait: Wait::BusyPoll }, goal: 2.0 },
];
