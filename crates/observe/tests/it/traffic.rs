//! What a watch counts is what was sent: in network namespaces, where nobody else sends.

use linerate_model::Observation;
use linerate_observe::{Watch, capabilities, interface_of, interface_towards};
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_sys::shaping::EthernetShape;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::BitRate;
use socket2::SockRef;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

pub(crate) const A: &str = "198.18.0.1";
pub(crate) const B: &str = "198.18.0.2";
/// Ethernet, IPv4 and UDP headers as a kernel counts them.
pub(crate) const HEADERS: u64 = 14 + 20 + 8;

/// Two namespaces with a link between their interfaces `eth0`.
pub(crate) fn pair() -> (NetNamespace, NetNamespace) {
    let (a, b) = apart();
    join(&a, &b);
    (a, b)
}

/// Two namespaces. Without IPv6 nothing but our own packets will cross a link between them.
pub(crate) fn apart() -> (NetNamespace, NetNamespace) {
    let (a, b) = (NetNamespace::new().expect("a namespace"), NetNamespace::new().expect("a namespace"));
    for namespace in [&a, &b] {
        let off = || set_network_setting("ipv6/conf/default/disable_ipv6", "1").expect("a setting");
        namespace.enter(off).expect("enter");
    }
    (a, b)
}

/// When what must come has come, no more is there after so long without a datagram.
const SILENCE: Duration = Duration::from_millis(500);
/// A datagram that must come is waited for so long.
const LONG: Duration = Duration::from_secs(30);

/// Puts a link between the interfaces `eth0` of both.
pub(crate) fn join(a: &NetNamespace, b: &NetNamespace) {
    a.enter(|| Route::open().expect("netlink").add_veth("eth0", "eth0", b, 1500).expect("veth")).expect("enter");
    for (namespace, address) in [(a, A), (b, B)] {
        namespace.enter(|| bring_up("eth0", Some(address))).expect("enter");
        // A neighbour that has not been heard of for some seconds is asked for again, and the question would be counted.
        let setting = "ipv4/neigh/eth0/delay_first_probe_time";
        let set = namespace.enter(|| set_network_setting(setting, "3600"));
        assert!(set.expect("enter").expect("a setting"), "{setting}");
    }
}

pub(crate) fn bring_up(interface: &str, address: Option<&str>) {
    let mut route = Route::open().expect("netlink");
    let link = route.index_of(interface).expect("the interface");
    if let Some(address) = address {
        route.add_address(link, ip(address), 24).expect("address");
    }
    route.set_up(link).expect("up");
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub(crate) fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((ip(address), 0)).expect("bind");
    socket.set_read_timeout(Some(SILENCE)).expect("timeout");
    socket
}

/// How many datagrams there are to read: at least so many if they come at all, and those that follow them.
pub(crate) fn read_all(socket: &UdpSocket, at_least: u64) -> u64 {
    socket.set_read_timeout(Some(LONG)).expect("timeout");
    let receive = || socket.recv(&mut [0; 2048]).ok();
    let expected = (0..at_least).map_while(|_| receive()).count();
    socket.set_read_timeout(Some(SILENCE)).expect("timeout");
    (expected + std::iter::from_fn(receive).count()) as u64
}

/// How many datagrams come through the queue at the sending end in `namespace`, however late its timer.
pub(crate) fn read_queued(namespace: &NetNamespace, socket: &UdpSocket) -> u64 {
    let is_empty = || {
        let qdiscs = Route::open().expect("netlink").qdiscs().expect("qdiscs");
        qdiscs.iter().all(|qdisc| qdisc.backlog_packets == 0)
    };
    wait_until("the queue is empty", || namespace.enter(is_empty).expect("enter").then_some(()));
    read_all(socket, 1)
}

/// Lets both learn each other's hardware address, so that later only datagrams cross the link. A link that has just come
/// up drops what is sent at once, and asks for the address again only after a second.
pub(crate) fn introduce(from: &UdpSocket, to: &UdpSocket) {
    for (from, to) in [(from, to), (to, from)] {
        wait_until("the link works", || {
            from.send_to(b"hello", to.local_addr().expect("address")).expect("send");
            to.recv(&mut [0; 8]).ok()
        });
    }
    read_all(to, 0);
    read_all(from, 0);
}

/// Puts a token bucket with a queue of 10,000 bytes at the sending end of the link.
pub(crate) fn shape(namespace: &NetNamespace, rate: BitRate) {
    let shape = EthernetShape { rate, longest_frame: 1514, burst_bytes: 3200, queue_bytes: 10_000 };
    let shaped = namespace.enter(|| {
        let mut route = Route::open().expect("netlink");
        let link = route.index_of("eth0").expect("eth0");
        route.shape(link, &shape).expect("tbf");
    });
    shaped.expect("enter");
}

pub(crate) fn watch(namespace: &NetNamespace) -> Watch {
    namespace.enter(|| Watch::open(&[])).expect("enter")
}

pub(crate) fn finish(mut watch: Watch) -> Observation {
    watch.close();
    // Here, outside the namespace: a watch stays where it was opened.
    watch.finish()
}

#[lab_test]
fn interfaces_count_exactly_what_crossed_them() {
    let (a, b) = pair();
    let (from, to) = (a.enter(|| socket(A)).expect("enter"), b.enter(|| socket(B)).expect("enter"));
    let peer = to.local_addr().expect("address");
    introduce(&from, &to);

    let (sender, receiver) = (watch(&a), watch(&b));
    // The default socket buffer holds some 90 of them.
    const DATAGRAMS: u64 = 60;
    const PAYLOAD: u64 = 1000;
    for _ in 0..DATAGRAMS {
        from.send_to(&[0; PAYLOAD as usize], peer).expect("send");
    }
    assert_eq!(read_all(&to, DATAGRAMS), DATAGRAMS);
    let (sender, receiver) = (finish(sender), finish(receiver));

    assert_eq!(sender.interfaces.len(), 1, "{:?}", sender.interfaces);
    let (out, into) = (&sender.interfaces[0], &receiver.interfaces[0]);
    let bytes = DATAGRAMS * (PAYLOAD + HEADERS);
    assert_eq!((out.name.as_str(), out.tx_packets, out.tx_bytes, out.rx_packets), ("eth0", DATAGRAMS, bytes, 0));
    assert_eq!((into.name.as_str(), into.rx_packets, into.rx_bytes, into.tx_packets), ("eth0", DATAGRAMS, bytes, 0));
    assert_eq!((receiver.network.udp.receive_buffer_errors, into.rx_dropped, into.rx_errors), (0, 0, 0));
    assert!(receiver.softnet.processed >= DATAGRAMS, "{:?}", receiver.softnet);
    assert!(sender.window.get() > 0 && !sender.cores.is_empty() && sender.agent_cpu.get() > 0);
}

#[lab_test]
fn a_full_socket_buffer_is_counted_to_the_datagram() {
    let namespace = NetNamespace::new().expect("a namespace");
    namespace.enter(|| bring_up("lo", None)).expect("enter");
    for address in ["127.0.0.1", "::1"] {
        let watch = watch(&namespace);
        const DATAGRAMS: u64 = 100;
        let arrived = namespace
            .enter(|| {
                let (from, to) = (socket(address), socket(address));
                SockRef::from(&to).set_recv_buffer_size(8192).expect("buffer");
                for _ in 0..DATAGRAMS {
                    from.send_to(&[0; 1000], to.local_addr().expect("address")).expect("send");
                }
                read_all(&to, 1)
            })
            .expect("enter");
        let seen = finish(watch);
        assert!((1..DATAGRAMS).contains(&arrived), "{arrived}");
        assert_eq!(seen.network.udp.receive_buffer_errors, DATAGRAMS - arrived, "{address}");
    }
}

#[lab_test]
fn a_full_queue_is_counted_to_the_packet() {
    let (a, b) = pair();
    let (from, to) = (a.enter(|| socket(A)).expect("enter"), b.enter(|| socket(B)).expect("enter"));
    let peer = to.local_addr().expect("address");
    introduce(&from, &to);
    shape(&a, BitRate::per_second(1_000_000));

    let watch = watch(&a);
    const DATAGRAMS: u64 = 100;
    for _ in 0..DATAGRAMS {
        // A queue that drops may say so.
        let _ = from.send_to(&[0; 1000], peer);
    }
    let arrived = read_queued(&a, &to);
    let seen = finish(watch);
    let root = seen.qdiscs.iter().find(|qdisc| qdisc.root).expect("the root was active");
    assert_eq!((root.interface.as_str(), root.kind.as_str()), ("eth0", "tbf"));
    assert_eq!((root.packets, root.drops, root.backlog_packets), (arrived, DATAGRAMS - arrived, 0));
    // How many fit depends on how long sending them takes.
    assert!((1..DATAGRAMS).contains(&arrived) && root.overlimits > 0, "{root:?}");
    assert_eq!(seen.interfaces[0].tx_packets, arrived);
}

#[lab_test]
fn addresses_and_ways_belong_to_the_namespace() {
    let (a, _b) = pair();
    let found =
        a.enter(|| (interface_of(ip(A)), interface_towards(ip(A)), interface_of(ip(B)), interface_towards(ip(B))));
    let (own, to_own, far, to_far) = found.expect("enter");
    assert_eq!(own.as_deref(), Some("eth0"));
    // lo is down in here, but the kernel still sends what is for itself there.
    assert_eq!(to_own.as_deref(), Some("lo"));
    assert_eq!((far, to_far.as_deref()), (None, Some("eth0")));
    assert_eq!(interface_of(ip(A)), None);
}

#[lab_test]
fn root_can_make_a_lab_and_load_programs() {
    let all = capabilities();
    for name in ["network-namespaces", "virtual-links", "packet-sockets", "large-socket-buffers"] {
        assert!(all.iter().any(|capability| capability.name == name && capability.available), "{name}: {all:#?}");
    }
}
