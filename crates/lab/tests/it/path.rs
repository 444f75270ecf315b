//! A path does to frames what is planted, and says what it did.
//!
//! Two hosts talk by UDP through it. A busy machine makes frames later, so times are bounded from below, and from above
//! only by the shortest of many. The kernel says when each came: the thread that reads them may have to wait for its
//! core.

use crate::support::{fake_agent, host, wait_for};
use linerate_lab::{Bench, DirectionCounts, Lab, LabError, LabOptions, PathCounts};
use linerate_sys::clock;
use linerate_sys::socket::{force_receive_buffer, path_mtu};
use linerate_testsuite::{alone, lab_test, wait_until};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{Ipv4Tos, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
/// Between datagrams that are to be counted, nanoseconds. What comes at once in thousands overflows the input queue of
/// a host.
const GAP: u64 = 20_000;
/// A datagram that must come is waited for so long.
const LONG: Duration = Duration::from_secs(30);
/// Once the path has sent all, nothing more comes after so long without a datagram.
const SILENCE: Duration = Duration::from_millis(500);

/// Two hosts with a path between them, and a socket in each.
struct Pair {
    lab: Lab,
    near: UdpSocket,
    far: UdpSocket,
    to: SocketAddr,
}

fn try_up(bench: &Bench) -> Result<Lab, LabError> {
    wait_for(Lab::up(bench, &LabOptions { program: fake_agent(), keep: false, folders: Vec::new() }))
}

impl Pair {
    fn new(limits: &str) -> Self {
        let bench =
            Bench::named("cable").expect("built in").with_device(format!("path,{limits}").parse().expect(limits));
        Self::of(&bench, false)
    }

    fn of(bench: &Bench, v6: bool) -> Self {
        let lab = try_up(bench).expect("a lab");
        let [near, far] = ["a", "b"].map(|name| {
            let number = if name == "a" { 1 } else { 2 };
            let address = if v6 { format!("[2001:2::{number}]:0") } else { format!("198.18.0.{number}:0") };
            let socket = lab.inside(&host(name), || UdpSocket::bind(address)).expect("inside").expect("bind");
            socket.set_read_timeout(Some(LONG)).expect("timeout");
            setsockopt(&socket, ReceiveTimestampns, &true).expect("SO_TIMESTAMPNS");
            // Room for all that a test sends, however long this thread waits for its core.
            force_receive_buffer(socket.as_fd(), 64 << 20).expect("a receive buffer");
            socket
        });
        let to = far.local_addr().expect("address");
        Self { lab, near, far, to }
    }

    /// Sends a datagram of `bytes` bytes that begins with `number`.
    fn send(&self, number: u64, bytes: usize) {
        let mut datagram = number.to_be_bytes().to_vec();
        datagram.resize(bytes, 0x5a);
        self.near.send_to(&datagram, self.to).expect("send");
    }

    /// Sends `count` numbered datagrams, `gap` nanoseconds or more apart, and receives what comes of them: the numbers,
    /// and when each came, nanoseconds since 1970.
    fn exchange(&self, count: u64, bytes: usize, gap: u64) -> Vec<(u64, u64)> {
        self.send_all(count, bytes, gap);
        self.receive_all()
    }

    /// Sends `count` numbered datagrams, `gap` nanoseconds or more apart, and waits until all have come to the path.
    fn send_all(&self, count: u64, bytes: usize, gap: u64) {
        let before = self.counts().arrived;
        for number in 0..count {
            // After a pause of this thread no burst follows.
            let next = clock::now() + gap;
            self.send(number, bytes);
            clock::spin_until(next);
        }
        wait_until("all come to the path", || (self.counts().arrived >= before + count).then_some(()));
    }

    /// Receives what was sent, once nothing is in the path any more.
    fn receive_all(&self) -> Vec<(u64, u64)> {
        wait_until("the path has sent or dropped all", || {
            let DirectionCounts { arrived, duplicated, sent, lost, queue_full, too_large, .. } = self.counts();
            (sent + lost + queue_full + too_large >= arrived + duplicated).then_some(())
        });
        self.far.set_read_timeout(Some(SILENCE)).expect("timeout");
        let received = std::iter::from_fn(|| self.next()).collect();
        self.far.set_read_timeout(Some(LONG)).expect("timeout");
        received
    }

    /// The number of the next datagram, and when it came, nanoseconds since 1970.
    fn next(&self) -> Option<(u64, u64)> {
        let mut datagram = [0; 2_048];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut pieces = [IoSliceMut::new(&mut datagram)];
        let socket = self.far.as_raw_fd();
        let message = match recvmsg::<()>(socket, &mut pieces, Some(&mut control), MsgFlags::empty()) {
            Err(Errno::EAGAIN) => return None,
            // The tests were stopped for a while (Ctrl-Z).
            Err(Errno::EINTR) => return self.next(),
            message => message.expect("recvmsg"),
        };
        let stamp = message.cmsgs().expect("control messages").find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let length = message.bytes;
        let stamp = stamp.expect("SO_TIMESTAMPNS");
        assert!(length >= 8, "a datagram of {length} bytes");
        Some((u64::from_be_bytes(datagram[..8].try_into().expect("8 bytes")), stamp.as_nanos() as u64))
    }

    /// What the path did to the frames for b. They are published when nothing is on its way any more.
    fn counts(&self) -> DirectionCounts {
        let counts = self.path();
        assert_eq!(counts.missed, 0, "the path itself lost frames");
        counts.to[&host("b")]
    }

    fn path(&self) -> PathCounts {
        self.lab.path_counts().expect("counts").expect("a path")
    }

    /// A counter of /proc/net/snmp in host b.
    fn counter(&self, protocol: &str, name: &str) -> u64 {
        let text = self.lab.inside(&host("b"), || std::fs::read_to_string("/proc/thread-self/net/snmp"));
        let text = text.expect("inside").expect("snmp");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{protocol}: ")));
        let names = lines.next().expect("names");
        let values = lines.next().expect("values");
        let place = names.split(' ').position(|other| other == name).expect("the counter");
        values.split(' ').nth(place).expect("a value").parse().expect("a number")
    }
}

#[lab_test]
fn no_datagram_is_sooner_than_the_delay_and_some_are_hardly_later() {
    let _alone = alone();
    let pair = Pair::new("delay=20ms");
    let mut times = Vec::new();
    for number in 0..100 {
        let sent = clock::unix_now();
        pair.send(number, 64);
        times.push(pair.next().expect("it arrives").1 - sent);
    }
    let shortest = times.iter().min().expect("some");
    eprintln!("the shortest took {shortest} ns");
    // Frames are sent as much earlier as sending takes.
    assert!(*shortest >= 20 * MS - 50_000 && *shortest < 25 * MS, "{shortest}");
    assert_eq!(pair.path().to[&host("b")].lost, 0);
}

#[lab_test]
fn each_direction_has_its_own_limits() {
    let _alone = alone();
    let text = "name = 'x'\nhosts = ['a', 'b']\n[device]\nkind = 'path'\ndelay = '1ms'\n[links.b.path]\ndelay = '30ms'";
    let pair = Pair::of(&Bench::parse(text, "test").expect("a bench"), false);
    let answer_to = pair.near.local_addr().expect("address");
    let mut there = u64::MAX;
    let mut back = u64::MAX;
    for number in 0..20 {
        let sent = clock::unix_now();
        pair.send(number, 64);
        there = there.min(pair.next().expect("it arrives").1 - sent);
        let sent = clock::now();
        pair.far.send_to(&[0; 64], answer_to).expect("send");
        pair.near.recv_from(&mut [0; 64]).expect("it arrives");
        back = back.min(clock::now() - sent);
    }
    assert!((29 * MS..45 * MS).contains(&there) && (900_000..15 * MS).contains(&back), "{there} and {back}");
}

#[lab_test]
fn a_loaded_path_forwards_its_rate_and_no_more() {
    let _alone = alone();
    let pair = Pair::new("rate=20Mbit/s,queue=2MiB");
    // 1,000 bytes, and 66 around them on the wire. They come ten times as fast and wait in the queue.
    let begun = clock::unix_now();
    let received = pair.exchange(1_000, 1_000, GAP);
    assert_eq!(received.len(), 1_000);
    let rate = 1_000.0 * 1_066.0 * 8.0 * 1e9 / (received[999].1 - begun) as f64;
    eprintln!("{rate} bit/s");
    // Frames are sent as much earlier as sending takes.
    assert!(rate < 20e6 * 1.001, "{rate}");
    // A sender that waits for its core leaves the path idle: where the queue was never empty the rate is kept. The
    // kernel stamps datagrams from soon after the first socket that wants it; until then they have the time at which
    // they are read.
    let times = received.windows(200).filter_map(|part| part[199].1.checked_sub(part[0].1));
    let shortest = times.min().expect("1,000 came");
    assert!(199.0 * 1_066.0 * 8.0 * 1e9 / shortest as f64 > 20e6 * 0.3, "the fastest 200 took {shortest} ns");
    let counts = pair.counts();
    assert_eq!((counts.arrived, counts.queue_full), (counts.sent, 0), "{counts:?}");
}

#[lab_test]
fn a_burst_fills_the_queue_and_the_rest_is_dropped() {
    let _alone = alone();
    // A frame takes 17 ms: on most machines the whole burst comes while the first is in service.
    let pair = Pair::new("rate=500kbit/s,queue=10420");
    let begun = Instant::now();
    pair.send_all(50, 1_000, 0);
    let coming = begun.elapsed();
    let received = pair.receive_all().len() as u64;
    // Ten of 1,042 bytes wait, one or two are in service, and each that is served while others come leaves room for one
    // more.
    let most = 12 + coming.as_millis() as u64 / 17;
    assert!((10..=most).contains(&received), "{received} of at most {most}, which came in {coming:?}");
    assert_eq!(pair.counts().queue_full, 50 - received);
}

#[lab_test]
fn losses_are_counted_and_as_planted() {
    let _alone = alone();
    for limits in ["loss=10%", "loss=10%,loss-burst=4"] {
        let pair = Pair::new(limits);
        let received = pair.exchange(10_000, 64, GAP);
        let counts = pair.counts();
        eprintln!("{limits}: {counts:?}");
        assert_eq!(received.len() as u64 + counts.lost, 10_000);
        // Six standard deviations of the longer runs.
        assert!((400..1_700).contains(&counts.lost), "{}", counts.lost);
        wait_for(pair.lab.down());
    }
}

#[lab_test]
fn corrupted_datagrams_fail_the_receivers_checksum() {
    let _alone = alone();
    let pair = Pair::new("corrupt=20%");
    let before = pair.counter("Udp", "InCsumErrors");
    let received = pair.exchange(2_000, 200, GAP);
    let corrupted = pair.counts().corrupted;
    let errors = pair.counter("Udp", "InCsumErrors") - before;
    assert!((200..600).contains(&corrupted), "{corrupted}");
    assert_eq!((errors, received.len() as u64), (corrupted, 2_000 - corrupted));
}

#[lab_test]
fn duplicates_arrive_twice() {
    let _alone = alone();
    let pair = Pair::new("duplicate=10%");
    let received = pair.exchange(2_000, 64, GAP);
    let numbers: BTreeSet<u64> = received.iter().map(|(number, _)| *number).collect();
    let twice = pair.counts().duplicated;
    assert!((100..300).contains(&twice), "{twice}");
    assert_eq!((numbers.len() as u64, received.len() as u64), (2_000, 2_000 + twice));
}

#[lab_test]
fn reordered_datagrams_arrive_behind_later_ones() {
    let _alone = alone();
    let pair = Pair::new("reorder=5%");
    let received = pair.exchange(2_000, 64, GAP);
    assert_eq!(received.len(), 2_000);
    let mut highest = 0;
    let behind = received.iter().filter(|(number, _)| {
        let behind = *number < highest;
        highest = highest.max(*number);
        behind
    });
    let behind = behind.count() as u64;
    let reordered = pair.counts().reordered;
    assert!((50..200).contains(&reordered), "{reordered}");
    // Of two held back at once the later leaves behind the earlier, which it had never overtaken.
    assert!(behind <= reordered && behind >= reordered / 2, "{behind} of {reordered}");
}

#[lab_test]
fn a_long_queue_marks_datagrams_that_allow_it() {
    let _alone = alone();
    let pair = Pair::new("rate=5Mbit/s,queue=64KiB,mark=8KiB");
    // ECT(0), RFC 3168.
    setsockopt(&pair.near, Ipv4Tos, &0b10).expect("IP_TOS");
    let before = extended(&pair, "InCEPkts");
    let received = pair.exchange(50, 1_000, 0);
    let marked = pair.counts().marked;
    let seen = extended(&pair, "InCEPkts") - before;
    assert_eq!(received.len(), 50, "the checksums of marked datagrams are whole");
    // How long the queue gets depends on the sender's pauses.
    assert!(marked > 0, "none of 50 was marked");
    assert_eq!(seen, marked);
}

/// A counter of the IpExt lines of /proc/net/netstat in host b.
fn extended(pair: &Pair, name: &str) -> u64 {
    let text = pair.lab.inside(&host("b"), || std::fs::read_to_string("/proc/thread-self/net/netstat"));
    let text = text.expect("inside").expect("netstat");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let names = lines.next().expect("names");
    let values = lines.next().expect("values");
    let place = names.split(' ').position(|other| other == name).expect("the counter");
    values.split(' ').nth(place).expect("a value").parse().expect("a number")
}

#[lab_test]
fn max_frames_limits_small_frames() {
    let _alone = alone();
    let pair = Pair::new("max-frames=1000,queue=1MiB");
    let begun = clock::unix_now();
    let received = pair.exchange(1_000, 18, GAP);
    assert_eq!(received.len(), 1_000);
    let rate = 1_000.0 * 1e9 / (received[999].1 - begun) as f64;
    eprintln!("{rate} frames/s");
    assert!(rate < 1_001.0 && rate > 300.0, "{rate}");
}

#[lab_test]
fn slots_gather_datagrams() {
    let _alone = alone();
    let pair = Pair::new("slots=50ms");
    let received = pair.exchange(500, 64, MS);
    assert_eq!(received.len(), 500);
    let gathered = received.windows(2).filter(|pair| pair[1].1 - pair[0].1 > 30 * MS).count() as u64;
    // They come in 500 ms, or more if their sender has to wait for its core. A path that has to wait makes one of two
    // slots.
    let slots = (received[499].1 - received[0].1) / (50 * MS);
    assert!((3..=slots + 1).contains(&gathered), "{gathered} of {slots}");
}

#[lab_test]
fn rates_take_turns() {
    let _alone = alone();
    let pair = Pair::new("alternate=1Mbit/s:20Mbit/s:200ms,queue=4MiB");
    // All wait in the queue: 1.2 s at the mean of the rates.
    let received = pair.exchange(1_500, 1_000, GAP);
    assert_eq!(received.len(), 1_500);
    let times = || received.iter().map(|(_, at)| *at);
    let begun = times().min().expect("some came");
    let ended = times().max().expect("some came");
    // In pieces of 20 ms: two frames at 1 Mbit/s, 47 at 20 Mbit/s. None come while the sender waits for its core.
    let mut pieces = vec![0u32; ((ended - begun) / (20 * MS)) as usize + 1];
    times().for_each(|at| pieces[((at - begun) / (20 * MS)) as usize] += 1);
    let slow = pieces.iter().filter(|count| (1..=5).contains(*count)).count();
    let fast = pieces.iter().filter(|count| **count >= 30).count();
    // A path that waits for its core makes up for it later.
    assert!(slow >= 5 && fast >= 5, "{pieces:?}");
}

#[lab_test]
fn a_large_packet_is_answered_by_icmp_or_by_nothing() {
    let _alone = alone();
    let bench = |silent: bool| {
        let device = format!("path,mtu=1400,mtu-silent={silent}").parse().expect("a device");
        Bench::named("cable").expect("built in").with_device(device)
    };
    for v6 in [false, true] {
        let header = if v6 { 48 } else { 28 };
        let pair = Pair::of(&bench(false), v6);
        pair.near.connect(pair.to).expect("connect");
        pair.near.send(&vec![0; 1_401 - header]).expect("the host does not know yet");
        // The kernel learns it, and refuses the next.
        let mtu = || path_mtu(pair.near.as_fd(), v6).expect("an MTU");
        wait_until("the message comes", || (mtu() == 1_400).then_some(()));
        assert_eq!(pair.counts().too_large, 1);
        // The socket tells of the message once more.
        let _ = pair.near.take_error();
        assert!(pair.exchange_connected(1_400 - header), "what fits passes");
        wait_for(pair.lab.down());

        let pair = Pair::of(&bench(true), v6);
        pair.near.connect(pair.to).expect("connect");
        pair.near.send(&vec![0; 1_401 - header]).expect("sent");
        assert!(pair.exchange_connected(1_400 - header), "what fits passes");
        assert_eq!(pair.counts().too_large, 1);
        let mtu = path_mtu(pair.near.as_fd(), v6).expect("an MTU");
        assert_eq!(mtu, 1_500, "nobody told the host");
        wait_for(pair.lab.down());
    }
}

impl Pair {
    /// Whether a datagram of that size passes.
    fn exchange_connected(&self, bytes: usize) -> bool {
        self.near.send(&vec![0; bytes]).expect("send");
        self.next().is_some()
    }
}

#[test]
fn a_path_that_cannot_be_kept_is_refused() {
    for (limits, part) in [
        ("delay=1ms,jitter=2ms", "device.jitter"),
        ("rate=1Mbit/s,alternate=1Mbit/s:2Mbit/s:1s", "device.alternate"),
        ("loss-burst=3", "device.loss-burst"),
    ] {
        let device = format!("path,{limits}").parse().expect(limits);
        let bench = Bench::named("cable").expect("built in").with_device(device);
        let error = try_up(&bench).err().expect("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[lab_test]
fn its_process_goes_with_the_lab() {
    let _alone = alone();
    // A delay that no other test plants tells it from those of other tests.
    let processes = || {
        let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
        let lines = numbers.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains("delay=7654321ns")).count()
    };
    let pair = Pair::new("delay=7654321ns");
    assert_eq!(processes(), 1);
    wait_for(pair.lab.down());
    assert_eq!(processes(), 0);
}
