//! Kinds of probes on a path of two links with a router, in network namespaces.

#![cfg(target_os = "linux")]

use linerate_engine::testing::{assignment, scope, sessions};
use linerate_model::{FarEnd, HopsTask, IpVersion, Net, Path, ProbePacket, ProbedWay, Role, RoleCounts, RoleKind};
use linerate_model::{Task, Timing, Transport};
use linerate_probes::Probes;
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::{BitRate, Nanos};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

/// Host, router, host: `eth0` and `eth1` of the router are links to the two hosts.
struct Chain {
    near: NetNamespace,
    router: NetNamespace,
    far: NetNamespace,
}

/// Address of a host on a link: the hosts have number 2, the router has 1.
fn address(v6: bool, link: u8, host: u8) -> IpAddr {
    if v6 {
        IpAddr::from([0x2001, 2, 0, link.into(), 0, 0, 0, host.into()])
    } else {
        IpAddr::from([198, 18, link, host])
    }
}

fn setting(name: &str, value: &str) {
    assert!(set_network_setting(name, value).expect("is written"), "{name}");
}

impl Chain {
    fn new() -> Self {
        let [near, router, far] = [(); 3].map(|()| NetNamespace::new().expect("a namespace"));
        for (link, host) in [(0, &near), (1, &far)] {
            let name = format!("eth{link}");
            host.enter(|| Route::open().expect("opens").add_veth("eth0", &name, &router, 1_500).expect("adds"))
                .expect("enters");
        }
        for namespace in [&near, &router, &far] {
            let prepare = || {
                // Routers of Linux send 1 ICMP error a second to a host; several runs share this one.
                setting("ipv4/icmp_ratelimit", "0");
                setting("ipv6/icmp/ratelimit", "0");
                setting("ipv4/icmp_msgs_per_sec", "100000");
                setting("ipv4/icmp_msgs_burst", "1000");
            };
            namespace.enter(prepare).expect("enters");
        }
        let forward = || {
            for link in 0..2 {
                attach(&format!("eth{link}"), link, 1, false);
            }
            setting("ipv4/ip_forward", "1");
            setting("ipv6/conf/all/forwarding", "1");
        };
        router.enter(forward).expect("enters");
        near.enter(|| attach("eth0", 0, 2, true)).expect("enters");
        far.enter(|| attach("eth0", 1, 2, true)).expect("enters");
        near.enter(|| [false, true].map(wait_for_far_end)).expect("enters");
        Self { near, router, far }
    }

    /// Probes the far host from the near one.
    fn probe(&self, packet: Option<ProbePacket>, v6: bool, port: u16) -> Result<ProbedWay, String> {
        self.near.enter(|| probe(packet, SocketAddr::new(address(v6, 1, 2), port))).expect("enters")
    }
}

/// Waits until the far host's answers arrive: the links of IPv6 need a while.
fn wait_for_far_end(v6: bool) {
    let socket = UdpSocket::bind(SocketAddr::new(address(v6, 0, 2), 0)).expect("binds");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("sets");
    socket.connect((address(v6, 1, 2), 9)).expect("connects");
    wait_until("the far host answers", || {
        // A call reports the error of an earlier datagram.
        let sent = socket.send(b"are you there?").map(|_| ());
        let received = socket.recv(&mut [0]).map(|_| ());
        [sent, received].into_iter().filter_map(Result::err).find(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
}

/// Sets up an interface with its addresses and, on hosts, the routes through the router.
fn attach(interface: &str, link: u8, host: u8, has_gateway: bool) {
    let mut route = Route::open().expect("opens");
    let index = route.index_of(interface).expect("is there");
    route.set_up(index).expect("goes up");
    for (v6, prefix) in [(false, 24), (true, 64)] {
        route.add_address(index, address(v6, link, host), prefix).expect("is added");
        if has_gateway {
            route.add_default_route(address(v6, link, 1)).expect("is added");
        }
    }
}

fn probe(packet: Option<ProbePacket>, peer: SocketAddr) -> Result<ProbedWay, String> {
    let ip = if peer.is_ipv6() { IpVersion::V6 } else { IpVersion::V4 };
    let task = HopsTask {
        paths: vec![Path::between("client", "server")],
        net: Net { ip, ..Net::plain(Transport::Udp) },
        packet,
        far_end: FarEnd::Host { address: peer.ip(), port: peer.port() },
        rate: BitRate::per_second(100_000),
        path_mtu: true,
        ..HopsTask::plain()
    };
    let timing = Timing::of(Nanos::from_millis(500), Nanos::from_secs(3));
    let role = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() };
    let session = sessions([assignment(Task::Hops(task), timing, vec![role])]).remove(0);
    let mut counted = scope(|_| session.run(&Probes)).map_err(|failure| format!("{:?}", failure.error))?;
    match counted.roles.remove(0) {
        RoleCounts::Hops(end) => Ok(end.way.expect("it probes")),
        other => panic!("{other:?}"),
    }
}

/// Checks that a way has the router and the far end as its hops.
fn check(way: &ProbedWay, v6: bool) {
    let addresses: Vec<IpAddr> =
        way.hops.iter().filter_map(|hop| hop.addresses.first()).map(|hop| hop.address).collect();
    assert_eq!(addresses, [address(v6, 0, 1), address(v6, 1, 2)], "{way:?}");
    assert!(way.hops[1].is_far_end && way.hops.iter().all(|hop| hop.answered > 0), "{way:?}");
    assert_eq!(way.rejected, 0, "{way:?}");
}

/// All kinds run at the same time, so that each sees the messages of the others.
#[lab_test]
fn every_kind_finds_the_router_and_the_far_end() {
    let chain = Chain::new();
    let error = chain.probe(Some(ProbePacket::Ping), false, 9).expect_err("no group may open ping sockets");
    assert!(error.contains("net.ipv4.ping_group_range"), "{error}");
    chain.near.enter(|| setting("ipv4/ping_group_range", "0 2147483647")).expect("enters");
    let listener = chain.far.enter(|| TcpListener::bind("[::]:0").expect("binds")).expect("enters");
    let open = listener.local_addr().expect("is bound").port();
    let mut kinds: Vec<(ProbePacket, u16)> = ProbePacket::ALL.iter().map(|packet| (*packet, 9)).collect();
    kinds.push((ProbePacket::TcpSyn, open));
    let chain = &chain;
    scope(|scope| {
        let mut running = Vec::new();
        for v6 in [false, true] {
            for (packet, port) in kinds.clone() {
                running.push((packet, v6, scope.spawn(move || chain.probe(Some(packet), v6, port))));
            }
        }
        for (packet, v6, thread) in running {
            let way = thread.join().expect("no panic").expect("it probes");
            assert_eq!((way.packet, way.given_up.len()), (packet, 0));
            check(&way, v6);
            let bytes = way.path_mtu.as_ref().and_then(|mtu| mtu.bytes);
            let expected = (packet != ProbePacket::TcpSyn).then_some(1_500);
            assert_eq!(bytes, expected, "{packet}: {way:?}");
        }
    });
    for table in ["tcp", "tcp6"] {
        let file = format!("/proc/thread-self/net/{table}");
        let rows = chain.near.enter(|| std::fs::read_to_string(&file).expect("is read")).expect("enters");
        assert_eq!(rows.lines().count(), 1, "no connection stays: {rows}");
    }
}

#[lab_test]
fn kinds_without_an_answer_are_given_up_in_turn() {
    let chain = Chain::new();
    for host in [&chain.router, &chain.far] {
        host.enter(|| Route::open().expect("opens").drop_own_icmp(false).expect("drops")).expect("enters");
    }
    let way = chain.probe(None, false, 9).expect("it probes");
    assert_eq!(way.packet, ProbePacket::TcpSyn);
    let kinds: Vec<ProbePacket> = way.given_up.iter().map(|(packet, _)| *packet).collect();
    assert_eq!(kinds, [ProbePacket::Udp, ProbePacket::Ping, ProbePacket::RawIcmp]);
    let reasons: Vec<&str> = way.given_up.iter().map(|(_, reason)| reason.as_str()).collect();
    assert!(reasons[0].starts_with("no router and no host answered within 500 ms"), "{reasons:?}");
    assert!(reasons[1].contains("ping_group_range"), "{reasons:?}");
    assert!(reasons[2].starts_with("no router and no host answered"), "{reasons:?}");
    let far_end = way.far_end().expect("it resets");
    assert_eq!(far_end.addresses[0].address, address(false, 1, 2));
    assert_eq!(far_end.ttl, 2, "{way:?}");
}

#[lab_test]
fn last_kind_is_kept_if_nobody_answers() {
    let chain = Chain::new();
    // The router forwards nothing and answers nothing.
    let silence = || {
        setting("ipv4/ip_forward", "0");
        Route::open().expect("opens").drop_own_icmp(false).expect("drops");
    };
    chain.router.enter(silence).expect("enters");
    let way = chain.probe(None, false, 9).expect("it probes");
    assert_eq!((way.packet, way.given_up.len(), way.hops.len()), (ProbePacket::TcpSyn, 3, 0), "{way:?}");
}
