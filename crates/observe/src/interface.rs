//! Interfaces by the addresses that they carry.

use linerate_sys::interface::Link;
use linerate_sys::netlink::Route;
use std::net::IpAddr;

/// The interface that has the local address `addr`. Traffic between two addresses of one host does not cross it:
/// [`interface_towards`] tells.
pub fn interface_of(addr: IpAddr) -> Option<String> {
    let addr = addr.to_canonical();
    let mut route = Route::open().ok()?;
    let owner = match route.addresses().ok()?.iter().find(|own| own.address == addr) {
        Some(own) => own.link,
        // All of 127.0.0.0/8 is this host's (RFC 1122 section 3.2.1.3), whatever of it is configured.
        None if addr.is_loopback() => route.links().ok()?.iter().find(|link| link.loopback)?.index,
        None => return None,
    };
    named(&mut route, owner)
}

/// The interface by which packets to `peer` leave: loopback if `peer` is this host itself.
pub fn interface_towards(peer: IpAddr) -> Option<String> {
    let mut route = Route::open().ok()?;
    let outgoing = route.outgoing(peer.to_canonical()).ok()??;
    named(&mut route, outgoing)
}

/// The interface that carries packets between the addresses `local` and `peer`. It is the owner of `local`, unless that
/// is an interface without a wire (a router's loopback address): then it is the one by which packets to `peer` leave.
pub fn interface_between(local: IpAddr, peer: IpAddr) -> Option<String> {
    let owner = interface_of(local)?;
    let mut route = Route::open().ok()?;
    let is_inner = |link: &Link| link.name == owner && (link.loopback || link.kind == "dummy");
    match route.links().ok()?.iter().any(is_inner) {
        true => interface_towards(peer).or(Some(owner)),
        false => Some(owner),
    }
}

fn named(route: &mut Route, index: u32) -> Option<String> {
    route.links().ok()?.into_iter().find(|link| link.index == index).map(|link| link.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn loopback_carries_its_addresses() {
        let lo = Some(String::from("lo"));
        for address in ["127.0.0.1", "127.1.2.3", "::ffff:127.0.0.1"] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(interface_of(address), lo, "{address}");
            assert_eq!(interface_towards(address), lo, "{address}");
            assert_eq!(interface_between(address, address), lo, "{address}");
        }
        assert_eq!(interface_of(Ipv4Addr::new(198, 19, 255, 254).into()), None);
    }
}
