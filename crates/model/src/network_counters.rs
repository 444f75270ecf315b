//! What the protocols of a host's network namespace counted during the measured window of a trial.
//!
//! The names on the right of each source are the kernel's own (`/proc/net/snmp`, `snmp6`, `netstat`); what they count is said in
//! RFC 4293 (IP), RFC 4113 (UDP), RFC 4022 (TCP) and the kernel's Documentation/networking/snmp_counter.rst.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counters of IP, UDP, TCP and connection tracking, for all programs of the host's network namespace together. A counter that is
/// absent is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkCounters {
    /// IP.
    pub ip: IpCounters,
    /// UDP.
    pub udp: UdpCounters,
    /// TCP.
    pub tcp: TcpCounters,
    /// Connection tracking.
    #[serde(skip_serializing_if = "ConntrackCounters::is_zero")]
    pub conntrack: ConntrackCounters,
}

/// IP packets, IPv4 and IPv6 together. A packet that offloads joined counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IpCounters {
    /// Packets received, from all interfaces: InReceives.
    #[serde(skip_serializing_if = "is_zero")]
    pub received: u64,
    /// Packets handed to UDP, TCP and other protocols: InDelivers.
    #[serde(skip_serializing_if = "is_zero")]
    pub delivered: u64,
    /// Packets dropped because their header was wrong or they were cut short: InHdrErrors and InTruncatedPkts.
    #[serde(skip_serializing_if = "is_zero")]
    pub header_errors: u64,
    /// Of them, IPv4 packets with a wrong header checksum: IpExt InCsumErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub checksum_errors: u64,
    /// Packets dropped because the host has no use for their address or no route: InAddrErrors and InNoRoutes.
    #[serde(skip_serializing_if = "is_zero")]
    pub address_errors: u64,
    /// Packets dropped on receipt though nothing was wrong with them, as for want of memory: InDiscards.
    #[serde(skip_serializing_if = "is_zero")]
    pub receive_discards: u64,
    /// Packets that were received, and then neither delivered nor forwarded nor counted by any other counter. Dropped by netfilter
    /// (iptables, nftables), by the reverse path filter, or for a multicast group that the host has not joined. The difference of
    /// counters that are not read at one moment: rather some packets too few than too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub filtered: u64,
    /// Failures to put fragments together, at the latest 30 s after the first one arrived: ReasmFails.
    #[serde(skip_serializing_if = "is_zero")]
    pub reassembly_failures: u64,
    /// Of them, packets of which a fragment did not come in time: ReasmTimeout. The others are single fragments that the host refused, as
    /// for want of memory for reassembly (`net.ipv4.ipfrag_high_thresh`).
    #[serde(skip_serializing_if = "is_zero")]
    pub reassembly_timeouts: u64,
    /// Packets of which fragments arrived that could not be put together: the failures, and the packets that were incomplete at the
    /// end, less those at the beginning (FRAG inuse in `/proc/net/sockstat` and `sockstat6`).
    #[serde(skip_serializing_if = "is_zero")]
    pub unassembled: u64,
    /// Packets received with a congestion mark (RFC 3168): InCEPkts.
    #[serde(skip_serializing_if = "is_zero")]
    pub congestion_marked: u64,
    /// Packets that IP did not send, or that the layer below did not take: OutDiscards.
    #[serde(skip_serializing_if = "is_zero")]
    pub send_discards: u64,
    /// Packets not sent for want of a route: OutNoRoutes.
    #[serde(skip_serializing_if = "is_zero")]
    pub send_no_routes: u64,
    /// Packets longer than the MTU that could not be fragmented: FragFails and Ip6InTooBigErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub too_big: u64,
}

/// UDP datagrams, over IPv4 and IPv6 together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UdpCounters {
    /// Datagrams dropped for want of room in a socket's receive buffer: RcvbufErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub receive_buffer_errors: u64,
    /// Datagrams dropped because UDP's memory was used up (`net.ipv4.udp_mem`): MemErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub memory_errors: u64,
    /// Datagrams dropped because their checksum was wrong: InCsumErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub checksum_errors: u64,
    /// Datagrams for a port at which nobody listens: NoPorts.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_ports: u64,
    /// Datagrams dropped on sending: no room in a socket's send buffer, or an interface's queue was full: SndbufErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub send_buffer_errors: u64,
}

/// TCP segments and events, over IPv4 and IPv6 together, the control connections of the agent included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpCounters {
    /// Segments received; those that offloads joined count once: InSegs.
    #[serde(skip_serializing_if = "is_zero")]
    pub segments_received: u64,
    /// Segments sent, retransmissions left out: OutSegs.
    #[serde(skip_serializing_if = "is_zero")]
    pub segments_sent: u64,
    /// Segments retransmitted: RetransSegs.
    #[serde(skip_serializing_if = "is_zero")]
    pub segments_retransmitted: u64,
    /// Segments dropped because their checksum was wrong: InCsumErrors.
    #[serde(skip_serializing_if = "is_zero")]
    pub checksum_errors: u64,
    /// Retransmission time-outs: TCPTimeouts.
    #[serde(skip_serializing_if = "is_zero")]
    pub timeouts: u64,
    /// Of them, those that turned out to have been needless: TCPSpuriousRTOs.
    #[serde(skip_serializing_if = "is_zero")]
    pub spurious_timeouts: u64,
    /// Segments retransmitted after duplicate acknowledgements, without a time-out: TCPFastRetrans.
    #[serde(skip_serializing_if = "is_zero")]
    pub fast_retransmits: u64,
    /// Tail loss probes sent (RFC 8985): TCPLossProbes.
    #[serde(skip_serializing_if = "is_zero")]
    pub loss_probes: u64,
    /// Segments dropped while a program held the socket, whose backlog was full: TCPBacklogDrop.
    #[serde(skip_serializing_if = "is_zero")]
    pub backlog_drops: u64,
    /// Segments dropped for want of room in the receive queue: TCPRcvQDrop.
    #[serde(skip_serializing_if = "is_zero")]
    pub receive_queue_drops: u64,
    /// Segments dropped from, or not let into, the queue of segments out of order: TCPOFODrop and OfoPruned.
    #[serde(skip_serializing_if = "is_zero")]
    pub out_of_order_drops: u64,
    /// Segments dropped because the window that the host advertised was closed: TCPZeroWindowDrop.
    #[serde(skip_serializing_if = "is_zero")]
    pub zero_window_drops: u64,
    /// Segments dropped from a receive queue for want of memory: RcvPruned.
    #[serde(skip_serializing_if = "is_zero")]
    pub pruned: u64,
    /// Times the receive queue was compacted because memory was short: TCPRcvCollapsed.
    #[serde(skip_serializing_if = "is_zero")]
    pub collapsed: u64,
    /// Times the host advertised a window of zero: TCPToZeroWindowAdv.
    #[serde(skip_serializing_if = "is_zero")]
    pub zero_windows_advertised: u64,
    /// Times TCP's memory became short (`net.ipv4.tcp_mem`): TCPMemoryPressures.
    #[serde(skip_serializing_if = "is_zero")]
    pub memory_pressures: u64,
    /// Connections given up after too many time-outs: TCPAbortOnTimeout.
    #[serde(skip_serializing_if = "is_zero")]
    pub aborted_on_timeout: u64,
    /// Connections given up for want of memory: TCPAbortOnMemory.
    #[serde(skip_serializing_if = "is_zero")]
    pub aborted_on_memory: u64,
    /// Segments not accepted because a listener's queue was full or otherwise: ListenDrops.
    #[serde(skip_serializing_if = "is_zero")]
    pub listen_drops: u64,
    /// Segments delivered that the receiver reported as marked (RFC 3168): TCPDeliveredCE.
    #[serde(skip_serializing_if = "is_zero")]
    pub delivered_ce: u64,
}

/// Packets that connection tracking dropped (`/proc/net/stat/nf_conntrack`). They are part of [`IpCounters::filtered`] if they were
/// received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConntrackCounters {
    /// Packets dropped because their connection could not be tracked, as when the table is full.
    #[serde(skip_serializing_if = "is_zero")]
    pub drops: u64,
    /// Packets whose connection could not be entered into the table.
    #[serde(skip_serializing_if = "is_zero")]
    pub insert_failures: u64,
    /// Connections removed early to make room for others.
    #[serde(skip_serializing_if = "is_zero")]
    pub early_drops: u64,
}

impl ConntrackCounters {
    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a count is left out of a record.
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
