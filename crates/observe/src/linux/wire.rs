//! Interfaces with a wire.

use linerate_sys::interface::Link;

/// Returns whether the speed that `link`'s driver states is that of a wire. Links that only exist in software state a
/// number that limits nothing (veth says 10 Gbit/s), and so do links that stand on one. `driver` is what the driver
/// calls itself.
pub(crate) fn has_wire(link: &Link, driver: &str, links: &[Link], driver_of: &impl Fn(&Link) -> String) -> bool {
    // Drivers that state a constant. vmxnet3 does so too: its ports are limited by the host's NIC.
    const INVENTED: [&str; 6] = ["veth", "tun", "bridge", "dummy", "vmxnet3", "netkit"];
    let wired = |other: &Link| other.index != link.index && has_wire(other, &driver_of(other), links, driver_of);
    if link.loopback || INVENTED.contains(&driver) {
        return false;
    }
    match link.kind.as_str() {
        "" => true,
        "vlan" | "macvlan" | "macvtap" | "ipvlan" | "macsec" => {
            let lower = link.lower.and_then(|lower| links.iter().find(|other| other.index == lower));
            lower.is_some_and(wired)
        }
        "bond" | "team" => {
            let mut ports = links.iter().filter(|other| other.master == Some(link.index)).peekable();
            ports.peek().is_some() && ports.all(wired)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, kind: &str) -> Link {
        Link { index, name: format!("if{index}"), kind: kind.into(), ..Link::default() }
    }

    #[test]
    fn only_what_stands_on_wires_has_a_speed() {
        let nic = link(1, "");
        let veth = link(2, "veth");
        let on_nic = Link { lower: Some(1), ..link(3, "vlan") };
        let on_veth = Link { lower: Some(2), ..link(4, "vlan") };
        let bond = link(5, "bond");
        let port = Link { master: Some(5), ..link(6, "") };
        let empty_bond = link(7, "bond");
        let tun = link(8, "");
        let loopback = Link { loopback: true, ..link(9, "") };
        let links = [nic, veth, on_nic, on_veth, bond, port, empty_bond, tun, loopback, link(10, "wireguard")];
        let driver_of = |link: &Link| String::from(if link.index == 8 { "tun" } else { "ixgbe" });
        let wired = links.iter().filter(|link| has_wire(link, &driver_of(link), &links, &driver_of));
        assert_eq!(wired.map(|link| link.index).collect::<Vec<_>>(), [1, 3, 5, 6]);
    }

    #[test]
    fn a_veth_that_points_back_at_what_stands_on_it_ends_the_walk() {
        let links = [Link { lower: Some(2), ..link(1, "vlan") }, Link { lower: Some(1), ..link(2, "veth") }];
        assert!(!has_wire(&links[0], "vlan", &links, &|_| String::new()));
    }
}
