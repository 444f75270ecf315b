//! Interfaces: which one carries an address.

use linerate_sys::netlink::Route;
use std::net::IpAddr;

/// The interface that has the local address `addr`.
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

/// The interface that carries packets between the addresses `local` and `peer`: the owner of `local`.
pub fn interface_between(local: IpAddr, _: IpAddr) -> Option<String> {
    interface_of(local)
}

fn named(route: &mut Route, index: u32) -> Option<String> {
    route.links().ok()?.into_iter().find(|link| link.index == index).map(|link| link.name)
}
