//! Chain of routers between two hosts. A link with limits leads through two ports in the namespace of the path's process.

use super::{DropPoint, HEADERS, INTERFACE, LinkEnd, WiredHost, Wiring, give, inside, prepare_device};
use crate::LabError;
use crate::linux::address::Addresses;
use crate::linux::bench::{AnswerAddress, Bench, ChainWay, DEVICE, DeviceKind, HostInterface, IcmpRate, RouterAnswers};
use crate::linux::chain::{Chain, ChainLink, ChainNode};
use crate::linux::ethernet::End;
use crate::linux::path::{PathLimits, PathPlan, PlannedPort};
use crate::linux::slow_router::SlowRouter;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_sys::namespace::{NetNamespace, network_setting, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_units::Nanos;
use std::io;

/// Settings of a router.
const ROUTER_SETTINGS: [(&str, &str); 6] = [
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    // Flows share parallel routers by their addresses and ports.
    ("ipv4/fib_multipath_hash_policy", "1"),
    ("ipv6/fib_multipath_hash_policy", "1"),
    // Parallel routers make ways asymmetric.
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
];

/// Types of ICMP and ICMPv6 that the kernel limits where a process answers expired packets.
const TIME_EXCEEDED_MASK: &str = "2048";
const TIME_EXCEEDED_V6: &str = "3";
/// Milliseconds between two answers that no lab lasts; six times as much is still a number of 32 bits.
const NEVER: &str = "300000000";
/// ICMP errors per second that no lab sends.
const ICMP_UNLIMITED: u32 = 1_000_000;

impl Wiring {
    /// Joins the two hosts by a chain of routers.
    pub(super) fn join_by_chain(&mut self, bench: &Bench) -> Result<(), LabError> {
        let Some(chain) = bench.chain() else { return Ok(()) };
        let links = chain.links();
        for node in chain.routers() {
            self.routers.push(new_router(node)?);
        }
        if links.iter().any(|link| bench.has_path(*link)) {
            let device = WiredHost::new(HostName::from(DEVICE), None, &[])?;
            inside(&device.namespace, || prepare_device(DeviceKind::Path(PathLimits::default())))
                .map_err(LabError::at("set up the limits of the links"))?;
            self.device = Some(device);
        }
        for link in &links {
            self.make_link(bench, &chain, *link).map_err(LabError::at(format!("make the link {link} of the chain")))?;
        }
        for (node, router) in chain.routers().into_iter().zip(&self.routers) {
            set_up_router(&chain, node, router, &bench.router_answers(node))
                .map_err(LabError::at(format!("set up router {node}")))?;
        }
        if let [first, .., last] = links[..] {
            let [address, gateway] = first.addresses();
            self.set_up_host(bench, 0, first, &Addresses { host: address, gateway: Some(gateway) })?;
            let [gateway, address] = last.addresses();
            self.set_up_host(bench, 1, last, &Addresses { host: address, gateway: Some(gateway) })?;
        }
        Ok(())
    }

    /// Gives a host its addresses, and plants its faults.
    fn set_up_host(
        &mut self,
        bench: &Bench,
        index: usize,
        link: ChainLink,
        addresses: &Addresses,
    ) -> Result<(), LabError> {
        let host = &self.hosts[index];
        let configured = host.give(INTERFACE, addresses).map_err(host.building("the addresses"))?;
        let interface = HostInterface { namespace: &host.namespace, name: INTERFACE, mtu: bench.chain_mtu(link) };
        if bench.plant(&host.name, &interface)? {
            let link = interface.number().map_err(host.building("the interface"))?;
            self.drop_points.push(DropPoint { host: host.name.clone(), inside: Some(index), link });
        }
        self.hosts[index].addresses = configured;
        Ok(())
    }

    /// Returns the plans of the slow routers, each with its namespace.
    pub(crate) fn slow_routers(&self, bench: &Bench) -> Result<Vec<(SlowRouter, &NetNamespace)>, LabError> {
        let nodes = bench.chain().map(|chain| chain.routers()).unwrap_or_default();
        let mut slow = Vec::new();
        for (node, router) in nodes.into_iter().zip(&self.routers) {
            let answers = bench.router_answers(node);
            let Some(delay) = answers.reply_delay else { continue };
            let intervals = match answers.icmp_rate {
                // Every namespace begins with the same limits.
                IcmpRate::Kernel => inside(&self.hosts[0].namespace, || {
                    Ok([milliseconds("ipv4/icmp_ratelimit")?, milliseconds("ipv6/icmp/ratelimit")?])
                })
                .map_err(LabError::at("read the kernel's limits of ICMP"))?,
                IcmpRate::Unlimited => [0; 2],
                IcmpRate::PerSecond(rate) => [u64::from(1_000 / rate); 2],
            };
            let plan = SlowRouter {
                delay: delay.get(),
                jitter: answers.reply_jitter.unwrap_or_default().get(),
                intervals: intervals.map(|interval| Nanos::from_millis(interval).get()),
                odd: answers.address == AnswerAddress::Odd,
            };
            slow.push((plan, &router.namespace));
        }
        Ok(slow)
    }

    /// Makes one link, with the ports of a path in its middle if it has limits.
    fn make_link(&self, bench: &Bench, chain: &Chain, link: ChainLink) -> Result<(), Error> {
        let mtu = bench.chain_mtu(link);
        let host = bench.host_at(link);
        let rate = host.map_or(bench.link.rate, |host| bench.link_of(host).rate);
        let left = self.end(chain, link.from, link.to);
        let right = self.end(chain, link.to, link.from);
        let Some(device) = self.device.as_ref().filter(|_| bench.has_path(link)) else {
            let by_itself = rate.is_some() || host.is_some_and(|host| bench.faults_need_frame_by_frame(host));
            let mut route = inside(left.namespace, Route::open)?;
            route.add_veth(&left.interface, &right.interface, right.namespace, mtu)?;
            left.set_up(rate, mtu, &[], by_itself)?;
            right.set_up(rate, mtu, &[], by_itself)?;
            return Ok(());
        };
        let mut route = inside(&device.namespace, Route::open)?;
        for (end, way) in [(left, ChainWay::Return), (right, ChainWay::Forward)] {
            let port = LinkEnd { namespace: &device.namespace, interface: port_name(link, way), end: End::Device };
            route.add_veth(&port.interface, &end.interface, end.namespace, mtu)?;
            let port = port.set_up(None, mtu, &[], true)?;
            end.set_up(rate, mtu, &[], true)?;
            route.disable_gro(port)?;
            end.take_from_reference()?;
        }
        Ok(())
    }

    /// Returns the end at `node` of the link to `other`.
    fn end(&self, chain: &Chain, node: ChainNode, other: ChainNode) -> LinkEnd<'_> {
        if let Some(index) = chain.routers().into_iter().position(|router| router == node) {
            LinkEnd { namespace: &self.routers[index].namespace, interface: interface_to(other), end: End::Device }
        } else {
            let host = &self.hosts[usize::from(node == chain.last())];
            LinkEnd { namespace: &host.namespace, interface: INTERFACE.to_owned(), end: End::Host }
        }
    }
}

impl Bench {
    /// Returns the plan of the path's process: two ports for each link with limits, in a network of their own.
    pub(super) fn chain_plan(&self) -> PathPlan {
        let links = self.chain().map(|chain| chain.links()).unwrap_or_default();
        let mut ports = Vec::new();
        let mut longest = 0;
        for (network, link) in links.into_iter().enumerate().filter(|(_, link)| self.has_path(*link)) {
            longest = longest.max(self.chain_mtu(link));
            for way in [ChainWay::Forward, ChainWay::Return] {
                let interface = port_name(link, way);
                let limits = self.link_limits(link, way);
                ports.push(PlannedPort { host: HostName(interface.clone()), interface, network, limits });
            }
        }
        // The rate of a link holds at its ends.
        PathPlan { ports, longest: longest as usize + HEADERS, bypass_queues: true, hub: None }
    }

    /// Returns whether a link of a chain leads through a path.
    fn has_path(&self, link: ChainLink) -> bool {
        [ChainWay::Forward, ChainWay::Return].iter().any(|way| self.link_limits(link, *way) != PathLimits::default())
    }
}

/// Makes the namespace of a router.
fn new_router(node: ChainNode) -> Result<WiredHost, LabError> {
    let router = WiredHost::new(HostName(format!("router-{node}")), None, &[])?;
    let settings = inside(&router.namespace, || {
        for (setting, value) in ROUTER_SETTINGS {
            set_network_setting(setting, value)?;
        }
        Ok(())
    });
    settings.map_err(LabError::at(format!("set up router {node}")))?;
    Ok(router)
}

/// Gives a router the addresses of its links, routes to all other networks, and its way to send ICMP errors.
fn set_up_router(chain: &Chain, node: ChainNode, router: &WiredHost, answers: &RouterAnswers) -> Result<(), Error> {
    let mut route = inside(&router.namespace, Route::open)?;
    let mut has_v6 = false;
    for link in chain.links().into_iter().filter(|link| link.joins(node)) {
        let [left, right] = link.addresses();
        let (own, neighbour) = if link.from == node { (left, link.to) } else { (right, link.from) };
        let interface = route.index_of(&interface_to(neighbour))?;
        for address in own {
            if give(&mut route, interface, address)? {
                has_v6 |= address.is_ipv6();
            }
        }
    }
    for way in chain.routes(node) {
        if has_v6 || way.destination.is_ipv4() {
            route.add_route(way.destination, way.prefix, &way.gateways, None)?;
        }
    }
    if answers.address == AnswerAddress::Odd {
        let loopback = route.index_of("lo")?;
        let sources = node.odd_addresses();
        for source in sources {
            give(&mut route, loopback, source)?;
        }
        for way in chain.routes_to_hosts(node) {
            let [v4, v6] = sources;
            let source = if way.destination.is_ipv4() { v4 } else { v6 };
            if has_v6 || source.is_ipv4() {
                route.add_route(way.destination, way.prefix, &way.gateways, Some(source))?;
            }
        }
    }
    if answers.silent {
        route.drop_own_icmp(false)?;
        if has_v6 {
            route.drop_own_icmp(true)?;
        }
    }
    inside(&router.namespace, || {
        limit_icmp(answers.icmp_rate)?;
        if answers.reply_delay.is_some() {
            // A process answers expired packets instead of the kernel, and the kernel all others.
            for (setting, value) in [
                ("ipv4/icmp_ratemask", TIME_EXCEEDED_MASK),
                ("ipv4/icmp_ratelimit", NEVER),
                ("ipv6/icmp/ratemask", TIME_EXCEEDED_V6),
                ("ipv6/icmp/ratelimit", NEVER),
            ] {
                set_network_setting(setting, value)?;
            }
        }
        Ok(())
    })
}

/// Returns a setting of the calling thread's namespace that is a number of milliseconds. Without IPv6 there is none.
fn milliseconds(setting: &str) -> Result<u64, Error> {
    match network_setting(setting) {
        Ok(text) => Ok(text.trim().parse().unwrap_or_default()),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Limits the ICMP errors of the calling thread's namespace.
fn limit_icmp(rate: IcmpRate) -> Result<(), Error> {
    // Milliseconds between two errors to one host.
    let interval = match rate {
        IcmpRate::Kernel => return Ok(()),
        IcmpRate::Unlimited => 0,
        IcmpRate::PerSecond(rate) => 1_000 / rate,
    };
    set_network_setting("ipv4/icmp_ratelimit", &interval.to_string())?;
    set_network_setting("ipv6/icmp/ratelimit", &interval.to_string())?;
    if rate == IcmpRate::Unlimited {
        // Limits of all hosts together. Some kernels have them for the whole machine, and refuse.
        for setting in ["ipv4/icmp_msgs_per_sec", "ipv4/icmp_msgs_burst"] {
            let _ = set_network_setting(setting, &ICMP_UNLIMITED.to_string());
        }
    }
    Ok(())
}

/// Returns the name of a router's interface at the link to `node`.
fn interface_to(node: ChainNode) -> String {
    format!("to-{node}")
}

/// Returns the name of the path's port by which frames leave a link: nodes in the order in which frames pass them.
fn port_name(link: ChainLink, way: ChainWay) -> String {
    match way {
        ChainWay::Forward => link.to_string(),
        ChainWay::Return => format!("{}-{}", link.to, link.from),
    }
}
