//! Links of a set rate carry what Ethernet of that rate carries, to the byte; planted loss is as planted.

use crate::support::{host, queue_drops, socket, up, wait_for};
use linerate_sys::udp;
use linerate_testsuite::{alone, lab_test};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes a datagram of `payload` takes on the line: IP and UDP headers (28), Ethernet header (14), the minimum, FCS,
/// preamble and gap (24).
fn on_the_wire(payload: u64) -> u64 {
    (payload + 28 + 14).max(60) + 24
}

/// What came of a flood.
pub(crate) struct Flood {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// From the first datagram sent to the last received.
    pub(crate) time: Duration,
}

/// How long a flood lasts.
pub(crate) const FLOOD: Duration = Duration::from_millis(500);

/// Sends as fast as the socket lets it until `enough`, which is told the time since the start and the datagrams sent,
/// and counts what comes. Each send carries `batch` datagrams, cut by the kernel.
pub(crate) fn flood(
    near: &UdpSocket,
    far: &UdpSocket,
    payload: usize,
    batch: usize,
    enough: impl Fn(Duration, u64) -> bool + Sync,
) -> Flood {
    near.connect(far.local_addr().expect("address")).expect("connect");
    if batch > 1 {
        udp::segment(near, payload.try_into().expect("a datagram")).expect("UDP_SEGMENT");
    }
    far.set_read_timeout(Some(Duration::from_millis(500))).expect("timeout");
    // The default buffer is small for a receiver that waits for its core.
    linerate_sys::socket::force_receive_buffer(std::os::fd::AsFd::as_fd(far), 32 << 20).expect("a receive buffer");
    let done = AtomicBool::new(false);
    let start = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let bytes = vec![7; payload * batch];
            // This thread may have begun late.
            let mut sent = 0;
            let begun = Instant::now();
            while !enough(begun.elapsed(), sent) {
                assert_eq!(near.send(&bytes).expect("a flood that waits, and loses nothing here"), bytes.len());
                sent += batch as u64;
            }
            done.store(true, Ordering::Relaxed);
            sent
        });
        let mut buffer = vec![0; 65_536];
        let mut received = 0;
        let mut time = Duration::ZERO;
        // Until the sender has ended and none has come for half a second.
        loop {
            let ended = done.load(Ordering::Relaxed);
            if far.recv(&mut buffer).is_ok() {
                (received, time) = (received + 1, start.elapsed());
            } else if ended {
                break;
            }
        }
        Flood { sent: sender.join().expect("sender"), received, time }
    })
}

impl Flood {
    /// Checks that the line carried its rate and no more. A sender that waits for its core leaves it idle now and then,
    /// so only `at_least` this part of it was used; the line makes up for `burst` of that.
    pub(crate) fn fills(&self, bits_per_second: u64, payload: usize, at_least: f64, burst: Duration, what: &str) {
        let rate = bits_per_second as f64 / 8.0 / on_the_wire(payload as u64) as f64;
        let most = rate * (self.time + burst).as_secs_f64() * 1.001 + 2.0;
        let used = self.received as f64 / (rate * self.time.as_secs_f64());
        eprintln!("{what}: {} in {:?}, {:.3} of the line", self.received, self.time, used);
        assert!(self.received as f64 <= most, "{what}: {} of at most {most} in {:?}", self.received, self.time);
        assert!(used >= at_least, "{what}: only {used:.3} of the line, {} in {:?}", self.received, self.time);
    }
}

/// What a shaper lets through at once after a pause (`EthernetShape::burst_bytes`), and a policer.
pub(crate) const SHAPER_BURST: Duration = Duration::from_millis(4);
const POLICER_BURST: Duration = Duration::from_millis(10);

#[lab_test]
fn a_shaped_link_carries_what_ethernet_of_its_rate_carries() {
    let _alone = alone();
    // At rates that one core sends and another receives with ease, so that the link is what limits.
    let slow = 10_000_000;
    let fast = 100_000_000;
    let flat = ["198.18.0.1", "198.18.0.2"];
    let routed = ["198.18.1.2", "198.18.2.2"];
    for (device, addresses, line, payloads) in [
        ("bridge", flat, slow, &[1, 18, 64, 1472][..]),
        ("bridge", flat, fast, &[1472]),
        ("none", flat, slow, &[64]),
        ("router", routed, fast, &[1472]),
    ] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\nlink = {{ rate = '{line}' }}"
        ));
        for payload in payloads {
            let near = socket(&lab, "a", addresses[0]);
            let far = socket(&lab, "b", addresses[1]);
            let before = queue_drops(&lab, "a");
            let flood = flood(&near, &far, *payload, 1, |time, _| time > FLOOD);
            let what = format!("{device} {line} bit/s, {payload} bytes");
            flood.fills(line, *payload, 0.05, SHAPER_BURST, &what);
            let lost = flood.sent - flood.received;
            let ahead = queue_drops(&lab, "a") - before;
            // What b's own queue had no room for while its core was held up is in no count.
            assert!(
                lost <= ahead + flood.sent / 20,
                "{what}: {lost} of {} lost in the bench, {ahead} ahead of it",
                flood.sent
            );
        }
        wait_for(lab.down());
    }
}

#[lab_test]
fn segmentation_cannot_cheat_the_line() {
    let _alone = alone();
    for (line, payload, batch) in [(100_000_000, 1472, 40), (100_000_000, 1472, 2), (10_000_000, 64, 60)] {
        let lab = up(&format!("name = 'x'\nhosts = ['a', 'b']\nlink = {{ rate = '{line}' }}"));
        let near = socket(&lab, "a", "198.18.0.1");
        let far = socket(&lab, "b", "198.18.0.2");
        let flood = flood(&near, &far, payload, batch, |time, _| time > FLOOD);
        flood.fills(line, payload, 0.05, SHAPER_BURST, &format!("{line} bit/s, {batch} x {payload} bytes a send"));
    }
}

#[lab_test]
fn planted_loss_is_as_planted_and_counted() {
    /// So few that all of them fit into the receiver's buffer.
    const SENT: u64 = 20_000;
    let _alone = alone();
    for (device, place, counted_at) in [("bridge", "a", "a"), ("bridge", "device:b", "b"), ("none", "a", "a")] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\nlink = {{ rate = '20Mbit/s' }}\n\
             [[fault]]\nkind = 'loss'\nat = '{place}'\nratio = '1/10'"
        ));
        let near = socket(&lab, "a", "198.18.0.1");
        let far = socket(&lab, "b", "198.18.0.2");
        let before = queue_drops(&lab, "a");
        let flood = flood(&near, &far, 64, 1, |_, sent| sent == SENT);
        let lost = flood.sent - flood.received;
        let ahead = queue_drops(&lab, "a") - before;
        let dropped = lab.dropped().expect("counters")[&host(counted_at)];
        let what = format!("{device} {place}: {dropped} counted, {ahead} dropped in queues, {lost} missing");
        // Of 20,000 datagrams 2,000, give or take 42 (one standard deviation); 250 is six of them.
        let met = flood.received + dropped;
        assert!(met > SENT / 2 && dropped.abs_diff(met / 10) < 250, "{what}");
        // What b's own queue had no room for while its core was held up is in no count.
        assert!(dropped + ahead + SENT / 20 >= lost && dropped <= lost + 5, "{what}");
    }
}

/// No device holds back what a policer lets through, and the hosts are told nothing.
#[lab_test]
fn a_policed_link_drops_what_exceeds_its_rate_and_counts_it() {
    let _alone = alone();
    let flat = ["198.18.0.1", "198.18.0.2"];
    let routed = ["198.18.1.2", "198.18.2.2"];
    for (device, addresses, rate, payload, batch) in [
        ("bridge", flat, 10_000_000, 1472, 1),
        ("bridge", flat, 20_000_000, 64, 1),
        ("router", routed, 100_000_000, 1472, 40),
    ] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\nlinks.b = {{ police = '{rate}' }}"
        ));
        let near = socket(&lab, "a", addresses[0]);
        let far = socket(&lab, "b", addresses[1]);
        let before = queue_drops(&lab, "a");
        let flood = flood(&near, &far, payload, batch, |time, _| time > FLOOD);
        let what = format!("{device} {rate} bit/s, {batch} x {payload} bytes a send");
        flood.fills(rate, payload, 0.05, POLICER_BURST, &what);
        let lost = flood.sent - flood.received;
        let dropped = lab.dropped().expect("counters")[&host("b")];
        // No link ahead of the policer has a rate, so on a busy machine some are lost in the kernel's input queues.
        let ahead = queue_drops(&lab, "a") - before;
        let what = format!("{what}: {dropped} counted, {ahead} dropped in queues, {lost} missing");
        // What b's own queue had no room for while its core was held up is in no count.
        assert!(lost > 0 && dropped > 0 && dropped + ahead + lost / 20 >= lost && dropped <= lost + 5, "{what}");
    }
}
