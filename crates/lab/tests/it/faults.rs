//! Faults planted at hosts do what they say, and go with the lab.

use crate::endings::{Outside, Program, bench_command, namespaces_of_agents, nothing_stays};
use crate::rates::{FLOOD, SHAPER_BURST, flood};
use crate::support::{agent_told, counters, host, socket, try_up, up, wait_for};
use linerate_lab::{Bench, Lab};
use linerate_sys::affinity::pin;
use linerate_sys::ethtool::Ethtool;
use linerate_sys::namespace::network_setting;
use linerate_sys::netlink::Route;
use linerate_testsuite::{alone, lab_test};
use socket2::SockRef;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Two hosts on a switch, with one fault.
fn up_with(fault: &str) -> Lab {
    up(&format!("name = 'x'\nhosts = ['a', 'b']\n[[fault]]\n{fault}"))
}

/// Connected sockets in `a` and `b`.
fn pair(lab: &Lab) -> (UdpSocket, UdpSocket) {
    let near = socket(lab, "a", "198.18.0.1");
    let far = socket(lab, "b", "198.18.0.2");
    near.connect(far.local_addr().expect("address")).expect("connect");
    far.connect(near.local_addr().expect("address")).expect("connect");
    (near, far)
}

/// Sends datagrams from the first core and waits until all have come; gives the time, and the core that received the
/// last.
fn exchange(near: &UdpSocket, far: &UdpSocket, count: usize) -> (Duration, usize) {
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            pin(0).expect("the first core");
            let start = Instant::now();
            for _ in 0..count {
                near.send(&[7; 18]).expect("send");
            }
            start
        });
        for index in 0..count {
            far.recv(&mut [0; 32]).unwrap_or_else(|error| panic!("datagram {index}: {error}"));
        }
        let end = Instant::now();
        (end - sender.join().expect("sender"), SockRef::from(far).cpu_affinity().expect("SO_INCOMING_CPU"))
    })
}

fn last_core() -> usize {
    thread::available_parallelism().expect("cores").get() - 1
}

#[lab_test]
fn soft_interrupts_take_the_time_of_each_frame_on_one_core() {
    const FRAMES: usize = 200;
    let _alone = alone();
    let lab = up_with("kind = 'softirq-load'\nat = 'b'\ncost = '100us'");
    let (near, far) = pair(&lab);
    let (time, core) = exchange(&near, &far, FRAMES);
    assert!(time >= FRAMES as u32 * Duration::from_micros(100), "{FRAMES} frames in {time:?}");
    assert_eq!(core, last_core());
}

/// A packet that was joined costs the time of its frames.
#[lab_test]
fn a_joined_packet_takes_the_time_of_its_frames() {
    const BYTES: usize = 1_000_000;
    let _alone = alone();
    let lab = up_with("kind = 'softirq-load'\nat = 'b'\ncost = '50us'");
    let (time, packets) = send_by_tcp(&lab, BYTES);
    let frames = BYTES / 1460;
    assert!(packets < frames as u64 / 2, "{packets} packets: nothing was joined");
    assert!(time >= frames as u32 * Duration::from_micros(50), "{frames} frames in {time:?}");
}

#[lab_test]
fn one_core_receives_what_another_sends() {
    let _alone = alone();
    for (fault, core) in [("kind = 'one-core'\nat = 'b'", last_core()), ("kind = 'one-core'\nat = 'a'", 0)] {
        let lab = up_with(fault);
        let (near, far) = pair(&lab);
        for _ in 0..100 {
            assert_eq!(exchange(&near, &far, 1).1, core, "{fault}");
        }
    }
}

#[lab_test]
fn a_filter_drops_what_comes_faster_than_its_rate_and_counts_it() {
    /// Packets per second, and those that may come back to back.
    const RATE: f64 = 2_000.0;
    const BURST: f64 = 20.0;
    let _alone = alone();
    for by in ["tc", "netfilter"] {
        let lab = up_with(&format!("kind = 'drop-filter'\nat = 'b'\nabove = 2000\nby = '{by}'"));
        let near = socket(&lab, "a", "198.18.0.1");
        let far = socket(&lab, "b", "198.18.0.2");
        let delivered = || lab.inside(&host("b"), undelivered).expect("inside");
        let came = || counters(&lab, "b").rx_packets;
        let before = delivered();
        let came_before = came();
        let flood = flood(&near, &far, 64, 1, |time, _| time > FLOOD);
        let most = RATE * flood.time.as_secs_f64() + BURST + 1.0;
        // On a busy machine some are lost in the kernel's queues, ahead of the filter.
        let lost = came() - came_before - flood.received;
        assert!(flood.received as f64 <= most, "{by}: {} came, at most {most} may", flood.received);
        assert!(flood.received as f64 >= 0.05 * most, "{by}: only {} came of {most}", flood.received);
        let dropped = match by {
            "tc" => lab.dropped().expect("counters")[&host("b")],
            _ => delivered() - before,
        };
        assert!(lost > 0, "{by}: a flood passed");
        // The hosts look for one another now and then.
        assert!(dropped.abs_diff(lost) <= 5, "{by}: {dropped} counted, {lost} missing");
    }
}

/// IP packets that came to the calling thread's namespace and reached no protocol (SNMP's ipInReceives, ipInDelivers).
fn undelivered() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/net/snmp").expect("counters");
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Ip: ")).map(str::split_ascii_whitespace);
    let names = lines.next().expect("names");
    let values = lines.next().expect("values");
    let values: BTreeMap<_, u64> = names.zip(values.map(|value| value.parse().expect("a count"))).collect();
    values["InReceives"] - values["InDelivers"]
}

#[lab_test]
fn tcp_has_little_memory_in_one_host() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b']\n[[fault]]\nkind = 'tcp-memory'\nat = 'a'\nsend = '16KiB'\n\
         [[fault]]\nkind = 'tcp-memory'\nat = 'b'\nreceive = '16KiB'");
    let largest = |name: &str, setting: &str| {
        let sizes = lab.inside(&host(name), || network_setting(setting)).expect("inside").expect("a setting");
        sizes.split_ascii_whitespace().nth(2).expect("three sizes").parse::<u64>().expect("bytes")
    };
    let of_machine = |setting: &str| network_setting(setting).expect("a setting");
    assert_eq!((largest("a", "ipv4/tcp_wmem"), largest("b", "ipv4/tcp_rmem")), (16_384, 16_384));
    assert!(largest("a", "ipv4/tcp_rmem") > 16_384 && largest("b", "ipv4/tcp_wmem") > 16_384);
    assert!(!of_machine("ipv4/tcp_wmem").ends_with("\t16384\n"), "{}", of_machine("ipv4/tcp_wmem"));

    // A connection that nobody reads from takes what its two buffers hold.
    let (mut near, _far) = connected(&lab);
    near.set_nonblocking(true).expect("nonblocking");
    let mut taken = 0;
    let full = Instant::now() + Duration::from_millis(300);
    while Instant::now() < full {
        match near.write(&[7; 4096]) {
            Ok(bytes) => taken += bytes,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    assert!((1..=32 << 10).contains(&taken), "{taken} bytes in two buffers of 16 KiB");
}

#[lab_test]
fn tcp_of_one_host_has_another_congestion_control() {
    let _alone = alone();
    let with = |control: &str| {
        format!("name = 'x'\nhosts = ['a', 'b']\n[[fault]]\nkind = 'congestion'\nat = 'a'\ncontrol = '{control}'")
    };
    let machine = network_setting("ipv4/tcp_congestion_control").expect("a setting");
    let lab = up(&with("reno"));
    let used = |name: &str| {
        let setting = || network_setting("ipv4/tcp_congestion_control");
        lab.inside(&host(name), setting).expect("inside").expect("a setting").trim().to_owned()
    };
    assert_eq!((used("a").as_str(), used("b").as_str()), ("reno", machine.trim()));
    assert_eq!(network_setting("ipv4/tcp_congestion_control").expect("a setting"), machine);
    let none_such = Bench::parse(&with("none_such"), "test").expect("a bench");
    let error = try_up(&none_such).err().expect("the kernel has no such control").to_string();
    assert!(error.contains("none_such") && error.contains("reno"), "{error}");
}

/// A TCP connection from `a` to `b`.
fn connected(lab: &Lab) -> (TcpStream, TcpStream) {
    let listener = lab.inside(&host("b"), || TcpListener::bind("198.18.0.2:0")).expect("inside").expect("bind");
    let address = listener.local_addr().expect("address");
    let near = lab.inside(&host("a"), || TcpStream::connect(address)).expect("inside").expect("connect");
    (near, listener.accept().expect("accept").0)
}

/// Sends bytes from `a` to `b`; gives the time and the packets that came to `b`.
fn send_by_tcp(lab: &Lab, bytes: usize) -> (Duration, u64) {
    let packets = || {
        let mut route = lab.inside(&host("b"), Route::open).expect("inside").expect("netlink");
        let links = route.links().expect("links");
        links.iter().find(|link| link.name == "eth0").expect("eth0").counters.rx_packets
    };
    let (mut near, mut far) = connected(lab);
    let before = packets();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || near.write_all(&vec![7; bytes]).expect("send"));
        assert_eq!(far.read_to_end(&mut Vec::new()).expect("receive"), bytes);
    });
    (start.elapsed(), packets() - before)
}

#[lab_test]
fn a_queue_of_the_host_holds_back_what_it_sends_and_drops_the_rest() {
    const RATE: u64 = 10_000_000;
    let _alone = alone();
    for link in ["", "link = { rate = '1Gbit/s' }\n"] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\n{link}[[fault]]\nkind = 'host-queue'\nat = 'a'\nrate = '10Mbit/s'\n\
             queue = '20KB'"
        ));
        let near = socket(&lab, "a", "198.18.0.1");
        let far = socket(&lab, "b", "198.18.0.2");
        let flood = flood(&near, &far, 1472, 1, |time, _| time > FLOOD);
        flood.fills(RATE, 1472, 0.05, SHAPER_BURST, "the host's queue");
        let qdiscs = lab.inside(&host("a"), || Route::open()?.qdiscs()).expect("inside").expect("qdiscs");
        let root = qdiscs.iter().find(|qdisc| qdisc.root() && qdisc.kind == "tbf").expect("a token bucket");
        let lost = flood.sent - flood.received;
        assert!(lost > 0 && root.drops >= lost && root.drops <= lost + 5, "{} dropped, {lost} missing", root.drops);
        assert!(root.overlimits > 0);
        // The speed that the agent is told is the link's.
        assert_eq!(agent_told("--name a ").contains("--link-speed eth0=1000000000bit/s"), !link.is_empty());
    }
}

#[lab_test]
fn an_agent_is_told_a_wrong_speed() {
    let _alone = alone();
    let lab =
        up("name = 'x'\nhosts = ['a', 'b']\nlink = { rate = '1Gbit/s' }\n[[fault]]\nkind = 'wrong-speed'\nat = 'a'\n\
         declared = '10Mbit/s'");
    for (name, speed) in [("a", "10000000"), ("b", "1000000000")] {
        let told = agent_told(&format!("--name {name} "));
        assert!(told.contains(&format!("--link-speed eth0={speed}bit/s")), "{told}");
    }
    wait_for(lab.down());
}

#[lab_test]
fn an_interface_without_offloads_carries_frame_by_frame() {
    const BYTES: usize = 2_000_000;
    let _alone = alone();
    let lab = up_with("kind = 'no-offload'\nat = 'a'");
    let features = |name: &str| lab.inside(&host(name), || Ethtool::open()?.features("eth0"));
    let of_a = features("a").expect("inside").expect("features");
    for feature in ["tx-tcp-segmentation", "tx-generic-segmentation", "rx-gro"] {
        assert_eq!(of_a.get(feature), Some(&false), "{feature}");
    }
    assert_eq!(features("b").expect("inside").expect("features")["tx-tcp-segmentation"], true);
    let (_, packets) = send_by_tcp(&lab, BYTES);
    assert!(packets >= (BYTES / 1460) as u64, "{packets} packets");
    let (_, packets) = send_by_tcp(&up("name = 'x'\nhosts = ['a', 'b']"), BYTES);
    assert!(packets < (BYTES / 1460 / 2) as u64, "{packets} packets where packets are not cut");
}

#[lab_test]
fn faults_at_hosts_end_with_the_lab_however_it_ends() {
    let _alone = alone();
    let before = Outside::now();
    let faults = [
        "kind = 'softirq-load'\nat = 'b'\ncost = '5us'",
        "kind = 'one-core'\nat = 'a'",
        "kind = 'drop-filter'\nat = 'b'\nabove = '20k'",
        "kind = 'drop-filter'\nat = 'b'\nabove = '20k'\nby = 'netfilter'",
        "kind = 'tcp-memory'\nat = 'b'\nreceive = '64KiB'\nsend = '64KiB'",
        "kind = 'host-queue'\nat = 'b'\nrate = '10Mbit/s'\nqueue = '64KiB'",
        "kind = 'wrong-speed'\nat = 'b'\ndeclared = '10Mbit/s'",
        "kind = 'no-offload'\nat = 'b'",
    ];
    for device in ["bridge", "router", "none"] {
        let faults = faults.map(|fault| format!("[[fault]]\n{fault}\n")).concat();
        let text = format!("name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\n{faults}");
        wait_for(up(&text).down());
        assert_eq!(Outside::now(), before, "{device}");

        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("x.toml");
        fs::write(&file, text).expect("bench file");
        let mut program = Program::start(&mut bench_command(folder.path()), &[&file.display().to_string()]);
        assert_eq!(program.line(), "up");
        let spaces = namespaces_of_agents(&before);
        assert_eq!(spaces.names.len(), 2);
        program.kill();
        nothing_stays(&before, &spaces);
    }
}
