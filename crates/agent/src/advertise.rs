//! What the agent's URL calls this host when nobody said.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses for documentation (RFC 5737, RFC 3849): never near, so the way to them is the way to the world.
const FAR_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const FAR_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// The host part of the URL of an agent that listens on `address`.
pub(crate) fn host(address: IpAddr) -> String {
    choose(address, source, hostname)
}

/// An agent on an address is reached by it. One on all addresses shows what `source` has towards the world, else its
/// `name`, else loopback, which at least this machine reaches.
fn choose(address: IpAddr, source: impl Fn(IpAddr) -> Option<IpAddr>, name: impl FnOnce() -> Option<String>) -> String {
    if !address.is_unspecified() {
        return address.to_string();
    }
    let (far, loopback): (&[IpAddr], IpAddr) = match address {
        IpAddr::V4(_) => (&[FAR_V4], Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => (&[FAR_V6, FAR_V4], Ipv6Addr::LOCALHOST.into()),
    };
    let shown = far.iter().find_map(|far| source(*far)).map(|address| address.to_string());
    shown.or_else(name).unwrap_or_else(|| loopback.to_string())
}

/// The address this host would send from towards `far`. Connecting a UDP socket sends nothing.
fn source(far: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = if far.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(far, 9)).ok()?;
    let source = socket.local_addr().ok()?.ip();
    // Others cannot use these, or not without naming their own interface.
    let of_no_use = source.is_unspecified()
        || source.is_loopback()
        || matches!(source, IpAddr::V6(address) if address.is_unicast_link_local());
    (!of_no_use).then_some(source)
}

fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned();
    (!name.is_empty() && name != "(none)").then_some(name)
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
        for (shown, expected) in [
            (choose(any4, both, name), v4),
            (choose(any6, both, name), v6),
            (choose(any6, only_v4, name), v4),
            (choose(any4, only_v6, name), "box"),
            (choose(any6, none, name), "box"),
            (choose(any4, none, nameless), "127.0.0.1"),
            (choose(any6, none, nameless), "::1"),
            (choose(parse("198.18.0.1"), both, name), "198.18.0.1"),
            (choose(parse("::1"), both, name), "::1"),
        ] {
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn this_host_never_shows_the_unspecified_address() {
        for any in [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()] {
            let shown = host(any);
            assert!(
                !shown.is_empty() && !shown.parse().is_ok_and(|address: IpAddr| address.is_unspecified()),
                "{shown}"
            );
        }
    }
}
