//! What IP, UDP and TCP have counted since the system was started.

#[cfg(target_os = "freebsd")]
use super::records::FREEBSD as LAYOUT;
#[cfg(target_os = "macos")]
use super::records::MACOS as LAYOUT;
use super::sysctl;
use crate::Error;
use crate::protocol_counts::ProtocolStatistics;
use std::io;

/// Reads the counters of IPv4, and of TCP and UDP over both versions of IP. macOS shows those of TCP to root only, unless
/// `net.inet.tcp.disable_access_to_stats` is 0.
///
/// # Errors
/// With `v6`: the counters of IPv6 itself are not known here. The call fails.
pub fn protocol_statistics(v6: bool) -> Result<ProtocolStatistics, Error> {
    if v6 {
        return Err(Error::new("sysctl", "net.inet6.ip6.stats", io::ErrorKind::Unsupported));
    }
    let tcp = sysctl::bytes(c"net.inet.tcp.stats")?;
    let udp = sysctl::bytes(c"net.inet.udp.stats")?;
    let ip = sysctl::bytes(c"net.inet.ip.stats")?;
    Ok(LAYOUT.statistics(&tcp, &udp, &ip))
}
