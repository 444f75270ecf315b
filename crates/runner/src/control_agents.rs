//! Agents that are reached over the network by their API.

use crate::error::at;
use crate::{Agents, OpenSession, RunError};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use linerate_bus::{AgentName, Bus};
use linerate_control::{AgentError, Client, Route, SessionHandle};
use linerate_method::Addresses;
use linerate_model::{
    AgentUrl, Assignment, ClockExchange, Host, HostCounts, HostName, IpVersion, Nic, Order, Path, SessionId, Stage,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Most exchanges of times with an agent to measure its round trip.
const MOST_EXCHANGES: usize = 4;
/// Round trip in nanoseconds below which one exchange suffices.
const SHORT: u64 = 2_000_000;

/// One agent.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    pub client: Client,
    /// Description of the agent's host, under the plan's name for it.
    pub host: Host,
    /// Connection to the API.
    reach: Reach,
    /// Round-trip time of the API.
    pub round_trip: Nanos,
}

/// Connection to an agent's API.
#[derive(Debug, Clone)]
enum Reach {
    /// To a port of the agent.
    Direct {
        /// Name or address in the agent's URL.
        url_host: String,
        /// Addresses of the connection.
        route: Route,
    },
    /// By the NATS of its fleet.
    Fleet,
}

/// Agents that are reached over the network, by the names that the plan uses.
#[derive(Debug, Clone, Default)]
pub struct ControlAgents(BTreeMap<HostName, AgentHandle>);

impl ControlAgents {
    /// Connects to the agent at `url` and adds it as `name`.
    ///
    /// # Errors
    /// The agent cannot be reached, is of another version, or does not accept the token.
    pub async fn add(&mut self, name: HostName, url: &AgentUrl) -> Result<(), RunError> {
        let client = Client::connect(url).await.map_err(at(&name))?;
        let route = client.route().ok_or_else(|| RunError::UnknownHost(name.clone()))?;
        self.insert(name, client, Reach::Direct { url_host: url.host.clone(), route }).await
    }

    /// Reaches `agent` by the NATS of its fleet and adds it as `name`. `fence` is that of the scheduler in whose name
    /// sessions are opened.
    ///
    /// # Errors
    /// No agent of this name is connected to the fleet, or it is of another version.
    pub async fn add_member(
        &mut self,
        name: HostName,
        bus: &Bus,
        agent: AgentName,
        fence: Option<u64>,
    ) -> Result<(), RunError> {
        let client = Client::over_bus(bus.clone(), agent, fence).await.map_err(at(&name))?;
        self.insert(name, client, Reach::Fleet).await
    }

    async fn insert(&mut self, name: HostName, client: Client, reach: Reach) -> Result<(), RunError> {
        let mut host = match client.first_description() {
            Some(host) => host.clone(),
            None => client.host().await.map_err(at(&name))?,
        };
        let round_trip = round_trip(&client).await.map_err(at(&name))?;
        host.name = name.clone();
        self.0.insert(name, AgentHandle { client, host, reach, round_trip });
        Ok(())
    }

    /// Returns the agent called `name`.
    ///
    /// # Errors
    /// No agent has that name.
    pub fn find(&self, name: &HostName) -> Result<&AgentHandle, RunError> {
        self.0.get(name).ok_or_else(|| RunError::UnknownHost(name.clone()))
    }

    /// Returns the interface of `at` that carries trial data to and from `other`. `None` if its address is unknown.
    pub fn nic_towards(&self, at: &HostName, other: &HostName, version: IpVersion) -> Option<&Nic> {
        let address = self.data_address(at, other, version).ok()?;
        self.find(at).ok()?.host.nics.iter().find(|nic| nic.addresses.contains(&address))
    }

    /// Returns the MTU of a path: the smaller one of the two interfaces that carry it. `None` if neither is known.
    pub fn path_mtu(&self, path: &Path, version: IpVersion) -> Option<u32> {
        let client = &path.client;
        let server = path.server.agent()?;
        let ends = [(client, server), (server, client)];
        ends.into_iter().filter_map(|(at, other)| Some(self.nic_towards(at, other, version)?.mtu)).min()
    }
}

/// Measures the shortest round trip of a few exchanges of times, without the time inside the agent. Start orders are
/// staggered by half of the difference between agents.
async fn round_trip(client: &Client) -> Result<Nanos, AgentError> {
    let mut shortest = u64::MAX;
    for _ in 0..MOST_EXCHANGES {
        let ClockExchange { origin_ns, receive_ns, transmit_ns, destination_ns } = client.clock().await?;
        let at_agent = transmit_ns.saturating_sub(receive_ns);
        shortest = shortest.min(destination_ns.saturating_sub(origin_ns).saturating_sub(at_agent));
        if shortest < SHORT {
            break;
        }
    }
    Ok(Nanos::new(shortest))
}

impl Addresses for ControlAgents {
    /// Returns the address at which `connector` reaches the data ports of `listener`: the agent's `--data-address`,
    /// else the address of its API, else the local address on the route to the connector. An agent of a fleet has no
    /// address of its API: one of its interfaces is chosen.
    fn data_address(&self, listener: &HostName, connector: &HostName, version: IpVersion) -> Result<IpAddr, String> {
        let to = self.find(listener).map_err(|error| error.to_string())?;
        let from = self.find(connector).map_err(|error| error.to_string())?;
        let configured = to.host.data_addresses.iter().copied().find(|address| is(version, *address));
        let address = configured.or_else(|| {
            if let Reach::Fleet = to.reach {
                return member_address(&to.host, &from.host, version);
            }
            let reached = to.address(version)?;
            if !reached.is_loopback() {
                return Some(reached);
            }
            // The listener runs on this machine. A remote connector reaches it at this machine's address on the route
            // to it.
            match from.address(version) {
                Some(remote) if !remote.is_loopback() => {
                    let local = from.own_address();
                    local.filter(|local| is(version, *local)).or_else(|| source_towards(remote))
                }
                _ => Some(reached),
            }
        });
        let (family, other) = if version == IpVersion::V4 { ("IPv4", "-6") } else { ("IPv6", "-4") };
        address.ok_or_else(|| {
            format!("{listener} has no {family} address that {connector} could send to; use {other}, or give its agent --data-address")
        })
    }

    /// Returns whether `host` may be behind a NAT as seen by `connector`. Only the agent of this process, at loopback,
    /// may be; an agent that is reached from here is not.
    fn is_hidden(&self, host: &HostName, connector: &HostName) -> bool {
        match (self.find(host), self.find(connector)) {
            (Ok(host), Ok(connector)) => host.host.data_addresses.is_empty() && host.is_here() && !connector.is_here(),
            _ => false,
        }
    }

    fn host(&self, name: &HostName) -> Option<&Host> {
        self.0.get(name).map(|agent| &agent.host)
    }

    /// Returns the smallest segment limit of the API connections: data take the same route, at least at this host.
    fn segment_limit(&self, host: &HostName, other: &HostName) -> Option<u16> {
        [host, other].into_iter().filter_map(|name| self.0.get(name)?.route()?.segment_limit).min()
    }
}

impl AgentHandle {
    /// Returns the route of the connection to the agent's port. Returns `None` for an agent of a fleet.
    fn route(&self) -> Option<&Route> {
        match &self.reach {
            Reach::Direct { route, .. } => Some(route),
            Reach::Fleet => None,
        }
    }

    /// Returns whether the agent runs on this machine. Of an agent of a fleet this is not known.
    fn is_here(&self) -> bool {
        self.route().is_some_and(|route| route.agent.ip().to_canonical().is_loopback())
    }

    /// Returns this machine's address of the connection to the agent.
    fn own_address(&self) -> Option<IpAddr> {
        self.route().map(|route| route.own.ip().to_canonical())
    }

    /// Returns the agent's address of that family: the one that answered, else one that its name resolves to. An agent
    /// of a fleet has the address of one of its interfaces.
    fn address(&self, version: IpVersion) -> Option<IpAddr> {
        match &self.reach {
            Reach::Direct { url_host, route } => {
                let answered = route.agent.ip().to_canonical();
                if is(version, answered) { Some(answered) } else { resolve(url_host, version) }
            }
            Reach::Fleet => {
                let configured = self.host.data_addresses.iter().chain(ordinary_addresses(&self.host));
                configured.copied().find(|address| is(version, *address))
            }
        }
    }
}

impl Agents for ControlAgents {
    fn hosts(&self) -> Vec<Host> {
        self.0.values().map(|agent| agent.host.clone()).collect()
    }

    fn endpoint(&self, listening: SocketAddr, listener: &HostName, connector: &HostName) -> SocketAddr {
        let plain = SocketAddr::new(listening.ip(), listening.port());
        match (self.0.get(listener), self.0.get(connector), plain) {
            // The zone of this host's connection to the agent.
            (Some(to), Some(from), SocketAddr::V6(mut v6)) if from.is_here() && v6.ip().is_unicast_link_local() => {
                if let Some(Route { agent: SocketAddr::V6(agent), .. }) = to.route() {
                    v6.set_scope_id(agent.scope_id());
                }
                v6.into()
            }
            _ => plain,
        }
    }

    fn round_trip(&self, host: &HostName) -> Nanos {
        self.0.get(host).map(|agent| agent.round_trip).unwrap_or_default()
    }

    fn clock<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, Result<ClockExchange, RunError>> {
        Box::pin(async move { self.find(host)?.client.clock().await.map_err(at(host)) })
    }

    fn open<'a>(
        &'a self,
        host: &'a HostName,
        assignment: &'a Assignment,
    ) -> BoxFuture<'a, Result<Box<dyn OpenSession>, RunError>> {
        Box::pin(async move {
            let client = self.find(host)?.client.clone();
            let handle = client.open(assignment).await.map_err(at(host))?;
            Ok(Box::new(ControlSession { client, handle }) as Box<dyn OpenSession>)
        })
    }

    fn kept_counts<'a>(&'a self, host: &'a HostName, id: &'a SessionId) -> BoxFuture<'a, Option<HostCounts>> {
        Box::pin(async move { self.find(host).ok()?.client.counts(id).await.ok() })
    }

    fn close<'a>(&'a self, host: &'a HostName, id: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(agent) = self.find(host) {
                let _ = agent.client.close(id).await;
            }
        })
    }
}

/// A session at an agent that is reached over the network.
struct ControlSession {
    client: Client,
    handle: SessionHandle,
}

impl OpenSession for ControlSession {
    fn stage(&mut self) -> BoxFuture<'_, Result<Stage, AgentError>> {
        Box::pin(async {
            let stage = self.handle.next().await;
            stage.unwrap_or_else(|| {
                Err(AgentError::Lost {
                    address: self.client.address().to_owned(),
                    task: "do its part of the trial",
                    reason: "it reported no further stage".to_owned(),
                })
            })
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(self.client.check())
    }

    fn order<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(self.client.order(self.handle.id(), order))
    }

    fn counts(&self) -> BoxFuture<'_, Result<HostCounts, AgentError>> {
        Box::pin(self.client.counts(self.handle.id()))
    }

    fn close(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(self.client.close(self.handle.id()))
    }
}

/// Returns the address at which `connector` reaches a member of a fleet: the one that is closest to an address of the
/// connector. Addresses that both have are bridges inside of each, unless both run on one host, where it is loopback.
fn member_address(listener: &Host, connector: &Host, version: IpVersion) -> Option<IpAddr> {
    let theirs: Vec<IpAddr> = ordinary_addresses(connector).copied().collect();
    let own: Vec<IpAddr> = ordinary_addresses(listener).copied().filter(|address| is(version, *address)).collect();
    let is_one_host = listener.boot_id == connector.boot_id && !listener.boot_id.is_empty();
    if is_one_host && (own.is_empty() || own.iter().all(|address| theirs.contains(address))) {
        return Some(loopback(version));
    }
    let mut best = None;
    for address in own.into_iter().filter(|address| !theirs.contains(address)) {
        let shared = theirs.iter().map(|other| shared_prefix(address, *other)).max().unwrap_or_default();
        if best.is_none_or(|(longest, _)| shared > longest) {
            best = Some((shared, address));
        }
    }
    best.map(|(_, address)| address)
}

/// Iterates over the addresses of a host that other hosts may reach: of interfaces that are up, without link-local ones.
fn ordinary_addresses(host: &Host) -> impl Iterator<Item = &IpAddr> {
    let addresses = host.nics.iter().filter(|nic| nic.up).flat_map(|nic| &nic.addresses);
    addresses.filter(|address| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_unspecified(),
    })
}

/// Returns the number of leading bits that both addresses have; 0 for addresses of different families.
fn shared_prefix(left: IpAddr, right: IpAddr) -> u32 {
    match (left, right) {
        (IpAddr::V4(left), IpAddr::V4(right)) => (left.to_bits() ^ right.to_bits()).leading_zeros(),
        (IpAddr::V6(left), IpAddr::V6(right)) => (left.to_bits() ^ right.to_bits()).leading_zeros(),
        _ => 0,
    }
}

fn loopback(version: IpVersion) -> IpAddr {
    match version {
        IpVersion::V4 => Ipv4Addr::LOCALHOST.into(),
        IpVersion::V6 => Ipv6Addr::LOCALHOST.into(),
    }
}

fn is(version: IpVersion, address: IpAddr) -> bool {
    address.is_ipv4() == (version == IpVersion::V4)
}

/// Resolves a host name or address to its first address of that family. Loopback exists in both families.
fn resolve(host: &str, version: IpVersion) -> Option<IpAddr> {
    let all: Vec<IpAddr> = (host, 0).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    let address = all.iter().copied().find(|address| is(version, *address));
    address.or_else(|| all.iter().any(IpAddr::is_loopback).then(|| loopback(version)))
}

/// Returns the local address that the routing table chooses towards `remote`. Connecting a UDP socket sends nothing.
fn source_towards(remote: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((remote, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(boot: &str, addresses: &[&str]) -> Host {
        let nic = Nic {
            name: "eth0".to_owned(),
            driver: String::new(),
            speed: None,
            duplex: None,
            mtu: 1_500,
            up: true,
            mac: String::new(),
            addresses: addresses.iter().map(|address| address.parse().expect("an address")).collect(),
            offloads: BTreeMap::new(),
            qdisc: String::new(),
            driver_version: String::new(),
            firmware: String::new(),
            slot: None,
        };
        Host {
            name: HostName("any".to_owned()),
            version: String::new(),
            protocol: linerate_control::PROTOCOL,
            system: String::new(),
            cpu_model: String::new(),
            cores: 1,
            core_groups: Vec::new(),
            memory_bytes: 0,
            boot_id: boot.to_owned(),
            congestion_controls: Vec::new(),
            nics: vec![nic],
            data_addresses: Vec::new(),
            capabilities: Vec::new(),
        }
    }

    fn chosen(listener: &[&str], connector: &[&str], version: IpVersion) -> Option<String> {
        member_address(&host("a", listener), &host("b", connector), version).map(|address| address.to_string())
    }

    #[test]
    fn members_are_reached_at_the_address_closest_to_the_peer() {
        let listener = ["172.17.0.1", "198.51.100.7", "10.1.2.3", "fe80::1", "2001:db8:1::7", "2001:db8:2::7"];
        let connector = ["172.17.0.1", "10.1.2.9", "fe80::2", "2001:db8:2::9"];
        assert_eq!(chosen(&listener, &connector, IpVersion::V4).as_deref(), Some("10.1.2.3"));
        assert_eq!(chosen(&listener, &connector, IpVersion::V6).as_deref(), Some("2001:db8:2::7"));
        assert_eq!(chosen(&["172.17.0.1", "198.51.100.7"], &connector, IpVersion::V4).as_deref(), Some("198.51.100.7"));
        assert_eq!(chosen(&["fe80::1", "127.0.0.1"], &connector, IpVersion::V4), None);
        assert_eq!(chosen(&["198.51.100.7"], &connector, IpVersion::V6), None);
    }

    #[test]
    fn members_on_one_host_meet_on_loopback() {
        let addresses = ["198.51.100.7", "172.17.0.1"];
        let address = member_address(&host("a", &addresses), &host("a", &addresses), IpVersion::V4);
        assert_eq!(address, Some(Ipv4Addr::LOCALHOST.into()));
        // Namespaces of one host have addresses of their own.
        let address = member_address(&host("a", &["10.9.0.1"]), &host("a", &["10.9.0.2"]), IpVersion::V4);
        assert_eq!(address, Some(Ipv4Addr::new(10, 9, 0, 1).into()));
    }

    #[test]
    fn loopback_serves_both_families() {
        assert_eq!(resolve("127.0.0.1", IpVersion::V4), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(resolve("127.0.0.1", IpVersion::V6), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(resolve("192.0.2.1", IpVersion::V6), None);
        assert_eq!(source_towards(Ipv4Addr::LOCALHOST.into()), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
