//! Works on which linerate and its peers are compared, with their goals. The goals come from the project's own
//! comparison of the tools; docs/benchmarks.md explains each.

use super::figure::Unit;

/// Bytes of a frame in addition to the payload of UDP over IPv4: Ethernet 14, IPv4 20, UDP 8, FCS 4.
const FRAME_HEADERS: u32 = 46;

/// Load of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Bulk TCP.
    Tcp { flows: u16, flags: Flags },
    /// UDP as fast as possible.
    Udp { size: u32, way: Way },
    /// Transactions of a one-byte request and a one-byte response.
    Transact { udp: bool, wait: Wait },
}

impl Load {
    /// Returns whether each peer runs with its fastest flags, which are found first.
    pub(super) fn is_tuned(self) -> bool {
        match self {
            Self::Tcp { flags, .. } => flags == Flags::Best,
            Self::Udp { .. } => true,
            Self::Transact { .. } => false,
        }
    }

    /// Returns linerate's command and options without hosts, or without ports for raw frames.
    pub(super) fn line(self) -> String {
        match self {
            Self::Tcp { flows, flags: Flags::Plain } => format!("stream --flows {flows} --congestion cubic"),
            Self::Tcp { flows, flags: Flags::Best } => format!("stream --flows {flows} --congestion cubic --tune"),
            Self::Udp { size, way: Way::Frames } => {
                format!("frames --rate max --size {} --receiver socket", size + FRAME_HEADERS)
            }
            Self::Udp { size, way: Way::Offload } => format!("stream --udp --size {size}"),
            Self::Udp { size, way: Way::Sockets } => format!("stream --udp --size {size} --no-offload"),
            Self::Transact { udp, wait } => {
                let transport = if udp { "--udp" } else { "--tcp" };
                let wait = if wait == Wait::BusyPoll { " --busy-poll" } else { "" };
                format!("transact {transport} --request 1 --response 1{wait}")
            }
        }
    }

    /// Returns whether linerate sends raw frames from port to port.
    pub(super) fn is_of_frames(self) -> bool {
        matches!(self, Self::Udp { way: Way::Frames, .. })
    }
}

/// Method by which linerate sends datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Sockets; the kernel or the device segments.
    Offload,
    /// Sockets, one datagram a packet.
    Sockets,
    /// Raw frames to a UDP socket.
    Frames,
}

/// Flags of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flags {
    /// Defaults.
    Plain,
    /// Flags that make it fastest.
    Best,
}

/// Waiting of a transaction for its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Blocks in the kernel.
    Blocking,
    /// linerate polls, while the peers that count block.
    BusyPoll,
}

/// One row group of the comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) load: Load,
    /// Minimum of linerate's figure, as a multiple of the best peer's.
    pub(super) goal: f64,
}

impl Work {
    pub(super) fn unit(&self) -> Unit {
        match self.load {
            Load::Tcp { .. } | Load::Udp { way: Way::Offload, .. } => Unit::Payload,
            Load::Udp { way: Way::Sockets | Way::Frames, .. } => Unit::Datagrams,
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
    Work { name: "udp-1448-offload", load: Load::Udp { size: 1448, way: Way::Offload }, goal: 1.1 },
    Work { name: "udp-64", load: Load::Udp { size: 64, way: Way::Sockets }, goal: 2.0 },
    Work { name: "udp-64-frames", load: Load::Udp { size: 64, way: Way::Frames }, goal: 5.0 },
    Work { name: "tcp-rr", load: Load::Transact { udp: false, wait: Wait::Blocking }, goal: 1.0 },
    Work { name: "udp-rr", load: Load::Transact { udp: true, wait: Wait::Blocking }, goal: 1.0 },
    Work { name: "tcp-rr-busy-poll", load: Load::Transact { udp: false, wait: Wait::BusyPoll }, goal: 2.0 },
    Work { name: "udp-rr-busy-poll", load: Load::Transact { udp: true, wait: Wait::BusyPoll }, goal: 2.0 },
];
