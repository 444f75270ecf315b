//! A chain of routers between two hosts: each router answers from its link, and links have limits of their own.
//!
//! A busy machine makes packets later, so times are bounded from below, and from above only by the shortest of many.

use crate::support::{host, reaches, socket, try_up, up, wait_for};
use linerate_lab::{Bench, Lab};
use linerate_sys::namespace::network_setting;
use linerate_sys::socket::path_mtu;
use linerate_testsuite::{alone, lab_test, wait_until};
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv4Ttl, Ipv6RecvErr, Ipv6Ttl};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

/// Time between two probes of a router that may limit its answers to one a second.
const PATIENCE: Duration = Duration::from_millis(1_200);
/// Delay that a busy machine alone does not add to the quickest of many packets.
const DELAY: Duration = Duration::from_millis(200);

/// An ICMP error that a socket was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    from: IpAddr,
    kind: u8,
    /// The MTU, if the packet was too big.
    info: u32,
}

const TIME_EXCEEDED: [u8; 2] = [11, 3];
const TOO_BIG: [u8; 2] = [3, 2];

/// Hosts a and b, `routers` routers in between, and faults as the command line writes them.
fn chain(routers: u8, faults: &[&str]) -> Lab {
    let device = format!("chain,routers={routers}").parse().expect("a device");
    let mut bench = Bench::named("switch").expect("built in").with_device(device);
    for fault in faults {
        bench = bench.with_fault(fault.parse().expect(fault));
    }
    try_up(&bench).expect("a lab")
}

/// Address of an end of the link to node `to`: 1 is nearer to host a.
fn address(to: u8, end: u8, v6: bool) -> String {
    if v6 { format!("2001:2:0:{to:x}::{end}") } else { format!("198.18.{to}.{end}") }
}

/// Sockets in hosts a and b of a chain.
fn ends(lab: &Lab, routers: u8, v6: bool) -> [UdpSocket; 2] {
    let near = socket(lab, "a", &address(1, 1, v6));
    let far = socket(lab, "b", &address(routers + 1, 2, v6));
    near.connect(far.local_addr().expect("address")).expect("connect");
    if v6 {
        setsockopt(&near, Ipv6RecvErr, &true).expect("IPV6_RECVERR");
    } else {
        setsockopt(&near, Ipv4RecvErr, &true).expect("IP_RECVERR");
    }
    [near, far]
}

fn set_ttl(socket: &UdpSocket, ttl: u8, v6: bool) {
    if v6 {
        setsockopt(socket, Ipv6Ttl, &ttl.into()).expect("IPV6_UNICAST_HOPS");
    } else {
        setsockopt(socket, Ipv4Ttl, &ttl.into()).expect("IP_TTL");
    }
}

/// Sends a datagram. A socket first reports the ICMP error of an earlier one.
fn send(socket: &UdpSocket, bytes: usize) {
    wait_until("the datagram is sent", || socket.send(&vec![0; bytes]).ok());
}

/// Sends a datagram that arrives at the other host.
fn arrives(from: &UdpSocket, to: &UdpSocket, bytes: usize) {
    send(from, bytes);
    let mut buffer = [0; 2_048];
    while to.recv(&mut buffer).expect("a datagram") != bytes {}
}

/// Takes the next ICMP error from a socket's error queue.
fn next_answer(socket: &UdpSocket) -> Option<Answer> {
    let mut datagram = [0; 2_048];
    let mut control = nix::cmsg_space!([u8; 128]);
    let mut pieces = [IoSliceMut::new(&mut datagram)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut control), flags) {
        Err(Errno::EAGAIN) => return None,
        Err(Errno::EINTR) => return next_answer(socket),
        message => message.expect("recvmsg"),
    };
    message.cmsgs().expect("control messages").find_map(|control| match control {
        ControlMessageOwned::Ipv4RecvErr(error, Some(offender)) => {
            Some(answer(&error, Ipv4Addr::from(u32::from_be(offender.sin_addr.s_addr)).into()))
        }
        ControlMessageOwned::Ipv6RecvErr(error, Some(offender)) => {
            Some(answer(&error, Ipv6Addr::from(offender.sin6_addr.s6_addr).into()))
        }
        _ => None,
    })
}

fn answer(error: &libc::sock_extended_err, from: IpAddr) -> Answer {
    Answer { from, kind: error.ee_type, info: error.ee_info }
}

/// Sends probes of this TTL until a router answers.
fn probe(socket: &UdpSocket, ttl: u8, v6: bool) -> Answer {
    set_ttl(socket, ttl, v6);
    let mut sent = None::<Instant>;
    wait_until("a router answers", || {
        if sent.is_none_or(|sent| sent.elapsed() > PATIENCE) {
            send(socket, 16);
            sent = Some(Instant::now());
        }
        next_answer(socket)
    })
}

/// Each router answers from its address on the link to host a, and what has hops enough arrives.
fn answers_from_its_links(lab: &Lab, routers: u8) {
    for v6 in [false, true] {
        let [near, far] = ends(lab, routers, v6);
        for router in 1..=routers {
            let answer = probe(&near, router, v6);
            assert_eq!(answer.from.to_string(), address(router, 2, v6), "{answer:?}");
            assert_eq!(answer.kind, TIME_EXCEEDED[usize::from(v6)]);
        }
        set_ttl(&near, routers + 1, v6);
        arrives(&near, &far, 1_000);
        // A late answer to a probe that was sent twice comes from the same routers.
        while let Some(late) = next_answer(&near) {
            assert_eq!(late.kind, TIME_EXCEEDED[usize::from(v6)]);
        }
    }
}

#[lab_test]
fn each_router_answers_from_its_link() {
    let _alone = alone();
    let lab = chain(4, &[]);
    answers_from_its_links(&lab, 4);
    wait_for(lab.down());
    let lab = up("name = 'x'\nhosts = ['left', 'right']\ndevice = { kind = 'chain', routers = 12 }");
    let near = socket(&lab, "left", "198.18.1.1");
    let far = socket(&lab, "right", "198.18.13.2");
    reaches(&near, &far, 8_000);
    wait_for(lab.down());
}

#[lab_test]
fn links_with_limits_keep_their_networks_apart() {
    let _alone = alone();
    let lab = chain(3, &["path,at=0-1,delay=1ms", "path,at=1-2,loss=0%", "path,at=3-4,delay=1ms"]);
    answers_from_its_links(&lab, 3);
    let counts = lab.path_counts().expect("a path").expect("counts");
    let names: Vec<_> = counts.to.keys().map(|name| name.0.as_str()).collect();
    assert_eq!(names, ["0-1", "1-0", "1-2", "2-1", "3-4", "4-3"]);
    for link in ["0-1", "1-0", "1-2", "2-1", "3-4"] {
        assert!(counts.to[&host(link)].sent > 0, "{link}: {counts:?}");
    }
    wait_for(lab.down());
}

#[lab_test]
fn the_rate_of_a_link_limits_what_passes() {
    let _alone = alone();
    let lab = chain(3, &["path,at=2-3,rate=1Mbit/s,queue=1MiB,way=forward"]);
    let [near, far] = ends(&lab, 3, false);
    let begun = Instant::now();
    for _ in 0..100 {
        send(&near, 1_000);
    }
    for _ in 0..100 {
        far.recv(&mut [0; 2_048]).expect("a datagram");
    }
    // 1,000 bytes of payload are 1,066 on the wire: 853 ms for all.
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(850), "{took:?}");
    let counts = lab.path_counts().expect("a path").expect("counts");
    assert!(counts.to[&host("2-3")].sent >= 100, "{counts:?}");
    assert!(counts.to[&host("3-2")].sent < 100, "{counts:?}");
    wait_for(lab.down());
}

/// The quickest of some datagrams from one socket to the other.
fn quickest(from: &UdpSocket, to: &UdpSocket) -> Duration {
    let times = (0..10).map(|_| {
        let begun = Instant::now();
        reaches(from, to, 100);
        begun.elapsed()
    });
    times.min().expect("a time")
}

#[lab_test]
fn a_direction_has_a_delay_of_its_own() {
    let _alone = alone();
    let lab = chain(2, &["path,at=1-2,delay=200ms,way=return"]);
    let [near, far] = ends(&lab, 2, false);
    assert!(quickest(&near, &far) < DELAY);
    assert!(quickest(&far, &near) >= DELAY);
    wait_for(lab.down());
}

#[lab_test]
fn the_router_ahead_of_a_small_link_answers_too_big() {
    let _alone = alone();
    for v6 in [false, true] {
        let header = if v6 { 48 } else { 28 };
        let lab = chain(3, &["path,at=2-3,mtu=1400"]);
        assert!(lab.path_counts().expect("counts").is_none(), "the interfaces have the MTU, no process");
        let [near, far] = ends(&lab, 3, v6);
        send(&near, 1_401 - header);
        let answer = wait_until("the message comes", || next_answer(&near));
        let router: IpAddr = address(2, 2, v6).parse().expect("an address");
        assert_eq!(answer, Answer { from: router, kind: TOO_BIG[usize::from(v6)], info: 1_400 });
        assert_eq!(path_mtu(near.as_fd(), v6).expect("an MTU"), 1_400);
        arrives(&near, &far, 1_400 - header);
        wait_for(lab.down());

        let lab = chain(3, &["path,at=2-3,mtu=1400,mtu-silent=true"]);
        let [near, far] = ends(&lab, 3, v6);
        send(&near, 1_401 - header);
        reaches(&near, &far, 1_400 - header);
        assert_eq!(lab.path_counts().expect("a path").expect("counts").to[&host("2-3")].too_large, 1);
        assert_eq!(path_mtu(near.as_fd(), v6).expect("an MTU"), 1_500);
        assert_eq!(next_answer(&near), None);
        wait_for(lab.down());
    }
}

/// Sends probes of this TTL for a while. Returns the number of answers, and how long it took.
fn flood(socket: &UdpSocket, ttl: u8, v6: bool) -> (u64, Duration) {
    set_ttl(socket, ttl, v6);
    let begun = Instant::now();
    let mut answers = 0;
    while begun.elapsed() < Duration::from_secs(2) {
        send(socket, 16);
        std::thread::sleep(Duration::from_millis(10));
        while next_answer(socket).is_some() {
            answers += 1;
        }
    }
    (answers, begun.elapsed())
}

/// Answers that the kernel gives at once after a pause (XRLIM_BURST_FACTOR).
const BURST: u64 = 6;

#[lab_test]
fn a_router_limits_its_answers_as_its_kernel_does() {
    let _alone = alone();
    let lab = chain(1, &[]);
    let [near, _far] = ends(&lab, 1, false);
    let interval = lab.inside(&host("a"), || network_setting("ipv4/icmp_ratelimit")).expect("inside");
    let interval: u64 = interval.expect("icmp_ratelimit").trim().parse().expect("milliseconds");
    let (answers, took) = flood(&near, 1, false);
    let limit = BURST + took.as_millis() as u64 / interval.max(1) + 1;
    assert!((1..=limit).contains(&answers), "{answers} answers in {took:?}, one each {interval} ms");
    wait_for(lab.down());
}

#[lab_test]
fn a_router_limits_its_answers_as_planted() {
    let _alone = alone();
    let lab = chain(3, &["router,at=1,icmp-rate=none", "router,at=2,icmp-rate=20/s"]);
    for v6 in [false, true] {
        let [near, _far] = ends(&lab, 3, v6);
        let (answers, took) = flood(&near, 2, v6);
        let limit = BURST + took.as_millis() as u64 / 50 + 1;
        assert!((1..=limit).contains(&answers), "{answers} answers in {took:?}");
        // Every probe is answered: more than the ordinary router does in this time.
        let (answers, took) = flood(&near, 1, v6);
        let ordinary = BURST + took.as_millis() as u64 / if v6 { 100 } else { 1_000 } + 1;
        assert!(answers > ordinary, "{answers} answers in {took:?}");
    }
    wait_for(lab.down());
}

#[lab_test]
fn a_silent_router_answers_nothing_and_forwards_all() {
    let _alone = alone();
    let lab = chain(3, &["router,at=2,silent=true", "path,at=2-3,mtu=1400"]);
    for v6 in [false, true] {
        let [near, far] = ends(&lab, 3, v6);
        // What the second router would answer to comes before what the third answers.
        for ttl in [2, 2, 3] {
            set_ttl(&near, ttl, v6);
            send(&near, 16);
        }
        set_ttl(&near, 4, v6);
        send(&near, 1_401 - if v6 { 48 } else { 28 });
        let answer = probe(&near, 3, v6);
        assert_eq!(answer.from.to_string(), address(3, 2, v6));
        set_ttl(&near, 4, v6);
        arrives(&near, &far, 100);
        while let Some(answer) = next_answer(&near) {
            assert_eq!(answer.from.to_string(), address(3, 2, v6));
        }
        assert_eq!(path_mtu(near.as_fd(), v6).expect("an MTU"), 1_500, "nobody told the host");
    }
    wait_for(lab.down());
}

#[lab_test]
fn an_odd_router_answers_from_no_link() {
    let _alone = alone();
    let lab = chain(3, &["router,at=1,address=odd", "router,at=2,address=odd"]);
    for v6 in [false, true] {
        let [near, _far] = ends(&lab, 3, v6);
        let odd = if v6 { ["2001:2:0:c9::1", "2001:2:0:ca::1"] } else { ["198.18.201.1", "198.18.202.1"] };
        assert_eq!([1, 2].map(|ttl| probe(&near, ttl, v6).from.to_string()), odd);
        assert_eq!(probe(&near, 3, v6).from.to_string(), address(3, 2, v6));
    }
    wait_for(lab.down());
}

#[lab_test]
fn a_slow_router_answers_late_and_forwards_at_once() {
    let _alone = alone();
    let lab = chain(
        3,
        &[
            "router,at=1,reply-delay=200ms,icmp-rate=none",
            "router,at=2,reply-delay=300ms,reply-jitter=100ms,address=odd",
            "path,at=2-3,mtu=1400",
        ],
    );
    for v6 in [false, true] {
        let [near, far] = ends(&lab, 3, v6);
        for (ttl, source) in
            [(1, address(1, 2, v6)), (2, String::from(if v6 { "2001:2:0:ca::1" } else { "198.18.202.1" }))]
        {
            set_ttl(&near, ttl, v6);
            let begun = Instant::now();
            send(&near, 16);
            let answer = wait_until("the router answers", || next_answer(&near));
            assert!(begun.elapsed() >= DELAY, "{:?}", begun.elapsed());
            assert_eq!(answer, Answer { from: source.parse().expect("an address"), kind: answer.kind, info: 0 });
            assert_eq!(answer.kind, TIME_EXCEEDED[usize::from(v6)]);
        }
        set_ttl(&near, 4, v6);
        assert!(quickest(&near, &far) < DELAY);
        // The kernel still sends all other errors.
        send(&near, 1_401 - if v6 { 48 } else { 28 });
        let answer = wait_until("the message comes", || next_answer(&near));
        assert_eq!((answer.kind, answer.info), (TOO_BIG[usize::from(v6)], 1_400));
    }
    let [near, _far] = ends(&lab, 3, false);
    let (answers, took) = flood(&near, 2, false);
    let limit = BURST + took.as_secs() + 1;
    assert!(answers <= limit, "{answers} answers in {took:?}");
    wait_for(lab.down());
}

#[lab_test]
fn a_fair_link_serves_a_small_flow_before_the_end_of_a_large_one() {
    let _alone = alone();
    let lab = chain(2, &["path,at=1-2,rate=1Mbit/s,queue=1MiB,fair=true,way=forward"]);
    let [large, far] = ends(&lab, 2, false);
    let [small, _] = ends(&lab, 2, false);
    small.connect(far.local_addr().expect("address")).expect("connect");
    // 1,000 bytes of payload take 8.5 ms on the link, so nearly all wait there when the small flow begins.
    for _ in 0..300 {
        send(&large, 1_000);
    }
    send(&small, 100);
    let sizes: Vec<_> = (0..301).map(|_| far.recv(&mut [0; 2_048]).expect("a datagram")).collect();
    let place = sizes.iter().position(|size| *size == 100).expect("the small datagram");
    assert!(place < 299, "it came after {place} of 300");
    wait_for(lab.down());
}

#[lab_test]
fn flows_share_parallel_routers() {
    let _alone = alone();
    let lab =
        chain(3, &["ecmp,at=2", "router,at=2,icmp-rate=none", "router,at=2b,icmp-rate=none", "path,at=1-2b,delay=1ms"]);
    for v6 in [false, true] {
        let branches = if v6 { ["2001:2:0:2::2", "2001:2:0:66::2"] } else { ["198.18.2.2", "198.18.102.2"] };
        let mut routers = BTreeSet::new();
        // By chance all go the same way once in half a million runs.
        for _ in 0..20 {
            let [near, far] = ends(&lab, 3, v6);
            let router = probe(&near, 2, v6).from.to_string();
            assert!(branches.contains(&router.as_str()), "{router}");
            assert_eq!(probe(&near, 2, v6).from.to_string(), router, "a flow stays on its way");
            set_ttl(&near, 4, v6);
            arrives(&near, &far, 1_000);
            routers.insert(router);
        }
        assert_eq!(routers.len(), 2, "{routers:?}");
    }
    let counts = lab.path_counts().expect("a path").expect("counts");
    assert!(counts.to[&host("1-2b")].sent > 0, "{counts:?}");
    wait_for(lab.down());
}

#[lab_test]
fn its_links_have_a_rate_and_an_mtu() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'chain', routers = 2 }\n\
                  link = { rate = '100Mbit/s', mtu = 9000 }\nlinks.b = { mtu = 1500 }");
    let [near, _far] = ends(&lab, 2, false);
    send(&near, 8_000);
    let answer = wait_until("the message comes", || next_answer(&near));
    assert_eq!((answer.from.to_string(), answer.info), (String::from("198.18.2.2"), 1_500));
    wait_for(lab.down());
}

#[test]
fn a_chain_that_cannot_be_had_is_refused() {
    for (device, fault, parts) in [
        ("chain,routers=4", "path,at=7-8,delay=1ms", ["fault path at `7-8`", "links: 0-1, 1-2, 2-3, 3-4, 4-5"]),
        ("chain,routers=4", "path,at=2-4,delay=1ms", ["fault path at `2-4`", "no such link"]),
        ("chain,routers=4", "path,at=3-2,delay=1ms", ["fault path at `3-2`", "no such link"]),
        ("chain,routers=4", "path,at=2-3", ["it has no limit", "rate=20Mbit/s"]),
        ("chain,routers=4", "path,at=2-3,jitter=1ms", ["fault path at `2-3`", "jitter"]),
        ("chain,routers=4", "path,at=2-3,mtu=1400,way=return", ["mtu", "mtu-silent=true"]),
        ("chain,routers=4", "loss,at=a,ratio=1%", ["loss at `a`", "path,at=0-1,loss=1%"]),
        ("chain,routers=4", "router,at=5,silent=true", ["fault router at `5`", "routers: 1, 2, 3, 4"]),
        ("chain,routers=4", "router,at=0,silent=true", ["fault router at `0`", "no such router"]),
        ("chain,routers=4", "router,at=2b,silent=true", ["fault router at `2b`", "no such router"]),
        ("chain,routers=4", "router,at=2", ["it changes nothing", "silent=true"]),
        ("chain,routers=4", "router,at=2,silent=true,address=odd", ["silent:", "leave the other fields out"]),
        ("chain,routers=4", "router,at=2,reply-delay=3s", ["reply-delay", "at most 2 s"]),
        ("chain,routers=4", "router,at=2,reply-jitter=3ms", ["reply-jitter", "reply-delay=20ms"]),
        ("router", "router,at=2,silent=true", ["no chain of routers", "--routers 4"]),
        ("chain,routers=4", "path,at=1-2b,delay=1ms", ["fault path at `1-2b`", "no such link"]),
        ("chain,routers=4", "ecmp,at=1", ["fault ecmp at `1`", "at is 2 to 3"]),
        ("chain,routers=4", "ecmp,at=4", ["fault ecmp at `4`", "at is 2 to 3"]),
        ("chain,routers=2", "ecmp,at=1", ["the chain has 2 in all", "--routers 3"]),
        ("router", "path,at=2-3,delay=1ms", ["no chain of routers", "--routers 4"]),
    ] {
        let bench = Bench::named("switch").expect("built in").with_device(device.parse().expect(device));
        let error = bench.with_fault(fault.parse().expect(fault)).check().expect_err(fault).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let three = Bench::named("switch").expect("built in").with_device("chain".parse().expect("a chain")).with_hosts(3);
    let error = three.check().expect_err("three hosts").to_string();
    assert!(error.contains("exactly 2 hosts, not 3"), "{error}");
    for fault in [
        "path,at=2,delay=1ms",
        "path,at=2-3,way=up",
        "path,at=2-3,speed=1",
        "path,delay=1ms",
        "router,at=x,silent=true",
        "router,at=2,silent=maybe",
        "router,at=2,address=none",
        "router,at=2,icmp-rate=0/s",
        "router,at=2,icmp-rate=5",
    ] {
        fault.parse::<linerate_lab::Fault>().expect_err(fault);
    }
    for (faults, part) in [
        (["path,at=2-3,delay=1ms", "path,at=2-3,delay=1ms,way=return"], "a fault of its own"),
        (["path,at=2-3,delay=1ms", "path,at=2-3,rate=1Mbit/s"], "twice"),
        (["router,at=2,silent=true", "router,at=2,address=odd"], "twice"),
        (["ecmp,at=2", "ecmp,at=3"], "leave a single router in between"),
    ] {
        let mut bench = Bench::named("switch").expect("built in").with_device("chain".parse().expect("a chain"));
        for fault in faults {
            bench = bench.with_fault(fault.parse().expect(fault));
        }
        let error = bench.check().expect_err("two faults").to_string();
        assert!(error.contains(part), "{error}");
    }
}
