//! Errors of packets that this host sent.

use std::net::IpAddr;

/// An error of a packet that this host sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// Reporter of the error.
    pub origin: ErrorOrigin,
    /// ICMP type and code; zero if this host reported the error.
    pub icmp: [u8; 2],
    /// MTU of a packet that was too big; zero otherwise, and if the system does not report it.
    pub mtu: u32,
    /// Sender of the ICMP message.
    pub from: Option<IpAddr>,
    /// Bytes of the quoted packet after its transport header, written to the buffer.
    pub quoted: usize,
    /// Offset of the ICMP extension structure in the buffer (RFC 4884). `None` if there is none, or it is invalid.
    pub extension: Option<usize>,
    /// Time of reception, in nanoseconds since 1970. `None` if the system did not report it.
    pub arrived_unix_ns: Option<u64>,
}

/// Reporter of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// This host.
    Local,
    /// ICMP.
    Icmp,
    /// ICMPv6.
    Icmp6,
}
