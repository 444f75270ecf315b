//! Zones of link-local IPv6 addresses (RFC 4007): the interface of this host that an address belongs to.

use linerate_sys::netlink::Route;
use std::net::{IpAddr, SocketAddr};

/// Returns an own `address` with its interface, if it is a link-local one of IPv6 without. Any other address is returned as it is.
pub fn own_with_zone(address: SocketAddr) -> SocketAddr {
    with_zone(address, || {
        let own = Route::open().and_then(|mut route| route.addresses()).unwrap_or_default();
        own.into_iter().find(|own| own.address == address.ip()).map(|own| own.link)
    })
}

/// Returns `address` with `zone`, if it is a link-local one of IPv6 without a zone. Any other address is returned as it is.
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

/// Returns the interface by which this host alone can mean link-local addresses: the only one besides loopback that has one.
/// `None` if there are several, or none.
pub fn only_zone() -> Option<u32> {
    let own = Route::open().and_then(|mut route| route.addresses()).ok()?;
    let mut links = own
        .into_iter()
        .filter(|own| matches!(own.address, IpAddr::V6(v6) if v6.is_unicast_link_local()))
        .map(|own| own.link);
    let first = links.next()?;
    links.all(|link| link == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_link_local_addresses_get_a_zone() {
        let of = |text: &str| with_zone(text.parse().expect("an address"), || Some(7)).to_string();
        assert_eq!(of("[fe80::1]:5"), "[fe80::1%7]:5");
        for text in ["[fe80::1%3]:5", "[2001:db8::1]:5", "[::1]:5", "169.254.0.1:5"] {
            assert_eq!(of(text), text, "it has one, or needs none");
        }
        assert_eq!(with_zone("[fe80::1]:5".parse().expect("an address"), || None).to_string(), "[fe80::1]:5");
    }
}
