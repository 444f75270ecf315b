//! UDP datagrams and fields of their IP headers.

use std::net::{IpAddr, SocketAddr};

/// A datagram as `receive_with_details` returns it. Fields are `None` if the system did not report them, and without `report_details`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Length of the datagram in bytes. It exceeds the buffer's if the datagram did not fit; Linux alone reports by how much.
    pub length: usize,
    /// Address of the sender. An IPv6 socket reports IPv4 senders as IPv4-mapped addresses.
    pub from: SocketAddr,
    /// Address that the datagram was sent to, never IPv4-mapped.
    pub to: Option<IpAddr>,
    /// TTL or hop limit of the IP header.
    pub ttl: Option<u8>,
    /// Type of service or traffic class of the IP header: DSCP in the upper 6 bits, ECN in the lower 2.
    pub traffic_class: Option<u8>,
    /// Time at which the system received it, in nanoseconds since 1970.
    pub arrived_unix_ns: Option<u64>,
}

/// Fields of the IP header of a datagram that `send_from` sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendDetails {
    /// Source address. `None` lets the system choose.
    pub from: Option<IpAddr>,
    /// Type of service or traffic class. `None` uses the socket's.
    pub traffic_class: Option<u8>,
}
