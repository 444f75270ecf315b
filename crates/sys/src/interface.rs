//! What an interface is and what it has counted.

use std::net::IpAddr;

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// The kernel's number for it.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What made it, as in `veth` or `vlan`; empty for a NIC.
    pub kind: String,
    /// The interface it stands on (of a VLAN: the NIC), if that is in the same namespace.
    pub lower: Option<u32>,
    /// The bridge or bond it is a port of.
    pub master: Option<u32>,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// It is up and has a carrier.
    pub up: bool,
    /// The kernel has seen its carrier: before that it drops what is sent (`IFF_RUNNING`, RFC 2863 section 3.1.14). A veth whose operational
    /// state is unknown does not run.
    pub running: bool,
    /// Number of times that its carrier came or went since it was made.
    pub carrier_changes: u32,
    /// It is the loopback interface.
    pub loopback: bool,
    /// Hardware address.
    pub mac: Vec<u8>,
    /// Root queueing discipline.
    pub qdisc: String,
    /// Its counters.
    pub counters: LinkCounters,
}

/// Counters of an interface, by the kernel's names (struct rtnl_link_stats64).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_length_errors: u64,
    pub rx_over_errors: u64,
    pub rx_crc_errors: u64,
    pub rx_frame_errors: u64,
    pub rx_fifo_errors: u64,
    pub rx_missed_errors: u64,
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The interface's number.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Bits of the address that name its network.
    pub prefix: u8,
    /// It is valid on its link only, or on this host only.
    pub local_scope: bool,
}

/// A queueing discipline and its counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// The interface's number.
    pub link: u32,
    /// Its own number.
    pub handle: u32,
    /// The number of the class it hangs on.
    pub parent: u32,
    /// Its kind, as in `tbf`.
    pub kind: String,
    /// Packets passed.
    pub packets: u64,
    /// Bytes passed.
    pub bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times the rate limit was met.
    pub overlimits: u64,
    /// Packets queued now.
    pub backlog_packets: u64,
    /// Bytes queued now.
    pub backlog_bytes: u64,
}

impl Qdisc {
    /// It is the root of its interface (TC_H_ROOT).
    pub fn root(&self) -> bool {
        self.parent == u32::MAX
    }
}
