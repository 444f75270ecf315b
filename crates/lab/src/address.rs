//! Which host has which address: those set aside for benchmarks, 198.18.0.0/15 (RFC 2544 appendix C.2.2) and 2001:2::/48
//! (RFC 5180 section 8), which no other network uses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of one host's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// The host's, IPv4 first.
    pub(crate) host: [IpAddr; 2],
    /// The router's on that link.
    pub(crate) gateway: Option<[IpAddr; 2]>,
}

/// Bits of the network's part, by family.
pub(crate) fn prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

/// Of the host at `index` (from zero) in the one network of a switch or a cable.
pub(crate) fn in_one_network(index: usize) -> Addresses {
    let number = index as u8 + 1;
    Addresses { host: [v4(0, number), v6(0, number)], gateway: None }
}

/// Of the host at `index` (from zero) in a network of its own.
pub(crate) fn behind_router(index: usize) -> Addresses {
    let network = index as u8 + 1;
    Addresses { host: [v4(network, 2), v6(network, 2)], gateway: Some([v4(network, 1), v6(network, 1)]) }
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
    }
}
