//! Namespaces and links of a fleet's lab.

use super::options::{FleetLabOptions, Site};
use linerate_sys::Error;
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_sys::shaping::EthernetShape;
use linerate_units::BitRate;
use std::net::{IpAddr, Ipv4Addr};

/// Data interface of a host.
pub(super) const DATA: &str = "eth0";
/// Interface of a host, and of the servers, for everything but trials.
const CONTROL: &str = "ctl0";
/// Bridge of that network.
const CONTROL_BRIDGE: &str = "br-control";
/// Bridge that joins the sites.
const CORE_BRIDGE: &str = "br-core";
const MTU: u32 = 1_500;
/// Ethernet header and one VLAN tag.
const HEADERS: u16 = 14 + 4;
const PREFIX: u8 = 16;

/// Address of nats-server in the control network.
pub(super) const BROKER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 1);
const COMMAND_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 2);

/// A host of the lab.
pub(super) struct LabHost {
    pub(super) name: String,
    pub(super) site: String,
    /// Address for trials.
    pub(super) address: Ipv4Addr,
    pub(super) namespace: NetNamespace,
}

/// All namespaces and links. The kernel removes them when the last descriptor and process are gone.
pub(super) struct Network {
    /// All bridges: of the sites, between them, and of the control network.
    switches: NetNamespace,
    /// Namespace of nats-server.
    pub(super) broker: NetNamespace,
    /// Namespace of `linerate fleet serve` and of commands.
    pub(super) command: NetNamespace,
    pub(super) hosts: Vec<LabHost>,
}

impl Network {
    /// Makes the namespaces and the links.
    pub(super) fn build(options: &FleetLabOptions) -> Result<Self, Error> {
        let switches = namespace()?;
        let mut route = switches.enter(|| {
            // Bridges hide their frames from packet filters.
            for family in ["iptables", "ip6tables", "arptables"] {
                let _ = set_network_setting(&format!("bridge/bridge-nf-call-{family}"), "0");
            }
            for interfaces in ["all", "default"] {
                let _ = set_network_setting(&format!("ipv6/conf/{interfaces}/disable_ipv6"), "1");
            }
            Route::open()
        })??;
        let control = bridge(&mut route, CONTROL_BRIDGE)?;
        let core = bridge(&mut route, CORE_BRIDGE)?;
        let mut network = Self { switches, broker: namespace()?, command: namespace()?, hosts: Vec::new() };
        join(&mut route, control, "broker", &network.broker, (CONTROL, BROKER_ADDRESS), None)?;
        join(&mut route, control, "command", &network.command, (CONTROL, COMMAND_ADDRESS), None)?;
        for (site_index, site) in options.sites.iter().enumerate() {
            let site_bridge = bridge(&mut route, &format!("br-{}", site.name))?;
            network.join_uplink(&mut route, site, site_bridge, core)?;
            for number in 0..site.hosts {
                let host = network.add_host(&mut route, options, site_index, number, [site_bridge, control])?;
                network.hosts.push(host);
            }
        }
        Ok(network)
    }

    /// Makes the link between a site's bridge and the core.
    fn join_uplink(&self, route: &mut Route, site: &Site, site_bridge: u32, core: u32) -> Result<(), Error> {
        let (up, down) = (format!("up-{}", site.name), format!("dn-{}", site.name));
        route.add_veth(&up, &down, &self.switches, MTU)?;
        for (name, bridge) in [(up, site_bridge), (down, core)] {
            let link = route.index_of(&name)?;
            route.shape(link, &shape(site.uplink))?;
            route.set_bridge(link, bridge)?;
            route.set_up(link)?;
        }
        Ok(())
    }

    fn add_host(
        &self,
        route: &mut Route,
        options: &FleetLabOptions,
        site_index: usize,
        number: usize,
        [site_bridge, control]: [u32; 2],
    ) -> Result<LabHost, Error> {
        let site = &options.sites[site_index];
        let name = site.host(number);
        let namespace = namespace()?;
        let rate = options.slow_hosts.get(&name).copied().unwrap_or(options.host_rate);
        // More than 250 hosts of a site do not fit a machine.
        let [third, fourth] = [site_index, number].map(|index| u8::try_from(index + 1).unwrap_or(u8::MAX));
        let address = Ipv4Addr::new(10, 1, third, fourth);
        join(route, site_bridge, &format!("d-{name}"), &namespace, (DATA, address), Some(rate))?;
        join(route, control, &format!("c-{name}"), &namespace, (CONTROL, Ipv4Addr::new(10, 2, third, fourth)), None)?;
        Ok(LabHost { name, site: site.name.clone(), address, namespace })
    }

    /// Takes the link of nats-server down, or up again.
    pub(super) fn set_broker_link(&self, is_up: bool) -> Result<(), Error> {
        let mut route = self.switches.enter(Route::open)??;
        let link = route.index_of("broker")?;
        if is_up { route.set_up(link) } else { route.set_down(link) }
    }
}

/// Makes a namespace with loopback up.
fn namespace() -> Result<NetNamespace, Error> {
    let namespace = NetNamespace::new()?;
    namespace.enter(|| {
        let mut route = Route::open()?;
        let loopback = route.index_of("lo")?;
        route.set_up(loopback)
    })??;
    Ok(namespace)
}

/// Makes a bridge and returns its number.
fn bridge(route: &mut Route, name: &str) -> Result<u32, Error> {
    route.add_link("bridge", name)?;
    let bridge = route.index_of(name)?;
    route.set_up(bridge)?;
    Ok(bridge)
}

/// Joins a namespace to a bridge by a link with `port` at the bridge and an interface with an address in the namespace. Both
/// ends send at `rate`.
fn join(
    route: &mut Route,
    bridge: u32,
    port: &str,
    namespace: &NetNamespace,
    (interface, address): (&str, Ipv4Addr),
    rate: Option<BitRate>,
) -> Result<(), Error> {
    route.add_veth(port, interface, namespace, MTU)?;
    let link = route.index_of(port)?;
    if let Some(rate) = rate {
        route.shape(link, &shape(rate))?;
    }
    route.set_bridge(link, bridge)?;
    route.set_up(link)?;
    let mut inside = namespace.enter(Route::open)??;
    let end = inside.index_of(interface)?;
    if let Some(rate) = rate {
        inside.shape(end, &shape(rate))?;
    }
    inside.add_address(end, IpAddr::V4(address), PREFIX)?;
    inside.set_up(end)
}

/// Returns the shape of an end that sends at `rate`: a burst of 4 ms, since an end of the lab is late whenever its core is, and
/// a queue of 100 ms.
fn shape(rate: BitRate) -> EthernetShape {
    let longest_frame = u16::try_from(MTU).unwrap_or(u16::MAX - HEADERS) + HEADERS;
    let bytes_in = |milliseconds: u64| rate.get() / 8 * milliseconds / 1_000;
    let burst_bytes = bytes_in(4).max(2 * (u64::from(longest_frame) + 24));
    EthernetShape {
        rate,
        longest_frame,
        burst_bytes: u32::try_from(burst_bytes).unwrap_or(u32::MAX),
        queue_bytes: u32::try_from(bytes_in(100).max(128 << 10)).unwrap_or(u32::MAX),
    }
}
