//! Whom a port's frames meet besides the device: the interfaces that share its link.

use linerate_sys::netlink::Link;

/// The interfaces whose traffic the frames of `port` meet: the port itself, what it stands on (a VLAN's NIC, a bond's
/// ports), and what stands on those or joins them: VLANs, bonds, bridges. A virtual link's other end, where it is in the
/// same place, counts as what it stands on: what it is plugged into gets the frames.
pub(crate) fn meets(port: u32, links: &[Link]) -> Vec<String> {
    let mut met = Vec::new();
    // Down: what carries the port's frames.
    join(&mut met, port, links, &|link, other| link.lower == Some(other.index) || other.master == Some(link.index));
    // Up: what is carried by the same, or is joined to it.
    for below in met.clone() {
        join(&mut met, below, links, &|link, other| {
            other.lower == Some(link.index) || link.master == Some(other.index)
        });
    }
    links.iter().filter(|link| met.contains(&link.index)).map(|link| link.name.clone()).collect()
}

/// Adds `start`, and all that `next` leads to from it.
fn join(met: &mut Vec<u32>, start: u32, links: &[Link], next: &impl Fn(&Link, &Link) -> bool) {
    let mut open = vec![start];
    let mut seen = Vec::new();
    while let Some(index) = open.pop() {
        if seen.contains(&index) {
            continue;
        }
        seen.push(index);
        if !met.contains(&index) {
            met.push(index);
        }
        let Some(link) = links.iter().find(|link| link.index == index) else { continue };
        open.extend(links.iter().filter(|other| next(link, other)).map(|other| other.index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: &str) -> Link {
        Link { index, name: name.into(), kind: kind.into(), ..Link::default() }
    }

    /// eth0 and eth1 in br0; a VLAN on br0; a bond of eth2 and eth3 with a VLAN; eth4 alone; a virtual pair.
    fn host() -> Vec<Link> {
        let of = |master, link: Link| Link { master: Some(master), ..link };
        let on = |lower, link: Link| Link { lower: Some(lower), ..link };
        vec![
            of(10, link(1, "eth0", "")),
            of(10, link(2, "eth1", "")),
            of(11, link(3, "eth2", "")),
            of(11, link(4, "eth3", "")),
            link(5, "eth4", ""),
            link(10, "br0", "bridge"),
            link(11, "bond0", "bond"),
            on(10, link(12, "br0.7", "vlan")),
            on(11, link(13, "bond0.9", "vlan")),
            on(21, link(20, "p0", "veth")),
            of(10, on(20, link(21, "q0", "veth"))),
        ]
    }

    #[test]
    fn a_port_meets_what_shares_its_link() {
        let links = host();
        let met = |name: &str| {
            let port = links.iter().find(|link| link.name == name).expect("a link").index;
            meets(port, &links)
        };
        assert_eq!(met("eth4"), ["eth4"]);
        assert_eq!(met("eth1"), ["eth1", "br0", "br0.7"]);
        assert_eq!(met("eth3"), ["eth3", "bond0", "bond0.9"]);
        assert_eq!(met("bond0.9"), ["eth2", "eth3", "bond0", "bond0.9"]);
        // Its other end is plugged into the bridge.
        assert_eq!(met("p0"), ["br0", "br0.7", "p0", "q0"]);
    }
}
