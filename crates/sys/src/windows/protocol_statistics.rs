//! What IP, UDP and TCP have counted since the system was started (RFC 4293, RFC 4113, RFC 4022).

use super::status::check;
use crate::Error;
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GetIpStatisticsEx, GetTcpStatisticsEx, GetUdpStatisticsEx, MIB_IPSTATS_LH, MIB_TCPSTATS_LH, MIB_UDPSTATS,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET, AF_INET6};

/// Counters of the protocols over one version of IP. They have 32 bits and run over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtocolStatistics {
    /// IP packets with errors in their headers.
    pub ip_header_errors: u32,
    /// IP packets that were received and dropped, mostly for want of memory.
    pub ip_receive_discards: u32,
    /// IP packets that were to be sent and dropped.
    pub ip_send_discards: u32,
    /// IP packets without a route.
    pub ip_without_route: u32,
    /// IP packets that could not be put together.
    pub ip_reassembly_failures: u32,
    /// UDP datagrams to ports where nobody listens.
    pub udp_without_port: u32,
    /// TCP segments received.
    pub tcp_received: u32,
    /// TCP segments sent.
    pub tcp_sent: u32,
    /// TCP segments sent again.
    pub tcp_retransmits: u32,
    /// TCP segments received with errors.
    pub tcp_receive_errors: u32,
}

/// Reads the counters of IPv4, or with `v6` those of IPv6.
///
/// # Errors
/// The call fails.
pub fn protocol_statistics(v6: bool) -> Result<ProtocolStatistics, Error> {
    let family = u32::from(if v6 { AF_INET6 } else { AF_INET });
    let (mut ip, mut udp, mut tcp) = (MIB_IPSTATS_LH::default(), MIB_UDPSTATS::default(), MIB_TCPSTATS_LH::default());
    // SAFETY: the system writes one live structure, of which each call takes its own type.
    check("GetIpStatisticsEx", unsafe { GetIpStatisticsEx(&raw mut ip, family) })?;
    // SAFETY: as above.
    check("GetUdpStatisticsEx", unsafe { GetUdpStatisticsEx(&raw mut udp, family) })?;
    // SAFETY: as above.
    check("GetTcpStatisticsEx", unsafe { GetTcpStatisticsEx(&raw mut tcp, family) })?;
    Ok(ProtocolStatistics {
        ip_header_errors: ip.dwInHdrErrors,
        ip_receive_discards: ip.dwInDiscards,
        ip_send_discards: ip.dwOutDiscards,
        ip_without_route: ip.dwOutNoRoutes,
        ip_reassembly_failures: ip.dwReasmFails,
        udp_without_port: udp.dwNoPorts,
        tcp_received: tcp.dwInSegs,
        tcp_sent: tcp.dwOutSegs,
        tcp_retransmits: tcp.dwRetransSegs,
        tcp_receive_errors: tcp.dwInErrs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_ip_count() {
        for v6 in [false, true] {
            protocol_statistics(v6).expect("counters");
        }
    }
}
