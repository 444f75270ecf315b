//! Packets that a host drops are found where it dropped them: damaged, filtered and incomplete ones, planted in namespaces.

use super::traffic::{A, B, finish, introduce, pair, read_all, socket, watch};
use linerate_model::{NetworkCounters, Observation, Readings, SeriesQuantity};
use linerate_observe::HostSampler;
use linerate_sys::bpf::{XdpAction, load_constant};
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_sys::shaping::Way;
use linerate_testsuite::lab_test;
use linerate_units::Ratio;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;

/// IPPROTO_RAW: the program makes the IP header.
const OWN_HEADER: i32 = 255;

/// Two namespaces with a socket in each, which know each other's hardware address.
struct Planting {
    a: NetNamespace,
    b: NetNamespace,
    from: UdpSocket,
    to: UdpSocket,
}

impl Planting {
    fn new() -> Self {
        let (a, b) = pair();
        let (from, to) = (a.enter(|| socket(A)).expect("enter"), b.enter(|| socket(B)).expect("enter"));
        introduce(&from, &to);
        Self { a, b, from, to }
    }

    fn port(&self) -> u16 {
        self.to.local_addr().expect("address").port()
    }

    /// What the receiving host saw, by a watch and by a sampler, while `load` ran.
    fn seen(&self, load: impl FnOnce()) -> (Observation, Vec<(String, u64)>) {
        let mut sampler = self.b.enter(|| HostSampler::open(&[])).expect("enter");
        let watch = watch(&self.b);
        load();
        let mut readings = Readings::default();
        sampler.sample(&mut readings);
        let drops =
            readings.of(SeriesQuantity::KernelDrops).map(|(reason, count)| (reason.to_owned(), count)).collect();
        (finish(watch), drops)
    }

    /// Sends packets from a's namespace, behind an IP header of the kernel's or (`OWN_HEADER`) their own.
    fn send_raw(&self, protocol: Protocol, packets: &[Vec<u8>]) {
        let raw = || Socket::new(Domain::IPV4, Type::RAW, Some(protocol)).expect("a raw socket");
        let raw = self.a.enter(raw).expect("enter");
        let to = SocketAddr::from(SocketAddrV4::new(address(B), 0));
        for packet in packets {
            raw.send_to(packet, &to.into()).expect("send");
        }
    }
}

fn address(text: &str) -> Ipv4Addr {
    text.parse().expect("an address")
}

/// A UDP datagram with this checksum.
fn datagram(port: u16, payload: usize, checksum: u16) -> Vec<u8> {
    let mut datagram = Vec::new();
    for field in [port, port, 8 + payload as u16, checksum] {
        datagram.extend_from_slice(&field.to_be_bytes());
    }
    datagram.resize(8 + payload, 0x5a);
    datagram
}

/// An IPv4 packet; the kernel fills in its length and checksum. `fragment` is its field of flags and offset.
fn packet(source: Ipv4Addr, id: u16, fragment: u16, payload: &[u8]) -> Vec<u8> {
    const UDP: u8 = 17;
    let mut packet = vec![0x45, 0, 0, 0];
    packet.extend_from_slice(&id.to_be_bytes());
    packet.extend_from_slice(&fragment.to_be_bytes());
    packet.extend_from_slice(&[64, UDP, 0, 0]);
    packet.extend_from_slice(&source.octets());
    packet.extend_from_slice(&address(B).octets());
    packet.extend_from_slice(payload);
    packet
}

#[lab_test]
fn a_wrong_checksum_is_not_taken_for_a_full_buffer() {
    let planting = Planting::new();
    let port = planting.port();
    // Short datagrams are checked before a socket is looked for, others when the program reads them.
    for payload in [20, 1000] {
        const DAMAGED: u64 = 30;
        let (seen, drops) = planting.seen(|| {
            let damaged: Vec<_> = (0..DAMAGED).map(|_| datagram(port, payload, 0x1234)).collect();
            planting.send_raw(Protocol::UDP, &damaged);
            planting.from.send_to(b"whole", planting.to.local_addr().expect("address")).expect("send");
            assert_eq!(read_all(&planting.to, 1), 1, "only the whole one arrives");
        });
        let NetworkCounters { udp, ip, .. } = seen.network;
        assert_eq!((udp.checksum_errors, udp.receive_buffer_errors), (DAMAGED, 0), "{payload}");
        assert_eq!((ip.received, ip.delivered, ip.filtered), (DAMAGED + 1, DAMAGED + 1, 0), "{payload}");
        assert_eq!(drops, [("udp checksum".to_owned(), DAMAGED)], "{payload}");
    }
}

#[lab_test]
fn what_a_filter_drops_on_the_way_in_is_counted_by_the_interfaces_clsact() {
    let planting = Planting::new();
    let half = Ratio::new(1, 2);
    let plant = || {
        let mut route = Route::open().expect("netlink");
        let link = route.index_of("eth0").expect("eth0");
        route.drop_by_chance(link, &[(Way::In, half)]).expect("a filter");
    };
    planting.b.enter(plant).expect("enter");
    const DATAGRAMS: u64 = 80;
    let mut arrived = 0;
    let (seen, _) = planting.seen(|| {
        for _ in 0..DATAGRAMS {
            planting.from.send_to(&[0; 500], planting.to.local_addr().expect("address")).expect("send");
        }
        arrived = read_all(&planting.to, 1);
    });
    let filter = seen.qdiscs.iter().find(|qdisc| qdisc.kind == "clsact").expect("it dropped");
    assert_eq!((filter.interface.as_str(), filter.root, filter.drops), ("eth0", false, DATAGRAMS - arrived));
    assert!((1..DATAGRAMS).contains(&arrived), "{arrived}");
    // The interface had received them, and IP never saw them.
    assert_eq!((seen.interfaces[0].rx_packets, seen.interfaces[0].rx_dropped), (DATAGRAMS, 0));
    assert_eq!((seen.network.ip.received, seen.network.ip.filtered), (arrived, 0));
}

#[lab_test]
fn what_an_xdp_program_drops_is_counted_by_the_driver() {
    let planting = Planting::new();
    let plant = || {
        let mut route = Route::open().expect("netlink");
        let link = route.index_of("eth0").expect("eth0");
        let program = load_constant(XdpAction::Drop).expect("a program");
        route.set_xdp(link, program.as_fd()).expect("attached");
    };
    planting.b.enter(plant).expect("enter");
    const DATAGRAMS: u64 = 40;
    let (seen, _) = planting.seen(|| {
        for _ in 0..DATAGRAMS {
            planting.from.send_to(&[0; 500], planting.to.local_addr().expect("address")).expect("send");
        }
        assert_eq!(read_all(&planting.to, 0), 0);
    });
    let counters = &seen.driver_counters;
    assert!(counters.iter().all(|counter| counter.interface == "eth0"), "{counters:?}");
    let dropped = counters.iter().filter(|counter| counter.name.ends_with("xdp_drops"));
    assert_eq!(dropped.map(|counter| counter.count).sum::<u64>(), DATAGRAMS, "{counters:?}");
    assert_eq!(seen.network.ip.received, 0);
}

#[lab_test]
fn what_the_host_filters_after_ip_received_it_ends_nowhere_else() {
    let planting = Planting::new();
    let strict = || set_network_setting("ipv4/conf/all/rp_filter", "1").expect("a setting");
    planting.b.enter(strict).expect("enter");
    const FOREIGN: u64 = 25;
    let (seen, drops) = planting.seen(|| {
        // b has no route to this source, so that the reverse path filter drops them.
        let foreign =
            (0..FOREIGN).map(|_| packet(Ipv4Addr::new(203, 0, 113, 1), 0, 0, &datagram(planting.port(), 10, 0)));
        planting.send_raw(OWN_HEADER.into(), &foreign.collect::<Vec<_>>());
        planting.from.send_to(b"own", planting.to.local_addr().expect("address")).expect("send");
        assert_eq!(read_all(&planting.to, 1), 1);
    });
    assert_eq!((seen.network.ip.received, seen.network.ip.filtered), (FOREIGN + 1, FOREIGN));
    // A sampler leaves out what may have been in transit.
    assert!(matches!(&drops[..], [(reason, 1..=FOREIGN)] if reason == "ip filtered"), "{drops:?}");
}

#[lab_test]
fn datagrams_of_which_a_fragment_is_missing_are_counted_before_they_are_given_up() {
    let planting = Planting::new();
    const MORE_FRAGMENTS: u16 = 1 << 13;
    const INCOMPLETE: u64 = 12;
    let (seen, _) = planting.seen(|| {
        let whole = datagram(planting.port(), 1200, 0);
        let (first, second) = whole.split_at(608);
        let mut fragments = Vec::new();
        for id in 1..=INCOMPLETE as u16 {
            fragments.push(packet(address(A), id, MORE_FRAGMENTS, first));
        }
        // One is whole.
        fragments.push(packet(address(A), 99, MORE_FRAGMENTS, first));
        fragments.push(packet(address(A), 99, 608 / 8, second));
        planting.send_raw(OWN_HEADER.into(), &fragments);
        assert_eq!(read_all(&planting.to, 1), 1);
    });
    let ip = seen.network.ip;
    assert_eq!((ip.received, ip.delivered), (INCOMPLETE + 2, 1));
    assert_eq!((ip.unassembled, ip.reassembly_failures, ip.filtered), (INCOMPLETE, 0, 0));
}

#[lab_test]
fn fragments_that_the_host_has_no_memory_for_are_told_from_incomplete_ones() {
    let planting = Planting::new();
    let none =
        || ["low", "high"].map(|end| set_network_setting(&format!("ipv4/ipfrag_{end}_thresh"), "0").expect("set"));
    assert_eq!(planting.b.enter(none).expect("enter"), [true; 2]);
    const MORE_FRAGMENTS: u16 = 1 << 13;
    const DATAGRAMS: u64 = 9;
    let (seen, _) = planting.seen(|| {
        let whole = datagram(planting.port(), 1200, 0);
        let (first, second) = whole.split_at(608);
        let of = |id| [packet(address(A), id, MORE_FRAGMENTS, first), packet(address(A), id, 608 / 8, second)];
        planting.send_raw(OWN_HEADER.into(), &(1..=DATAGRAMS as u16).flat_map(of).collect::<Vec<_>>());
        assert_eq!(read_all(&planting.to, 0), 0);
    });
    let ip = seen.network.ip;
    assert_eq!((ip.received, ip.delivered), (2 * DATAGRAMS, 0));
    // Each of the fragments is a failure of its own.
    assert_eq!((ip.reassembly_failures, ip.reassembly_timeouts, ip.unassembled), (2 * DATAGRAMS, 0, 2 * DATAGRAMS));
}
