//! Addresses of hosts, from the ranges for benchmarks that no other network uses: 198.18.0.0/15 (RFC 2544 appendix
//! C.2.2) and 2001:2::/48 (RFC 5180 section 8).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address of the device itself, at which every device that answers echo requests does so. It is in the one network of a
/// switch and in no network of a router. `bpf/reference.bpf.c` has it too.
pub(crate) const DEVICE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 254);
/// 198.19.0.0/16 is for the tester's ports behind a router, 4,096 addresses each.
const TESTERS: u8 = 19;

/// The addresses of one host's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// The host's, IPv4 first.
    pub(crate) host: [IpAddr; 2],
    /// The router's on that link.
    pub(crate) gateway: Option<[IpAddr; 2]>,
}

/// Returns the prefix length of the network. A port of the tester has room for thousands of simulated hosts.
pub(crate) fn prefix(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(v4) if v4.octets()[1] == TESTERS => 20,
        IpAddr::V4(_) => 24,
        IpAddr::V6(_) => 64,
    }
}

/// Returns the addresses of the host at `index` (from zero) in the one network of a switch or a cable.
pub(crate) fn in_one_network(index: usize) -> Addresses {
    let number = index as u8 + 1;
    Addresses { host: [v4(0, number), v6(0, number)], gateway: None }
}

/// Returns the addresses of the host at `index` (from zero) in a network of its own.
pub(crate) fn behind_router(index: usize) -> Addresses {
    let network = index as u8 + 1;
    Addresses { host: [v4(network, 2), v6(network, 2)], gateway: Some([v4(network, 1), v6(network, 1)]) }
}

/// Returns the addresses of the tester's port `port` on a router, where the hosts and ports before it have `index`
/// networks.
pub(crate) fn port_behind_router(index: usize, port: usize) -> Addresses {
    let wide = |host| Ipv4Addr::new(198, TESTERS, port as u8 * 16, host).into();
    let Addresses { host: [_, host], gateway } = behind_router(index);
    Addresses { host: [wide(2), host], gateway: gateway.map(|[_, v6]| [wide(1), v6]) }
}

/// Returns the addresses with this number in a network of a chain, IPv4 first.
pub(crate) fn on_network(network: u8, number: u8) -> [IpAddr; 2] {
    [v4(network, number), v6(network, number)]
}

fn v4(network: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(198, 18, network, host).into()
}

fn v6(network: u8, host: u8) -> IpAddr {
    Ipv6Addr::new(0x2001, 2, 0, network.into(), 0, 0, 0, host.into()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stay_in_the_ranges_for_benchmarks() {
        assert_eq!(in_one_network(0).host.map(|a| a.to_string()), ["198.18.0.1", "2001:2::1"]);
        let routed = behind_router(3);
        assert_eq!(routed.host.map(|a| a.to_string()), ["198.18.4.2", "2001:2:0:4::2"]);
        assert_eq!(routed.gateway.expect("a router").map(|a| a.to_string()), ["198.18.4.1", "2001:2:0:4::1"]);
        assert_eq!(routed.host.map(prefix), [24, 64]);
        let last = port_behind_router(17, 15);
        assert_eq!(last.host.map(|a| a.to_string()), ["198.19.240.2", "2001:2:0:12::2"]);
        assert_eq!(last.gateway.expect("a router").map(|a| a.to_string()), ["198.19.240.1", "2001:2:0:12::1"]);
        assert_eq!(last.host.map(prefix), [20, 64]);
        assert_eq!(DEVICE.to_string(), "198.18.0.254");
    }
}
