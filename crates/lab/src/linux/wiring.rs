//! Namespaces and the links between them.

mod chain;

use crate::LabError;
use crate::linux::address::{self, Addresses};
use crate::linux::bench::{Bench, DEVICE, DeviceKind, FaultPlace, HostInterface, Link, MTU, TESTER};
use crate::linux::ethernet::{self, End};
use crate::linux::open_vswitch_limits::OpenVswitchLimits;
use crate::linux::path::{PathLimits, PathPlan, PlannedPort};
use crate::linux::policer::{self, Limit};
use crate::linux::receiving;
use crate::linux::reference;
use crate::linux::reference::Counters;
use linerate_model::{Duplex, HostName};
use linerate_sys::ethtool::Ethtool;
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_sys::shaping::Way;
use linerate_units::{BitRate, Ratio};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The data interface of every host.
const INTERFACE: &str = "eth0";
/// The bridge in the device's namespace.
const BRIDGE: &str = "br0";
/// Ethernet header with two VLAN tags, bytes.
const HEADERS: usize = 14 + 2 * 4;
/// Time for the kernel to see a carrier, and the interval of looking.
const CARRIER: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(1);
/// Pairs of hosts that hear each other before the first trial. Each has two entries in the neighbour table, of which all
/// namespaces have one for each family, with 1,024 entries (net.ipv4.neigh.default.gc_thresh3).
const MAX_NEIGHBOURS: usize = 400;
/// Time for every host of a new bench to hear the others: the machine may be busy.
const RING_THROUGH: Duration = Duration::from_secs(60);
/// Limit of this time for a bench in which a link or a filter loses frames on purpose.
const RING_THROUGH_LOSS: Duration = Duration::from_secs(5);

/// Namespaces and links of a bench. Dropping it closes the descriptors; the kernel removes what no process uses then.
pub(crate) struct Wiring {
    /// The hosts, in the order of the bench, and after them the tester.
    pub(crate) hosts: Vec<WiredHost>,
    /// The device, if there is one: a host with an agent where there is a tester, which may ask for its load.
    device: Option<WiredHost>,
    /// Routers of a chain. The device is then the namespace of the links that have limits.
    routers: Vec<WiredHost>,
    /// Somebody tests the device with raw frames.
    tested: bool,
    /// Interfaces at which planted faults drop frames.
    drop_points: Vec<DropPoint>,
    /// Counters of a reference device that has limits.
    reference: Option<Arc<Counters>>,
    /// Pauses that a reference device asks for.
    pauses: Option<OwnedFd>,
}

/// A host without its agent.
pub(crate) struct WiredHost {
    /// Its name.
    pub(crate) name: HostName,
    /// Network namespace.
    pub(crate) namespace: NetNamespace,
    /// Its addresses, IPv4 first; IPv6 only where the kernel has it.
    pub(crate) addresses: Vec<IpAddr>,
    /// Declared rates of its links, by interface.
    pub(crate) rates: Vec<(String, BitRate)>,
    /// Declared duplex of these links; `None` if the device has nothing to say about it.
    pub(crate) duplex: Option<Duplex>,
    /// Whether it is the tester.
    tests: bool,
}

/// Link of a bench.
struct Port {
    /// The index of its host.
    host: usize,
    /// Its interface there.
    interface: String,
    /// The device's.
    far: String,
    /// Raw frames come and go by it.
    tests: bool,
}

/// An interface that drops what the link of `host` loses.
struct DropPoint {
    host: HostName,
    /// Index of the host with the interface in its namespace; `None` for the device's.
    inside: Option<usize>,
    link: u32,
}

/// End of a link while it is being built.
struct LinkEnd<'a> {
    namespace: &'a NetNamespace,
    interface: String,
    end: End,
}

impl Wiring {
    /// Builds everything but the agents.
    pub(crate) fn build(bench: &Bench) -> Result<Self, LabError> {
        let mut hosts = Vec::new();
        for name in &bench.hosts {
            hosts.push(WiredHost::new(name.clone(), bench.declared_speed(name), &[INTERFACE.to_owned()])?);
        }
        if bench.tester_ports > 0 {
            hosts.push(tester(bench)?);
        }
        if bench.hub().is_some() {
            for host in &mut hosts {
                host.duplex = Some(Duplex::Half);
            }
        }
        let mut wiring = Self {
            hosts,
            device: None,
            routers: Vec::new(),
            tested: bench.has_testers(),
            drop_points: Vec::new(),
            reference: None,
            pauses: None,
        };
        match bench.device.kind {
            DeviceKind::None if bench.tester_ports > 0 => wiring.join_ports(bench)?,
            DeviceKind::None => wiring.join_back_to_back(bench)?,
            DeviceKind::Chain { .. } => wiring.join_by_chain(bench)?,
            kind => wiring.join_by_device(bench, kind)?,
        }
        wiring.until_links_run()?;
        Ok(wiring)
    }

    /// Waits until the kernel has seen the carrier of each link that is up, which it does later: the first frames would
    /// be lost.
    fn until_links_run(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + CARRIER;
        for host in self.hosts.iter().chain(&self.device).chain(&self.routers) {
            let waiting = || format!("wait for the links of {} to run", host.name);
            let mut route = inside(&host.namespace, Route::open).map_err(LabError::at(waiting()))?;
            loop {
                let links = route.links().map_err(LabError::at(waiting()))?;
                let Some(link) = links.into_iter().find(|link| link.up && !link.running) else { break };
                if Instant::now() > deadline {
                    let late = io::Error::new(io::ErrorKind::TimedOut, "it has a carrier that the kernel does not see");
                    return Err(LabError::at(waiting())(linerate_sys::Error::new("RTM_GETLINK", link.name, late)));
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Hosts that have an agent.
    pub(crate) fn with_agent(&self) -> impl Iterator<Item = &WiredHost> {
        self.hosts.iter().chain(self.device.as_ref().filter(|_| self.tested))
    }

    /// The path or hub that a bench has, and the namespace of its ports.
    pub(crate) fn path(&self, bench: &Bench) -> Option<(PathPlan, &NetNamespace)> {
        let device = self.device.as_ref()?;
        if bench.chain().is_some() {
            return Some((bench.chain_plan(), &device.namespace));
        }
        let hub = bench.hub();
        let planned = |port: Port| {
            let host = &self.hosts[port.host];
            // The tester's ports go by the names of its commands.
            let to = if host.tests { HostName(format!("{TESTER}:{}", port.interface)) } else { host.name.clone() };
            let limits = bench.path_to(&host.name).or(hub.map(|_| PathLimits::default()))?;
            Some(PlannedPort { limits, host: to, interface: port.far, network: 0 })
        };
        let ports = self.ports(bench).into_iter().map(planned).collect::<Option<Vec<_>>>()?;
        let longest = self.hosts.iter().map(|host| bench.mtu_of(&host.name)).max().unwrap_or(MTU);
        // The medium of a hub is its rate: its ports have no queue of their own.
        let bypass_queues = hub.is_some() || !bench.has_rates();
        let plan = PathPlan { ports, longest: longest as usize + HEADERS, bypass_queues, hub };
        Some((plan, &device.namespace))
    }

    /// Returns the limits of an Open vSwitch, the core that it may use, and its namespace. `None` if the device is
    /// another. Without a tester it may use all cores.
    pub(crate) fn open_vswitch(&self, bench: &Bench) -> Option<(OpenVswitchLimits, Option<u32>, &NetNamespace)> {
        let DeviceKind::OpenVswitch(limits) = bench.device.kind else { return None };
        let core = self.tested.then(receiving::last_core).filter(|core| *core > 0);
        Some((limits, core, &self.device.as_ref()?.namespace))
    }

    /// Returns the counters of a reference device that has limits.
    pub(crate) fn reference(&self) -> Option<&Arc<Counters>> {
        self.reference.as_ref()
    }

    /// Returns the pauses that a reference device asks for and its namespace, or `None` if it asks for none.
    pub(crate) fn pauses(&self) -> Option<(BorrowedFd<'_>, &NetNamespace)> {
        Some((self.pauses.as_ref()?.as_fd(), &self.device.as_ref()?.namespace))
    }

    /// Returns the descriptors that must stay open for the device to live.
    pub(crate) fn held(&self) -> Vec<BorrowedFd<'_>> {
        self.device.iter().chain(&self.routers).map(|device| device.namespace.as_fd()).collect()
    }

    /// The host of that name.
    pub(crate) fn host(&self, name: &HostName) -> Result<&WiredHost, LabError> {
        self.with_agent().find(|host| host.name == *name).ok_or_else(|| LabError::UnknownHost {
            host: name.clone(),
            known: crate::error::host_list(self.with_agent().map(|host| &host.name)),
        })
    }

    /// Frames that planted faults have dropped so far on the link of each host that has any.
    pub(crate) fn dropped(&self) -> Result<BTreeMap<HostName, u64>, LabError> {
        let mut dropped = BTreeMap::new();
        for point in &self.drop_points {
            let Some(owner) = point.inside.map_or(self.device.as_ref(), |index| self.hosts.get(index)) else {
                continue;
            };
            let namespace = &owner.namespace;
            let step = || format!("count what the link of host {} lost", point.host);
            let qdiscs =
                inside(namespace, Route::open).and_then(|mut route| route.qdiscs()).map_err(LabError::at(step()))?;
            let here = qdiscs.iter().filter(|qdisc| qdisc.link == point.link && qdisc.kind == "clsact");
            *dropped.entry(point.host.clone()).or_default() += here.map(|qdisc| qdisc.drops).sum::<u64>();
        }
        Ok(dropped)
    }

    /// Two hosts, one link.
    fn join_back_to_back(&mut self, bench: &Bench) -> Result<(), LabError> {
        let [first, second] = &self.hosts[..] else { return Ok(()) };
        // A link has one MTU: the smaller of what its ends say.
        let mtu = [first, second].iter().map(|host| bench.mtu_of(&host.name)).min().unwrap_or(MTU);
        inside(&first.namespace, Route::open)
            .and_then(|mut route| route.add_veth(INTERFACE, INTERFACE, &second.namespace, mtu))
            .map_err(LabError::at(format!("make the link {} - {}", first.name, second.name)))?;
        let losses = bench.losses();
        for (index, peer) in [(0, 1), (1, 0)] {
            let host = &self.hosts[index];
            let peer = &self.hosts[peer];
            let end = LinkEnd { namespace: &host.namespace, interface: INTERFACE.to_owned(), end: End::Host };
            // What the peer sends is lost where it comes in.
            let lost: Vec<_> = losses
                .iter()
                .filter(|(place, _)| place.host() == &peer.name)
                .map(|(_, ratio)| (Way::In, *ratio))
                .collect();
            let link = if bench.testers.contains(&host.name) {
                end.set_up_for_frames(&[])
            } else {
                let rate = bench.link_of(&host.name).rate;
                let faults = [host, peer].iter().any(|host| bench.faults_need_frame_by_frame(&host.name));
                end.set_up(rate, mtu, &lost, rate.is_some() || !losses.is_empty() || faults)
            };
            let link = link.map_err(host.building("the link"))?;
            let interface = HostInterface { namespace: &host.namespace, name: INTERFACE, mtu };
            let drops = !bench.testers.contains(&host.name) && bench.plant(&host.name, &interface)?;
            if !lost.is_empty() {
                self.drop_points.push(DropPoint { host: peer.name.clone(), inside: Some(index), link });
            } else if drops {
                self.drop_points.push(DropPoint { host: host.name.clone(), inside: Some(index), link });
            }
            let addresses = address::in_one_network(index);
            let had = host.give(INTERFACE, &addresses).map_err(host.building("the addresses"))?;
            self.hosts[index].addresses = had;
        }
        Ok(())
    }

    /// Two ports of the tester, one link.
    fn join_ports(&mut self, bench: &Bench) -> Result<(), LabError> {
        let [tester] = &mut self.hosts[..] else { return Ok(()) };
        let [first, second] = [port_name(0), port_name(1)];
        let mtu = bench.mtu_of(&tester.name);
        inside(&tester.namespace, Route::open)
            .and_then(|mut route| route.add_veth(&first, &second, &tester.namespace, mtu))
            .map_err(LabError::at(format!("make the link {first} - {second}")))?;
        for (index, interface) in [first, second].into_iter().enumerate() {
            let end = LinkEnd { namespace: &tester.namespace, interface: interface.clone(), end: End::Host };
            end.set_up_for_frames(&[]).map_err(tester.building("the link"))?;
            let had = tester.give(&interface, &address::in_one_network(index));
            let had = had.map_err(tester.building("the addresses"))?;
            tester.addresses.extend(had);
        }
        Ok(())
    }

    /// The links of a bench with a device: those of the hosts, then those of the tester.
    fn ports(&self, bench: &Bench) -> Vec<Port> {
        let of_hosts = bench.hosts.iter().enumerate().map(|(host, name)| Port {
            host,
            interface: INTERFACE.to_owned(),
            far: format!("port-{name}"),
            tests: bench.testers.contains(name),
        });
        let of_tester = (0..bench.tester_ports).map(|number| Port {
            host: bench.hosts.len(),
            interface: port_name(number),
            far: format!("{TESTER}-{}", port_name(number)),
            tests: true,
        });
        of_hosts.chain(of_tester).collect()
    }

    /// Every host, and every port of the tester, on a port of a device.
    fn join_by_device(&mut self, bench: &Bench, kind: DeviceKind) -> Result<(), LabError> {
        let device = WiredHost::new(HostName::from(DEVICE), None, &[])?;
        let mut route =
            inside(&device.namespace, || prepare_device(kind)).map_err(LabError::at(format!("set up the {kind}")))?;
        let bridge = match kind {
            DeviceKind::Bridge => Some(add_bridge(&mut route).map_err(LabError::at("make the bridge"))?),
            DeviceKind::Router => {
                let given = route.index_of("lo").and_then(|loopback| {
                    // The address alone: its network would be the loopback's as well.
                    route.add_address(loopback, address::DEVICE.into(), 32)
                });
                given.map_err(LabError::at("give the router its address"))?;
                None
            }
            _ => None,
        };
        let losses = bench.losses();
        let ports = self.ports(bench);
        for (index, port) in ports.iter().enumerate() {
            let host = &self.hosts[port.host];
            let mtu = bench.mtu_of(&host.name);
            let link = bench.link_of(&host.name);
            let police = link.police;
            route.add_veth(&port.far, &port.interface, &host.namespace, mtu).map_err(host.building("the link"))?;
            let port_losses: Vec<_> = losses
                .iter()
                .filter_map(|(place, ratio)| match place {
                    FaultPlace::From(from) if *from == host.name => Some((Way::In, *ratio)),
                    FaultPlace::To(to) if *to == host.name => Some((Way::Out, *ratio)),
                    _ => None,
                })
                .collect();
            let far = LinkEnd { namespace: &device.namespace, interface: port.far.clone(), end: End::Device };
            let near = LinkEnd { namespace: &host.namespace, interface: port.interface.clone(), end: End::Host };
            let link = if port.tests {
                let link = far.set_up_for_frames(&port_losses).map_err(host.building("the device's port"))?;
                near.set_up_for_frames(&[]).map_err(host.building("the interface"))?;
                link
            } else {
                let Link { rate, shape, .. } = link;
                let lets_out = [rate, shape].into_iter().flatten().min().filter(|_| bench.hub().is_none());
                let faults = bench.faults_need_frame_by_frame(&host.name);
                let by_itself = lets_out.is_some()
                    || !port_losses.is_empty()
                    || faults
                    || bench.has_policers()
                    || kind.is_program();
                let link =
                    far.set_up(lets_out, mtu, &port_losses, by_itself).map_err(host.building("the device's port"))?;
                near.set_up(rate, mtu, &[], by_itself).map_err(host.building("the interface"))?;
                link
            };
            if bench.has_policers() || kind.is_program() {
                route.disable_gro(link).map_err(host.building("the device's port"))?;
            }
            if let Some(rate) = police {
                inside(&device.namespace, || policer::install(link, Way::Out, &Limit::bits(rate, mtu)))
                    .map_err(host.building("the policer"))?;
            }
            if matches!(kind, DeviceKind::Reference(_)) || kind.is_program() {
                near.take_from_reference().map_err(host.building("the interface"))?;
            }
            if !port.tests {
                let interface = HostInterface { namespace: &host.namespace, name: &port.interface, mtu };
                if bench.plant(&host.name, &interface)? {
                    let link = interface.number().map_err(host.building("the interface"))?;
                    self.drop_points.push(DropPoint { host: host.name.clone(), inside: Some(port.host), link });
                }
            }
            let addresses = match kind {
                DeviceKind::Router => {
                    let mut addresses = match index.checked_sub(bench.hosts.len()) {
                        Some(number) => address::port_behind_router(index, number),
                        None => address::behind_router(index),
                    };
                    for gateway in addresses.gateway.iter().flatten() {
                        give(&mut route, link, *gateway).map_err(host.building("the router's port"))?;
                    }
                    if host.tests {
                        // With a network on each port, no one way is everyone's.
                        addresses.gateway = None;
                    }
                    addresses
                }
                _ => address::in_one_network(index),
            };
            if let Some(bridge) = bridge {
                route.set_bridge(link, bridge).map_err(host.building("the bridge's port"))?;
            }
            if !port_losses.is_empty() || police.is_some() {
                self.drop_points.push(DropPoint { host: host.name.clone(), inside: None, link });
            }
            let had = host.give(&port.interface, &addresses).map_err(host.building("the addresses"))?;
            self.hosts[port.host].addresses.extend(had);
        }
        if let DeviceKind::Reference(limits) = kind {
            let failed = || LabError::at("make the reference device");
            let installed = inside(&device.namespace, || reference::install(&limits)).map_err(failed())?;
            self.pauses = installed.pauses;
            if limits.can_be_missed() {
                let tested = ports.iter().filter(|port| port.tests).map(|port| port.far.clone()).collect();
                let interfaces = |host: usize| {
                    ports.iter().filter(|port| port.host == host).map(|port| port.interface.clone()).collect()
                };
                let hosts = self.hosts.iter().enumerate();
                let hosts = hosts.map(|(index, host)| (&host.namespace, interfaces(index))).collect();
                let counters = Counters::new(installed.unplanned, &device.namespace, tested, hosts).map_err(failed())?;
                self.reference = Some(Arc::new(counters));
            }
        }
        // The reference device drops by its own account, so it may work on the tester's core. There its limits hold
        // exactly: on another core, a pause of that core alone would lose frames that the limits would not.
        // Open vSwitch has the last core for itself: frames that wait for it may be dropped on the tester's core.
        let shares_core = matches!(kind, DeviceKind::Reference(_) | DeviceKind::OpenVswitch(_));
        if ports.iter().any(|port| port.tests) && !shares_core {
            let interfaces: Vec<_> = ports.into_iter().map(|port| port.far).collect();
            receiving::move_to_last_core(&device.namespace, &interfaces, true)
                .map_err(LabError::at("move the device's work"))?;
        }
        self.device = Some(device);
        Ok(())
    }

    /// Sends between the hosts by both families until they have heard each other ([`hear_all`]). So the links work, and neighbours
    /// and bridge know where everybody is before the first trial.
    pub(crate) fn ring_through(&self, bench: &Bench) -> Result<(), LabError> {
        for family in 0..2 {
            let mut ends = Vec::new();
            for host in self.hosts.iter().filter(|host| !host.tests) {
                let Some(address) = host.addresses.get(family).copied() else { continue };
                let socket = inside(&host.namespace, || {
                    let bound = UdpSocket::bind((address, 0)).and_then(|socket| {
                        socket.set_nonblocking(true)?;
                        let local = socket.local_addr()?;
                        Ok((socket, local))
                    });
                    bound.map_err(|error| linerate_sys::Error::new("bind", address.to_string(), error))
                });
                let (socket, local) = socket.map_err(host.building("a socket"))?;
                ends.push((host, socket, local));
            }
            let loses = bench.may_lose() || bench.path_loses();
            let silent = hear_all(&ends, if loses { RING_THROUGH_LOSS } else { RING_THROUGH });
            if let (Some((from, to)), false) = (silent.first(), loses) {
                return Err(LabError::Build {
                    step: format!("use the bench: host {} does not hear host {}", ends[*to].0.name, ends[*from].0.name),
                    source: linerate_sys::Error::new("recv", ends[*to].2.to_string(), io::ErrorKind::TimedOut),
                });
            }
        }
        Ok(())
    }
}

impl WiredHost {
    /// A host with nothing but its namespace, whose interfaces are to carry `rate`.
    fn new(name: HostName, rate: Option<BitRate>, interfaces: &[String]) -> Result<Self, LabError> {
        let namespace = namespace_of(&format!("host {name}"))?;
        let rates = rate.map(|rate| interfaces.iter().map(|interface| (interface.clone(), rate)).collect());
        let rates = rates.unwrap_or_default();
        Ok(Self { name, namespace, addresses: Vec::new(), rates, duplex: None, tests: false })
    }

    /// Gives an interface its addresses and routes; says which it could have.
    fn give(&self, interface: &str, addresses: &Addresses) -> Result<Vec<IpAddr>, linerate_sys::Error> {
        let mut route = inside(&self.namespace, Route::open)?;
        let link = route.index_of(interface)?;
        let mut configured = Vec::new();
        for (position, address) in addresses.host.into_iter().enumerate() {
            if give(&mut route, link, address)? {
                configured.push(address);
                if let Some(gateways) = addresses.gateway {
                    route.add_default_route(gateways[position])?;
                }
            }
        }
        Ok(configured)
    }

    fn building(&self, what: &str) -> impl FnOnce(linerate_sys::Error) -> LabError + use<> {
        LabError::at(format!("set up {what} of host {}", self.name))
    }
}

/// The tester without its links. Each of its ports answers for its own addresses only, and speaks of nothing by itself
/// as far as the kernel can be kept from that.
fn tester(bench: &Bench) -> Result<WiredHost, LabError> {
    let name = HostName::from(TESTER);
    let rate = bench.link_of(&name).rate;
    let interfaces: Vec<_> = (0..bench.tester_ports).map(port_name).collect();
    let tester = WiredHost { tests: true, ..WiredHost::new(name, rate, &interfaces)? };
    let quiet = inside(&tester.namespace, || {
        for (setting, value) in [
            ("ipv4/conf/all/arp_ignore", "1"),
            ("ipv4/conf/all/arp_announce", "2"),
            ("ipv6/conf/default/router_solicitations", "0"),
            // No link-local addresses: nobody announces them then.
            ("ipv6/conf/default/addr_gen_mode", "1"),
        ] {
            let _ = set_network_setting(setting, value);
        }
        Ok(())
    });
    quiet.map_err(tester.building("the settings"))?;
    Ok(tester)
}

/// The tester's port of that number.
fn port_name(number: u8) -> String {
    format!("p{number}")
}

impl LinkEnd<'_> {
    /// Brings this end up for raw frames, which pass no queueing discipline: only an end that joins what it receives
    /// takes them where it has no XDP program. Plants its losses; gives its number.
    fn set_up_for_frames(&self, losses: &[(Way, Ratio)]) -> Result<u32, linerate_sys::Error> {
        let (mut route, ethtool) = inside(self.namespace, || Ok((Route::open()?, Ethtool::open()?)))?;
        let link = route.index_of(&self.interface)?;
        // Up first: an interface that is down notes the wish, and takes no frames later all the same.
        route.set_up(link)?;
        ethtool.send_frame_by_frame(&self.interface)?;
        if !losses.is_empty() {
            route.drop_by_chance(link, losses)?;
        }
        Ok(link)
    }

    /// Leaves no checksum to the other end, which an XDP device would not know about, and takes what that device sends.
    fn take_from_reference(&self) -> Result<(), linerate_sys::Error> {
        let ethtool = inside(self.namespace, Ethtool::open)?;
        ethtool.send_whole_checksums(&self.interface)?;
        ethtool.send_frame_by_frame(&self.interface)
    }

    /// Shapes this end, plants its losses and brings it up; gives its number.
    fn set_up(
        &self,
        rate: Option<BitRate>,
        mtu: u32,
        losses: &[(Way, Ratio)],
        by_itself: bool,
    ) -> Result<u32, linerate_sys::Error> {
        let (mut route, ethtool) = inside(self.namespace, || Ok((Route::open()?, Ethtool::open()?)))?;
        let link = route.index_of(&self.interface)?;
        if let Some(rate) = rate {
            route.shape(link, &ethernet::shape(self.end, rate, mtu))?;
        }
        if !losses.is_empty() {
            route.drop_by_chance(link, losses)?;
        }
        route.set_up(link)?;
        // Every frame is to pass by itself where frames are timed or lost. Not before the end is up: one that is down
        // notes the wish to join what it receives, and takes nothing from XDP programs later all the same.
        if by_itself {
            ethtool.send_frame_by_frame(&self.interface)?;
        }
        Ok(link)
    }
}

/// An empty namespace with loopback up, whose interfaces use IPv6 addresses at once and ask nobody for more.
fn namespace_of(owner: &str) -> Result<NetNamespace, LabError> {
    let namespace_or_error = NetNamespace::new().and_then(|namespace| {
        inside(&namespace, || {
            for (setting, value) in [("disable_ipv6", "0"), ("accept_dad", "0"), ("accept_ra", "0")] {
                for interfaces in ["all", "default"] {
                    // Where settings are read-only (in some containers), the defaults have to do.
                    let _ = set_network_setting(&format!("ipv6/conf/{interfaces}/{setting}"), value);
                }
            }
            let mut route = Route::open()?;
            let loopback = route.index_of("lo")?;
            route.set_up(loopback)
        })?;
        Ok(namespace)
    });
    namespace_or_error.map_err(LabError::at(format!("make the network namespace of {owner}")))
}

/// Makes the calling thread's namespace that of a device.
fn prepare_device(kind: DeviceKind) -> Result<Route, linerate_sys::Error> {
    match kind {
        DeviceKind::Router => {
            set_network_setting("ipv4/ip_forward", "1")?;
            set_network_setting("ipv6/conf/all/forwarding", "1")?;
        }
        _ => {
            // A switch says nothing of its own, and shows its frames to no packet filter.
            for quiet in ["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"] {
                let _ = set_network_setting(quiet, "1");
            }
            for family in ["iptables", "ip6tables", "arptables"] {
                let _ = set_network_setting(&format!("bridge/bridge-nf-call-{family}"), "0");
            }
        }
    }
    Route::open()
}

/// Adds a bridge with the device's address. Returns its number.
fn add_bridge(route: &mut Route) -> Result<u32, linerate_sys::Error> {
    route.add_link("bridge", BRIDGE)?;
    let bridge = route.index_of(BRIDGE)?;
    give(route, bridge, address::DEVICE.into())?;
    route.set_up(bridge)?;
    Ok(bridge)
}

/// Adds an address; false where the kernel has no such family.
fn give(route: &mut Route, link: u32, address: IpAddr) -> Result<bool, linerate_sys::Error> {
    match route.add_address(link, address, address::prefix(address)) {
        Ok(()) => Ok(true),
        // IPv6 is off (EACCES) or not built in (EOPNOTSUPP).
        Err(error)
            if address.is_ipv6()
                && matches!(error.source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The pairs of whom the second did not hear the first within `longest`.
///
/// Each host is heard by all others, or by the next ones if there are many.
fn hear_all(ends: &[(&WiredHost, UdpSocket, SocketAddr)], longest: Duration) -> BTreeSet<(usize, usize)> {
    let listeners = (MAX_NEIGHBOURS / ends.len().max(1)).min(ends.len().saturating_sub(1));
    let mut silent = BTreeSet::new();
    for from in 0..ends.len() {
        for step in 1..=listeners {
            silent.insert((from, (from + step) % ends.len()));
        }
    }
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !silent.is_empty() && start.elapsed() < longest {
        for (from, to) in &silent {
            // The answer to a failure is to try again.
            let _ = ends[*from].1.send_to(b"linerate", ends[*to].2);
        }
        thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(50));
        for (to, (_, socket, _)) in ends.iter().enumerate() {
            while let Ok((_, sender)) = socket.recv_from(&mut [0; 8]) {
                if let Some(from) = ends.iter().position(|(_, _, address)| *address == sender) {
                    silent.remove(&(from, to));
                }
            }
        }
    }
    silent
}

/// Runs `work` inside a namespace.
fn inside<T: Send>(
    namespace: &NetNamespace,
    work: impl FnOnce() -> Result<T, linerate_sys::Error> + Send,
) -> Result<T, linerate_sys::Error> {
    namespace.enter(work)?
}
