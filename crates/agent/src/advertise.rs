//! What the agent's URL calls this host when nobody said.

use linerate_sys::netlink::Route;
use linerate_sys::system::host_name;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses for documentation (RFC 5737, RFC 3849): never near, so the way to them is the way to the world.
const FAR_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const FAR_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// The host part of the URL of an agent that listens on `address`.
///
/// A link-local address has the interface of this host; on another host the one that leads here stands in its place.
pub(crate) fn host(address: SocketAddr) -> String {
    let shown = choose(address.ip().to_canonical(), source, own, host_name);
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            let links = Route::open().and_then(|mut route| route.links()).unwrap_or_default();
            let zone = links.into_iter().find(|link| link.index == v6.scope_id());
            zone.map_or(shown, |zone| format!("{}%{}", v6.ip(), zone.name))
        }
        _ => shown,
    }
}

/// An agent on an address is reached by it. One on all addresses shows what `source` has towards the world; without a
/// way to the world one of its `own`, as in a closed test network; else its `name`, else loopback, which at least this
/// machine reaches.
fn choose(
    address: IpAddr,
    source: impl Fn(IpAddr) -> Option<IpAddr>,
    own: impl FnOnce() -> Vec<IpAddr>,
    name: impl FnOnce() -> Option<String>,
) -> String {
    if !address.is_unspecified() {
        return address.to_string();
    }
    let (far, loopback): (&[IpAddr], IpAddr) = match address {
        IpAddr::V4(_) => (&[FAR_V4], Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => (&[FAR_V6, FAR_V4], Ipv6Addr::LOCALHOST.into()),
    };
    let near = || {
        let own = own();
        far.iter().find_map(|far| own.iter().copied().find(|own| own.is_ipv4() == far.is_ipv4()))
    };
    let shown = far.iter().find_map(|far| source(*far)).or_else(near).map(|address| address.to_string());
    shown.or_else(name).unwrap_or_else(|| loopback.to_string())
}

/// The address this host would send from towards `far`. Connecting a UDP socket sends nothing.
fn source(far: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if far.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(far, 9)).ok()?;
    let source = socket.local_addr().ok()?.ip();
    is_of_use(source).then_some(source)
}

/// The addresses of this host's interfaces that others can use.
fn own() -> Vec<IpAddr> {
    let all = Route::open().and_then(|mut route| route.addresses()).unwrap_or_default();
    all.into_iter().map(|found| found.address).filter(|address| is_of_use(*address)).collect()
}

/// Returns whether others can use an address, without naming an interface of their own.
fn is_of_use(address: IpAddr) -> bool {
    let near = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(near || address.is_unspecified() || address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_on_all_addresses_shows_one_that_others_can_use() {
        let (v4, v6) = ("198.18.0.7", "2001:2::7");
        let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
        let (any4, any6) = (Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
        let both = |far: IpAddr| Some(parse(if far == FAR_V4 { v4 } else { v6 }));
        let only_v4 = |far: IpAddr| (far == FAR_V4).then(|| parse(v4));
        let only_v6 = |far: IpAddr| (far == FAR_V6).then(|| parse(v6));
        let none = |_| None;
        let name = || Some("box".to_owned());
        let nameless = || None;
        let alone = Vec::new;
        let near = || vec![parse("198.18.0.9")];
        for (shown, expected) in [
            (choose(any4, both, near, name), v4),
            (choose(any6, both, near, name), v6),
            (choose(any6, only_v4, near, name), v4),
            (choose(any4, only_v6, alone, name), "box"),
            (choose(any6, none, alone, name), "box"),
            (choose(any4, none, near, name), "198.18.0.9"),
            (choose(any6, none, near, name), "198.18.0.9"),
            (choose(any4, none, || vec![parse(v6)], name), "box"),
            (choose(any4, none, alone, nameless), "127.0.0.1"),
            (choose(any6, none, alone, nameless), "::1"),
            (choose(parse("198.18.0.1"), both, near, name), "198.18.0.1"),
            (choose(parse("::1"), both, near, name), "::1"),
        ] {
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn this_host_never_shows_the_unspecified_address() {
        for any in [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()] {
            let any: IpAddr = any;
            let shown = host(SocketAddr::new(any, 4_747));
            assert!(
                !shown.is_empty() && !shown.parse().is_ok_and(|address: IpAddr| address.is_unspecified()),
                "{shown}"
            );
        }
    }
}
