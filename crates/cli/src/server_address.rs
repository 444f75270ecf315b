//! Addresses of servers that run no agent.

use linerate_model::IpVersion;
use std::net::{IpAddr, ToSocketAddrs as _};

/// Returns the first address of a server in that family.
///
/// # Errors
/// It has none.
pub(crate) fn resolve(server: &str, ip: IpVersion) -> Result<IpAddr, String> {
    // A zone is an interface of the client, which may be another host.
    let server = server.split_once('%').map_or(server, |(address, _)| address);
    let all: Vec<IpAddr> = (server, 0)
        .to_socket_addrs()
        .map_err(|_| {
            format!("no address is known for the name `{server}`: check the name, or give the server's address")
        })?
        .map(|address| address.ip().to_canonical())
        .collect();
    let wanted = |address: &&IpAddr| address.is_ipv4() == (ip == IpVersion::V4);
    all.iter().find(wanted).copied().ok_or_else(|| {
        let (family, other) = if ip == IpVersion::V4 { ("IPv4", "-6") } else { ("IPv6", "-4") };
        format!("server `{server}` has no {family} address; use {other}")
    })
}
