//! Interfaces that share the link of a port, and so its traffic.

use linerate_sys::interface::Link;

/// Returns the interfaces that share traffic with `port`: the port itself, its lower interfaces (a VLAN's NIC, a bond's
/// ports), and their upper interfaces: VLANs, bonds, bridges. The other end of a virtual link in the same namespace
/// counts as a lower interface, because the interface that it is attached to gets the frames.
pub(crate) fn meets(port: u32, links: &[Link]) -> Vec<String> {
    let mut met = Vec::new();
    // Down: lower interfaces.
    join(&mut met, port, links, &|link, other| link.lower == Some(other.index) || other.master == Some(link.index));
    // Up: upper interfaces of these.
    for below in met.clone() {
        join(&mut met, below, links, &|link, other| {
            other.lower == Some(link.index) || link.master == Some(other.index)
        });
    }
    links.iter().filter(|link| met.contains(&link.index)).map(|link| link.name.clone()).collect()
}

/// Adds `start`, and all interfaces reached from it by `next`.
fn join(met: &mut Vec<u32>, start: u32, links: &[Link], next: &impl Fn(&Link, &Link) -> bool) {
    let mut open = vec![start];
    let mut visited = Vec::new();
    while let Some(index) = open.pop() {
        if visited.contains(&index) {
            continue;
        }
        visited.push(index);
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

    /// Returns a host with eth0 and eth1 in br0, a VLAN on br0, a bond of eth2 and eth3 with a VLAN, eth4 alone, and a
    /// virtual pair.
    fn host() -> Vec<Link> {
        // Index, name, kind, lower interface, master.
        [
            (1, "eth0", "", None, Some(10)),
            (2, "eth1", "", None, Some(10)),
            (3, "eth2", "", None, Some(11)),
            (4, "eth3", "", None, Some(11)),
            (5, "eth4", "", None, None),
            (10, "br0", "bridge", None, None),
            (11, "bond0", "bond", None, None),
            (12, "br0.7", "vlan", Some(10), None),
            (13, "bond0.9", "vlan", Some(11), None),
            (20, "p0", "veth", Some(21), None),
            (21, "q0", "veth", Some(20), Some(10)),
        ]
        .map(|(index, name, kind, lower, master)| Link {
            index,
            name: name.into(),
            kind: kind.into(),
            lower,
            master,
            ..Link::default()
        })
        .into()
    }

    #[test]
    fn interfaces_that_share_a_link_are_found() {
        let links = host();
        for (name, expected) in [
            ("eth4", &["eth4"][..]),
            ("eth1", &["eth1", "br0", "br0.7"]),
            ("eth3", &["eth3", "bond0", "bond0.9"]),
            ("bond0.9", &["eth2", "eth3", "bond0", "bond0.9"]),
            // Its other end is attached to the bridge.
            ("p0", &["br0", "br0.7", "p0", "q0"]),
        ] {
            let port = links.iter().find(|link| link.name == name).expect("a link").index;
            assert_eq!(meets(port, &links), expected);
        }
    }
}
