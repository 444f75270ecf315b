//! Zones of link-local IPv6 addresses (RFC 4007): the interface of this host to which an address belongs.

use linerate_sys::netlink::Route;
use std::net::{IpAddr, SocketAddr};

/// Adds the interface to a link-local IPv6 `address` of this host without one. Other addresses stay as they are.
pub fn own_with_zone(address: SocketAddr) -> SocketAddr {
    with_zone(address, || {
        let addresses = Route::open().and_then(|mut route| route.addresses()).unwrap_or_default();
        addresses.into_iter().find(|local| local.address == address.ip()).map(|local| local.link)
    })
}

/// Adds `zone` to a link-local IPv6 `address` without one. Other addresses stay as they are.
pub fn with_zone(address: SocketAddr, zone: impl FnOnce() -> Option<u32>) -> SocketAddr {
    let SocketAddr::V6(mut v6) = address else { return address };
    if v6.ip().is_unicast_link_local()
        && v6.scope_id() == 0
        && let Some(zone) = zone()
    {
        v6.set_scope_id(zone);
    }
    v6.into()
}

/// Returns the only interface of this host with a link-local address, without loopback.
///
/// Returns `None` if there are several or no such interfaces.
pub fn only_zone() -> Option<u32> {
    let addresses = Route::open().and_then(|mut route| route.addresses()).ok()?;
    let mut links = addresses
        .into_iter()
        .filter(|local| matches!(local.address, IpAddr::V6(v6) if v6.is_unicast_link_local()))
        .map(|local| local.link);
    let first = links.next()?;
    links.all(|link| link == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_link_local_addresses_get_a_zone() {
        for (text, expected) in [
            ("[fe80::1]:5", "[fe80::1%7]:5"),
            ("[fe80::1%3]:5", "[fe80::1%3]:5"),
            ("[2001:db8::1]:5", "[2001:db8::1]:5"),
            ("[::1]:5", "[::1]:5"),
            ("169.254.0.1:5", "169.254.0.1:5"),
        ] {
            assert_eq!(with_zone(text.parse().expect("an address"), || Some(7)).to_string(), expected);
        }
        assert_eq!(with_zone("[fe80::1]:5".parse().expect("an address"), || None).to_string(), "[fe80::1]:5");
    }
}
