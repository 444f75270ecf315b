//! Addresses of servers that run no agent.

use linerate_model::IpVersion;
use std::net::{IpAddr, ToSocketAddrs as _};

/// Address of a server as typed: `SCHEME://HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) host: String,
    /// `None` if the text has no port.
    pub(crate) port: Option<u16>,
}

impl ServerAddress {
    /// Reads an address after `scheme`, as in `iperf3://`; `[::1]` is an IPv6 address. Returns `None` if `text` has another scheme.
    ///
    /// # Errors
    /// The host or the port is missing or wrong.
    pub(crate) fn read(scheme: &str, text: &str) -> Result<Option<Self>, String> {
        let Some(rest) = text.trim().strip_prefix(scheme) else { return Ok(None) };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let wrong = || {
            format!(
                "`{text}`: write {scheme}HOST or {scheme}HOST:PORT, and an IPv6 address in brackets, as in {scheme}[2001:db8::1]"
            )
        };
        let (host, port) = match rest.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, ""))) => (host, None),
            Some(Some((host, port))) => (host, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            Some(None) => return Err(wrong()),
            None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
        if host.is_empty() || port == Some(0) || host.contains(['/', '@', ',', '?', '#']) {
            return Err(wrong());
        }
        Ok(Some(Self { host: host.to_owned(), port }))
    }
}

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
