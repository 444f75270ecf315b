//! Counters of IP, UDP and TCP.

/// Counters of the protocols over one version of IP since the system was started (RFC 4293, RFC 4113, RFC 4022). Those of 32 bits run over.
/// `None` if the system does not count it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtocolStatistics {
    /// IP packets with errors in their headers.
    pub ip_header_errors: Option<u64>,
    /// IP packets that were received and dropped, mostly for want of memory.
    pub ip_receive_discards: Option<u64>,
    /// IP packets that were to be sent and dropped.
    pub ip_send_discards: Option<u64>,
    /// IP packets without a route.
    pub ip_without_route: Option<u64>,
    /// Failures to put fragments together.
    pub ip_reassembly_failures: Option<u64>,
    /// UDP datagrams to ports where nobody listens.
    pub udp_without_port: Option<u64>,
    /// UDP datagrams for which a socket had no room.
    pub udp_full_sockets: Option<u64>,
    /// UDP datagrams with a wrong checksum.
    pub udp_checksum_errors: Option<u64>,
    /// TCP segments received.
    pub tcp_received: Option<u64>,
    /// TCP segments sent.
    pub tcp_sent: Option<u64>,
    /// TCP segments sent again.
    pub tcp_retransmits: Option<u64>,
    /// TCP segments received with errors.
    pub tcp_receive_errors: Option<u64>,
}
