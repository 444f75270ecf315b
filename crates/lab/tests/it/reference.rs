//! The reference device keeps to its limits, exactly.

use crate::support::{host, reaches, socket, try_up, up, wait_for};
use aya::programs::ProgramInfo;
use linerate_lab::{Bench, Lab};
use linerate_sys::netlink::Route;
use linerate_sys::packet::{Incoming, PacketSocket};
use linerate_testsuite::{alone, lab_test, wait_until};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::unistd::Pid;
use std::fs;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

/// An EtherType for experiments (IEEE 802): no kernel sends or answers it.
const TEST: u16 = 0x88b5;
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
/// Frames that must come are waited for so long, milliseconds.
const LONG: u16 = 30_000;
/// When they have come, others are counted until none has come for so long, milliseconds.
const SILENCE: u16 = 200;
/// Frames per second that no queue of a virtual link loses, which holds 256: not if whoever empties it has to wait a
/// fifth of a second.
const GENTLE: f64 = 1_000.0;
/// Frames that may wait unless said otherwise: enough to keep the device busy while the sender waits for its core.
const QUEUE: usize = 256;
const DEVICE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];

/// A tester's three ports on a reference device.
struct Tester {
    lab: Lab,
    ports: Vec<PacketSocket>,
}

impl Tester {
    fn new(limits: &str, protocol: u16) -> Self {
        let device = format!("reference,{limits}").parse().expect("a device");
        let lab = try_up(&Bench::find("tester").expect("built in").with_device(device)).expect("a lab");
        let open = || {
            let mut route = Route::open().expect("netlink");
            let open = |port: u8| {
                let link = route.index_of(&format!("p{port}")).expect("a port");
                let socket = PacketSocket::open(link, Some(protocol)).expect("a packet socket");
                socket.hear_all().expect("promiscuous");
                socket.stamp_and_hold(64 << 20).expect("a receive buffer");
                socket
            };
            (0..3).map(open).collect()
        };
        let ports = lab.inside(&host("tester"), open).expect("inside");
        // The tester's core; the device has the last.
        linerate_sys::affinity::pin(0).expect("a core");
        Self { lab, ports }
    }

    /// The frames for `port`: at least so many if they come at all, and those that follow them.
    fn arrived(&self, port: usize, at_least: usize) -> Vec<Vec<u8>> {
        let mut incoming = Incoming::new(256);
        let mut frames = Vec::new();
        while self.ports[port].wait(if frames.len() < at_least { LONG } else { SILENCE }) {
            incoming.take(&self.ports[port]).expect("recvmmsg");
            frames.extend(incoming.frames().map(|(frame, _)| frame.to_vec()));
        }
        assert_eq!(self.ports[port].overflowed().expect("statistics"), 0, "the test itself lost frames");
        frames
    }

    /// Sends `count` frames from port 0 at `rate` a second or, if this thread has to wait for its core, less: it makes
    /// up for nothing, since a burst is a load of its own. Gives the time from the first to the last.
    fn send(&self, frame: &[u8], count: u64, rate: f64) -> Duration {
        let gap = Duration::from_secs_f64(1.0 / rate);
        let start = Instant::now();
        let mut due = start;
        for _ in 0..count {
            while Instant::now() < due {
                thread::yield_now();
            }
            self.ports[0].send(frame).expect("send");
            due = (due + gap).max(Instant::now());
        }
        start.elapsed()
    }

    /// Sends `count` frames from port 0, each when it is due at `rate` a second or, if this thread has to wait for its
    /// core, as soon as it can: more than the device forwards is there all the time.
    fn overload(&self, frame: &[u8], count: u32, rate: f64) -> Overload {
        let start = Instant::now();
        let mut last = start;
        let mut offered = Duration::ZERO;
        for number in 0..count {
            while start.elapsed() < Duration::from_secs_f64(f64::from(number) / rate) {
                thread::yield_now();
            }
            self.ports[0].send(frame).expect("send");
            let now = Instant::now();
            offered += (now - last).min(PAUSE);
            last = now;
        }
        Overload { span: start.elapsed(), offered }
    }

    /// The device learns that `mac` is behind `port`, each port's frames by a thread of its own.
    fn teach(&self, port: usize, mac: [u8; 6]) {
        self.ports[port].send(&frame([2, 9, 9, 9, 9, 9], mac, TEST, &[0; 46])).expect("send");
    }
}

fn mac(group: u8, number: u16) -> [u8; 6] {
    let [high, low] = number.to_be_bytes();
    [2, group, 0, 0, high, low]
}

fn frame(to: [u8; 6], from: [u8; 6], protocol: u16, payload: &[u8]) -> Vec<u8> {
    [&to[..], &from, &protocol.to_be_bytes(), payload].concat()
}

/// The sum of RFC 1071; over a whole header or message with its checksum it is all ones.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// In a longer pause of its sender the device may have been idle.
const PAUSE: Duration = Duration::from_millis(20);

/// For how long a device was offered more than it forwards.
struct Overload {
    /// From the first frame to the last.
    span: Duration,
    /// The same with no pause longer than [`PAUSE`].
    offered: Duration,
}

/// Checks a count against a limit that was offered twice as much: never more, besides `waiting` that pass after it. A
/// sender that waits for its core leaves the device idle now and then, so it may be less.
fn keeps(passed: usize, per_second: f64, Overload { span, offered }: Overload, waiting: usize, what: &str) {
    let passed = passed as f64;
    let limit = per_second * span.as_secs_f64();
    eprintln!("{what}: {passed} in {span:?}, {:.4} of the limit", passed / limit);
    assert!(passed <= limit * 1.001 + waiting as f64 + 1.0, "{what}: {passed} in {span:?} exceed {per_second}/s");
    let least = per_second * offered.as_secs_f64() * 0.05;
    assert!(passed >= least, "{what}: only {passed} in {offered:?} of {per_second}/s");
}

#[lab_test]
fn without_limits_it_is_a_switch() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b', 'c']\ndevice = { kind = 'reference' }");
    for (from, to) in [("198.18.0.1", "198.18.0.2"), ("2001:2::1", "2001:2::2")] {
        let near = socket(&lab, "a", from);
        let far = socket(&lab, "b", to);
        for bytes in [1, 1400, 8000] {
            reaches(&near, &far, bytes);
            reaches(&far, &near, bytes);
        }
    }
    wait_for(lab.down());
}

#[lab_test]
fn it_loses_exactly_what_is_planted() {
    let _alone = alone();
    let tester = Tester::new("loss=3/1000", TEST);
    tester.teach(1, mac(1, 1));
    assert_eq!(tester.arrived(0, 1).len(), 1, "learnt before the others come");
    let to_known = frame(mac(1, 1), mac(0, 1), TEST, &[0; 46]);
    // With the frame that taught it, 2,000.
    tester.send(&to_known, 1_999, GENTLE);
    assert_eq!(tester.arrived(1, 1_999 - 6).len(), 1_999 - 6);
    assert_eq!(tester.arrived(2, 1).len(), 1, "only the first went to every port");
}

#[lab_test]
fn it_forwards_so_many_frames_and_no_more() {
    let _alone = alone();
    let tester = Tester::new("max-frames=2000", TEST);
    let to_known = frame(mac(1, 1), mac(0, 1), TEST, &[0; 46]);
    tester.teach(1, mac(1, 1));
    tester.send(&to_known, 500, GENTLE);
    assert_eq!(tester.arrived(1, 500).len(), 500, "below the limit");
    let overload = tester.overload(&to_known, 4_000, 4_000.0);
    // What waits at the end passes too: the queue and the one in service.
    keeps(tester.arrived(1, 1).len(), 2_000.0, overload, QUEUE + 1, "frames");
}

#[lab_test]
fn it_forwards_so_many_bits_and_no_more() {
    let _alone = alone();
    let tester = Tester::new("max-rate=2Mbit/s", TEST);
    tester.teach(1, mac(1, 1));
    for payload in [46, 986] {
        let to_known = frame(mac(1, 1), mac(0, 1), TEST, &vec![0; payload]);
        let bits = (payload + 14 + 24) as f64 * 8.0;
        let rate = 2e6 / bits;
        let overload = tester.overload(&to_known, (2.0 * rate) as u32, 2.0 * rate);
        keeps(
            tester.arrived(1, 1).len(),
            rate,
            overload,
            QUEUE + 1,
            &format!("frames with a payload of {payload} bytes"),
        );
    }
}

#[lab_test]
fn a_burst_fills_the_queue() {
    let _alone = alone();
    // A frame takes a second: the whole burst comes while the first is in service.
    let tester = Tester::new("max-frames=1,queue=64", TEST);
    let burst = frame(mac(1, 1), mac(0, 1), TEST, &[0; 46]);
    assert_eq!(tester.ports[0].send_many(&[&burst[..]; 150]).expect("send"), 150);
    assert_eq!(tester.arrived(1, 64 + 1).len(), 64 + 1);
}

#[lab_test]
fn it_says_when_it_had_no_time_to_keep_its_limits() {
    let _alone = alone();
    let tester = Tester::new("max-frames=1000000000", TEST);
    let watch = tester.lab.reference().expect("a reference device with limits");
    tester.teach(1, mac(1, 1));
    let to_known = frame(mac(1, 1), mac(0, 1), TEST, &[0; 46]);
    tester.send(&to_known, 200, GENTLE);
    assert_eq!(tester.arrived(1, 200).len(), 200);
    assert_eq!(watch.missed().expect("counters"), None, "it kept them");

    // The device's port is served by a thread on the core of the sender, which goes before it: more frames come than
    // can wait.
    let core = available_parallelism().expect("cores").get() as u32 - 1;
    tester.lab.inside(&host("device"), || serve_by_thread("tester-p0", core)).expect("inside");
    let burst = || {
        linerate_sys::affinity::pin(core).expect("a core");
        linerate_sys::thread::go_before_all().expect("root");
        for _ in 0..2_000 {
            // Some kernels tell the sender, too, that the device has no room.
            let _ = tester.ports[0].send(&to_known);
        }
    };
    thread::scope(|scope| scope.spawn(burst).join()).expect("sent");
    let said = watch.missed().expect("counters").expect("a warning");
    assert!(said.contains("did not keep its limits") && said.contains("frames found no room at its ports"), "{said}");
    let passed = tester.arrived(1, 1).len();
    let lost: usize = said.split_whitespace().find_map(|word| word.parse().ok()).expect("a number");
    assert_eq!(passed + lost, 2_000, "{said}");
}

#[lab_test]
fn a_device_without_limits_has_none_to_miss() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'reference', addresses = 10 }");
    assert!(lab.reference().is_none());
    wait_for(lab.down());
    let lab = up("name = 'x'\nhosts = ['a', 'b']\ndevice = { kind = 'reference', loss = '1/1000' }");
    assert!(lab.reference().is_some());
    wait_for(lab.down());
}

/// Gives the receive queue of an interface of this namespace a kernel thread of its own, on that core. The calling
/// thread gets a /sys that shows the interface.
fn serve_by_thread(interface: &str, core: u32) {
    unshare(CloneFlags::CLONE_NEWNS).expect("a mount namespace");
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("private mounts");
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none).expect("a /sys");
    fs::write(format!("/sys/class/net/{interface}/threaded"), "1").expect("a thread");
    let mut cores = CpuSet::new();
    cores.set(core as usize).expect("a core");
    let named = format!("napi/{interface}");
    // The kernel cuts names of threads at 15 bytes.
    let named = &named.as_bytes()[..named.len().min(15)];
    let mut found = 0;
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if fs::read(process.path().join("comm")).is_ok_and(|comm| comm.starts_with(named)) {
            sched_setaffinity(Pid::from_raw(number), &cores).expect("root");
            found += 1;
        }
    }
    assert!(found > 0, "no thread serves {interface}");
}

#[lab_test]
fn it_learns_so_many_addresses_and_floods_the_rest() {
    let _alone = alone();
    for addresses in [1, 100, 1_000] {
        let tester = Tester::new(&format!("addresses={addresses}"), TEST);
        let stations = addresses + 50;
        let gap = Duration::from_secs_f64(1.0 / GENTLE);
        for number in 0..stations {
            tester.teach(1, mac(1, number));
            thread::sleep(gap);
        }
        // Frames that teach go to every other port.
        assert_eq!(tester.arrived(2, stations.into()).len(), usize::from(stations));
        for number in 0..stations {
            tester.ports[0].send(&frame(mac(1, number), mac(0, 1), TEST, &[0; 46])).expect("send");
            thread::sleep(gap);
        }
        assert_eq!(tester.arrived(1, stations.into()).len(), usize::from(stations));
        let flooded: Vec<_> = tester.arrived(2, 50).into_iter().map(|frame| frame[..6].to_vec()).collect();
        let unknown: Vec<_> = (addresses..stations).map(|number| mac(1, number).to_vec()).collect();
        assert_eq!(flooded, unknown, "addresses={addresses}");
    }
}

#[lab_test]
fn it_answers_for_its_address() {
    let _alone = alone();
    let tester = Tester::new("echo=1000", ARP);
    let own = mac(0, 1);
    let question =
        [&[0, 1, 8, 0, 6, 4, 0, 1][..], &own, &[198, 18, 0, 1], &[0; 6], &[198, 18, 0, 254], &[0; 18]].concat();
    tester.ports[0].send(&frame([0xff; 6], own, ARP, &question)).expect("send");
    let answers = tester.arrived(0, 1);
    let [answer] = &answers[..] else { panic!("{answers:?}") };
    let expected = [&[0, 1, 8, 0, 6, 4, 0, 2][..], &DEVICE_MAC, &[198, 18, 0, 254], &own, &[198, 18, 0, 1]].concat();
    assert_eq!(answer[..14], frame(own, DEVICE_MAC, ARP, &[]));
    assert_eq!(answer[14..42], expected);
}

#[lab_test]
fn it_answers_so_many_echoes_and_no_more() {
    let _alone = alone();
    let tester = Tester::new("echo=200", IPV4);
    let own = mac(0, 1);
    let mut ip = [&[0x45, 0, 0, 60, 0, 0, 0, 0, 64, 1, 0, 0][..], &[198, 18, 0, 1], &[198, 18, 0, 254]].concat();
    let checksum = (!sum(&ip)).to_be_bytes();
    ip[10..12].copy_from_slice(&checksum);
    let mut message = [&[8, 0, 0, 0, 0xab, 0xcd, 0, 7][..], &[0x5a; 32]].concat();
    let checksum = (!sum(&message)).to_be_bytes();
    message[2..4].copy_from_slice(&checksum);
    let request = frame(DEVICE_MAC, own, IPV4, &[ip, message.clone()].concat());

    // So few that those of a quarter of a second may bunch on their way to the device.
    tester.send(&request, 30, 30.0);
    let answers = tester.arrived(0, 30);
    assert_eq!(answers.len(), 30, "below the limit");
    let answer = &answers[0];
    assert_eq!(answer[..14], frame(own, DEVICE_MAC, IPV4, &[]));
    assert_eq!((sum(&answer[14..34]), &answer[26..34]), (0xffff, &[198, 18, 0, 254, 198, 18, 0, 1][..]));
    assert_eq!((sum(&answer[34..]), answer[34], &answer[38..]), (0xffff, 0, &message[4..]));

    let overload = tester.overload(&request, 400, 400.0);
    // The most that may bunch: eight, and the one being answered.
    keeps(tester.arrived(0, 1).len(), 200.0, overload, 9, "echoes");
}

#[lab_test]
fn its_program_goes_with_the_lab() {
    let _alone = alone();
    // A table of addresses of this size tells the program from those of other tests.
    const ADDRESSES: u32 = 7_321;
    let programs = || {
        let maps = aya::maps::loaded_maps().filter_map(Result::ok).filter(|map| map.max_entries() == ADDRESSES);
        let maps: Vec<u32> = maps.map(|map| map.id()).collect();
        let has_one = |program: &ProgramInfo| {
            program.map_ids().ok().flatten().is_some_and(|ids| ids.iter().any(|id| maps.contains(id)))
        };
        let loaded = aya::programs::loaded_programs().filter_map(Result::ok);
        loaded.filter(|program| program.name() == b"reference" && has_one(program)).count()
    };
    assert_eq!(programs(), 0);
    let tester = Tester::new(&format!("addresses={ADDRESSES}"), TEST);
    assert_eq!(programs(), 1);
    wait_for(tester.lab.down());
    drop(tester.ports);
    // The kernel removes a namespace, and with it its programs, by a worker of its own, in its own time.
    wait_until("the program goes", || (programs() == 0).then_some(()));
}
