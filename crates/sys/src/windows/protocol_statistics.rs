//! What IP, UDP and TCP have counted since the system was started (RFC 4293, RFC 4113, RFC 4022).

use super::status::check;
use crate::Error;
use crate::protocol_counts::ProtocolStatistics;
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GetIpStatisticsEx, GetTcpStatisticsEx, GetUdpStatisticsEx, MIB_IPSTATS_LH, MIB_TCPSTATS_LH, MIB_UDPSTATS,
};
use windows_sys::Win32::Networking::WinSock::{AF_INET, AF_INET6};

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
        ip_header_errors: Some(ip.dwInHdrErrors.into()),
        ip_receive_discards: Some(ip.dwInDiscards.into()),
        ip_send_discards: Some(ip.dwOutDiscards.into()),
        ip_without_route: Some(ip.dwOutNoRoutes.into()),
        ip_reassembly_failures: Some(ip.dwReasmFails.into()),
        udp_without_port: Some(udp.dwNoPorts.into()),
        tcp_received: Some(tcp.dwInSegs.into()),
        tcp_sent: Some(tcp.dwOutSegs.into()),
        tcp_retransmits: Some(tcp.dwRetransSegs.into()),
        tcp_receive_errors: Some(tcp.dwInErrs.into()),
        ..ProtocolStatistics::default()
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
