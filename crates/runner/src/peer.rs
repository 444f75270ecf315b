//! The agents of a run, by the names the plan uses.

use crate::RunError;
use linerate_agent::Client;
use linerate_model::{Host, HostName, IpVersion, Join, Nic, Path};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::time::Instant;

/// One agent.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its API.
    pub client: Client,
    /// What it said of its host, under the plan's name for it.
    pub host: Host,
    /// The name or address its API was reached at.
    reached_at: String,
    /// Round-trip time of its API.
    pub round_trip: Nanos,
}

impl Peer {
    /// How much longer than the furthest agent this one is to wait after it hears of a start, so that all start together.
    pub(crate) fn head_start(&self, furthest: Nanos) -> Nanos {
        Nanos::new((furthest - self.round_trip).get() / 2)
    }
}

/// All agents of a run.
#[derive(Debug, Clone, Default)]
pub struct Peers(BTreeMap<HostName, Peer>);

impl Peers {
    /// Reaches the agent behind `join` and adds it as `name`.
    pub async fn add(&mut self, name: HostName, join: &Join) -> Result<(), RunError> {
        let failed = |source| RunError::Agent { host: name.clone(), source };
        let client = Client::connect(join).await.map_err(failed)?;
        let asked = Instant::now();
        let mut host = client.host().await.map_err(failed)?;
        let round_trip = asked.elapsed().into();
        host.name = name.clone();
        self.0.insert(name, Peer { client, host, reached_at: join.host.clone(), round_trip });
        Ok(())
    }

    /// The agent called `name`.
    pub fn find(&self, name: &HostName) -> Result<&Peer, RunError> {
        self.0.get(name).ok_or_else(|| RunError::UnknownHost(name.clone()))
    }

    /// The longest round trip to any of these agents.
    pub(crate) fn furthest<'a>(&self, names: impl Iterator<Item = &'a HostName>) -> Nanos {
        names.filter_map(|name| self.find(name).ok()).map(|peer| peer.round_trip).max().unwrap_or_default()
    }

    /// What the agents said of their hosts.
    pub fn hosts(&self) -> Vec<Host> {
        self.0.values().map(|peer| peer.host.clone()).collect()
    }

    /// The interface of `at` that carries trial data to and from `other`; none where the addresses do not tell.
    pub fn nic_towards(&self, at: &HostName, other: &HostName, version: IpVersion) -> Option<&Nic> {
        let address = self.data_address(at, other, version).ok()?;
        self.find(at).ok()?.host.nics.iter().find(|nic| nic.addresses.contains(&address))
    }

    /// The MTU of a path: the smaller one of the two interfaces that carry it. None where neither is known.
    pub fn path_mtu(&self, path: &Path, version: IpVersion) -> Option<u32> {
        let ends = [(&path.opener, &path.listener), (&path.listener, &path.opener)];
        ends.into_iter().filter_map(|(at, other)| Some(self.nic_towards(at, other, version)?.mtu)).min()
    }

    /// The address at which `opener` reaches `listener`'s data ports: one the listening agent was given for the purpose,
    /// else the one its API was reached at, else the local address that leads to the opener.
    pub(crate) fn data_address(
        &self,
        listener: &HostName,
        opener: &HostName,
        version: IpVersion,
    ) -> Result<IpAddr, RunError> {
        let (to, from) = (self.find(listener)?, self.find(opener)?);
        let given = to.host.data_addresses.iter().copied().find(|address| is(version, *address));
        let found = given.or_else(|| {
            let reached = resolve(&to.reached_at, version)?;
            if !reached.is_loopback() {
                return Some(reached);
            }
            // The listener runs on this machine. An opener elsewhere reaches it where this machine reaches the opener from.
            match resolve(&from.reached_at, version) {
                Some(remote) if !remote.is_loopback() => source_towards(remote),
                _ => Some(reached),
            }
        });
        found.ok_or_else(|| RunError::NoAddress {
            listener: listener.clone(),
            opener: opener.clone(),
            family: if version == IpVersion::V4 { "IPv4" } else { "IPv6" },
            other: if version == IpVersion::V4 { "-6" } else { "-4" },
        })
    }
}

fn is(version: IpVersion, address: IpAddr) -> bool {
    address.is_ipv4() == (version == IpVersion::V4)
}

/// The first address of that family a host name or address stands for; loopback exists in both families.
fn resolve(host: &str, version: IpVersion) -> Option<IpAddr> {
    let all: Vec<IpAddr> = (host, 0).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    let loopback = || match version {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    all.iter()
        .copied()
        .find(|address| is(version, *address))
        .or_else(|| all.iter().any(IpAddr::is_loopback).then(loopback))
}

/// The local address the routing table chooses towards `remote`. Connecting a UDP socket sends nothing.
fn source_towards(remote: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((remote, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_serves_both_families() {
        assert_eq!(resolve("127.0.0.1", IpVersion::V4), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(resolve("127.0.0.1", IpVersion::V6), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(resolve("192.0.2.1", IpVersion::V6), None);
        assert_eq!(source_towards(Ipv4Addr::LOCALHOST.into()), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
