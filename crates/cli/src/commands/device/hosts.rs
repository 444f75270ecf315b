//! `linerate device hosts`: how many hosts the network behind the second port has room for.

use super::Common;
use super::plan::address;
use crate::exit::Failure;
use crate::output::say;
use linerate_model::PortInfo;
use std::net::IpAddr;

pub(super) const HELP: &str = "\
Examples:
  linerate device hosts --ports eth1,eth2 --gateway 198.18.0.1
  linerate device hosts --ports eth1,eth2 -6 --most 4096 --rate 50k

Ports: the first sends through the router, the hosts are behind the second, and
a third, if given, detects flooded frames.";

/// What only `--help-all` has room for.
pub(super) const LONG_HELP: &str = "\
More examples:
  linerate lab --device router -- device hosts --ports tester:p0,tester:p1,tester:p2

The hosts have the addresses after the second port's own, up to the end of its network or to the first address in use (a port's, \
or one of --gateway). The router must have the same network, with the same prefix length, at that port.

Use a lower --learn-rate for a router that resolves few neighbours per second. Use a higher one for a router that forgets \
them soon or has very many: three rounds over all hosts should take less than its ageing time.

The router of a lab is this kernel, with one neighbour table for all of its network namespaces: while the table is full, this \
machine resolves no new neighbours either.";

impl Common {
    /// As many of `most` hosts as the network of the second of `ports` has room for behind that port's address.
    pub(super) fn hosts_in_room(&self, ports: &[PortInfo], most: u32) -> Result<u32, Failure> {
        let ipv6 = self.between.family.is_v6();
        let [_, second, ..] = ports else { return Ok(most) };
        let own = address(1, second, ipv6);
        let prefix = if ipv6 { second.ipv6.map(|(_, prefix)| prefix) } else { second.ipv4.map(|(_, prefix)| prefix) };
        let taken = ports.iter().zip(0..).map(|(port, index)| address(index, port, ipv6));
        let room = room(own, prefix, taken.chain(self.between.gateway.iter().copied()));
        if room == 0 {
            return Err(Failure::usage(format!(
                "port {} has {own}, behind which its network has no address for a host: give it a lower one, or a wider network",
                second.interface
            )));
        }
        if room < most {
            say(&format!("linerate: the network of {} has room for {room} hosts behind {own}", second.interface));
        }
        Ok(most.min(room))
    }
}

/// Addresses behind `own` in its network of that `prefix`, up to the first that is `taken`.
fn room(own: IpAddr, prefix: Option<u8>, taken: impl Iterator<Item = IpAddr>) -> u32 {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    let width = if own.is_ipv4() { 32 } else { 128 };
    let own_bits = bits(own);
    // Only the last four bytes of an address are counted on (see `Vary`).
    let host_bits = u32::from(width - prefix.unwrap_or(0).min(width)).min(32);
    let last = own_bits | ((1u128 << host_bits) - 1);
    // IPv4's last is everyone's.
    let end = if own.is_ipv4() { last } else { last + 1 };
    let taken = taken.filter(|address| address.is_ipv4() == own.is_ipv4()).map(bits);
    let end = taken.filter(|address| *address > own_bits).fold(end, u128::min);
    u32::try_from(end.saturating_sub(own_bits + 1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_addresses_behind_the_ports_own() {
        let room = |own: &str, prefix, taken: &[&str]| {
            let read = |text: &&str| text.parse().expect("an address");
            room(read(&own), prefix, taken.iter().map(read))
        };
        assert_eq!(room("198.18.1.2", Some(24), &["198.18.0.9", "198.18.1.2", "198.18.1.1"]), 252);
        assert_eq!(room("198.18.1.2", Some(24), &["198.18.1.254", "198.18.1.10"]), 7);
        assert_eq!(room("198.18.1.2", Some(24), &["198.18.1.3"]), 0);
        assert_eq!([room("198.18.1.1", Some(31), &[]), room("198.18.1.254", Some(24), &[])], [0, 0]);
        assert_eq!(room("198.18.1.2", Some(32), &[]), 0);
        assert_eq!(room("198.19.16.2", Some(20), &["2001:2::9"]), 4_092);
        assert_eq!(room("2001:2::2", Some(64), &["2001:2::1:0"]), 65_533);
        assert_eq!(room("2001:2::2", Some(64), &[]), u32::MAX - 2);
    }
}
