//! Links of a set rate carry what Ethernet of that rate carries, to the byte; planted loss is as planted.

use crate::support::{host, socket, up, wait_for};
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
struct Flood {
    sent: u64,
    received: u64,
    /// Datagrams a second at the receiver, warm-up left out.
    rate: f64,
}

/// Sends as fast as the sockets let it for `time` and counts what comes. Each send carries `batch` datagrams, cut by the
/// kernel. Several sockets queue more, so that the line does not run dry while the sender waits for a core.
fn flood(near: &[UdpSocket], far: &UdpSocket, payload: usize, batch: usize, time: Duration) -> Flood {
    const WARM_UP: Duration = Duration::from_millis(300);
    for near in near {
        near.connect(far.local_addr().expect("address")).expect("connect");
        if batch > 1 {
            udp::segment(near, payload.try_into().expect("a datagram")).expect("UDP_SEGMENT");
        }
    }
    far.set_read_timeout(Some(Duration::from_millis(500))).expect("timeout");
    // The default buffer is small for a receiver that has to share two cores.
    linerate_sys::socket::force_receive_buffer(std::os::fd::AsFd::as_fd(far), 16 << 20).expect("a receive buffer");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let bytes = vec![7; payload * batch];
            let mut sent = 0;
            for near in near.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                assert_eq!(near.send(&bytes).expect("a flood that waits, and loses nothing here"), bytes.len());
                sent += batch as u64;
            }
            sent
        });
        let mut buffer = vec![0; 65_536];
        let mut next = || far.recv(&mut buffer).ok();
        let start = Instant::now();
        let mut received = 0;
        while start.elapsed() < WARM_UP {
            next().expect("the flood arrives");
            received += 1;
        }
        let (opened, before) = (Instant::now(), received);
        while opened.elapsed() < time {
            next().expect("the flood arrives");
            received += 1;
        }
        let rate = (received - before) as f64 / opened.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        // Stragglers, until none has come for half a second.
        while next().is_some() {
            received += 1;
        }
        Flood { sent: sender.join().expect("sender"), received, rate }
    })
}

fn within(rate: f64, limit: f64, tolerance: f64, what: &str) {
    let ratio = rate / limit;
    eprintln!("{what}: {rate:.1}/s, {:.3} % of {limit:.1}/s", ratio * 100.0);
    assert!((1.0 - tolerance..=1.0 + tolerance).contains(&ratio), "{what}: {rate}/s of {limit}/s");
}

#[lab_test]
fn a_shaped_link_carries_what_ethernet_of_its_rate_carries() {
    let _alone = alone();
    // At rates that one core sends and another receives with ease, so that the link is what limits.
    let (slow, fast) = (10_000_000, 100_000_000);
    let (flat, routed) = (["198.18.0.1", "198.18.0.2"], ["198.18.1.2", "198.18.2.2"]);
    for (device, addresses, line, payloads) in [
        ("bridge", flat, slow, &[1, 18, 64, 1472][..]),
        ("bridge", flat, fast, &[1472]),
        ("none", flat, slow, &[64]),
        ("none", flat, fast, &[1472]),
        ("router", routed, slow, &[64]),
        ("router", routed, fast, &[1472]),
    ] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\nlink = {{ rate = '{line}' }}"
        ));
        for payload in payloads {
            let (near, far) = (socket(&lab, "a", addresses[0]), socket(&lab, "b", addresses[1]));
            let flood = flood(&[near], &far, *payload, 1, Duration::from_secs(2));
            let limit = f64::from(line) / 8.0 / on_the_wire(*payload as u64) as f64;
            within(flood.rate, limit, 0.01, &format!("{device} {line} bit/s, {payload} bytes"));
            assert_eq!(flood.sent, flood.received, "{device} {line} bit/s, {payload} bytes: lost in the bench");
        }
        wait_for(lab.down());
    }
}

/// Needs both cores for itself: 81,274 frames a second are cut, queued and received one by one.
#[lab_test]
fn a_gigabit_link_is_one() {
    let _alone = alone();
    let lab = up("name = 'x'\nhosts = ['a', 'b']\nlink = { rate = '1Gbit/s' }");
    let near: Vec<_> = (0..8).map(|_| socket(&lab, "a", "198.18.0.1")).collect();
    let far = socket(&lab, "b", "198.18.0.2");
    let flood = flood(&near, &far, 1472, 40, Duration::from_secs(2));
    within(flood.rate, 1e9 / 8.0 / 1538.0, 0.01, "1 Gbit/s, 1472 bytes");
    assert_eq!(flood.sent, flood.received, "lost in the bench");
}

#[lab_test]
fn segmentation_cannot_cheat_the_line() {
    let _alone = alone();
    for (line, payload, batch) in [(100_000_000, 1472, 40), (100_000_000, 1472, 2), (10_000_000, 64, 60)] {
        let lab = up(&format!("name = 'x'\nhosts = ['a', 'b']\nlink = {{ rate = '{line}' }}"));
        let (near, far) = (socket(&lab, "a", "198.18.0.1"), socket(&lab, "b", "198.18.0.2"));
        let flood = flood(&[near], &far, payload, batch, Duration::from_secs(2));
        let limit = f64::from(line) / 8.0 / on_the_wire(payload as u64) as f64;
        within(flood.rate, limit, 0.01, &format!("{line} bit/s, {batch} x {payload} bytes a send"));
    }
}

#[lab_test]
fn planted_loss_is_as_planted_and_counted() {
    let _alone = alone();
    for (device, place, counted_at) in [("bridge", "a", "a"), ("bridge", "device:b", "b"), ("none", "a", "a")] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\nlink = {{ rate = '1Gbit/s' }}\n\
             [[fault]]\nkind = 'loss'\nat = '{place}'\nratio = '1/100'"
        ));
        let (near, far) = (socket(&lab, "a", "198.18.0.1"), socket(&lab, "b", "198.18.0.2"));
        // Some 300,000 datagrams: 3,000 lost, give or take 55 (one standard deviation); a tenth is five of them.
        let flood = flood(&[near], &far, 1000, 1, Duration::from_secs(3));
        let lost = flood.sent - flood.received;
        let expected = flood.sent as f64 / 100.0;
        assert!(flood.sent >= 50_000, "only {} sent", flood.sent);
        let ratio = lost as f64 / expected;
        eprintln!("{device} {place}: lost {lost} of {}, {ratio:.3} of what was planted", flood.sent);
        assert!((0.9..1.1).contains(&ratio), "{device} {place}: lost {lost} of {}", flood.sent);
        let dropped = lab.dropped().expect("counters")[&host(counted_at)];
        assert!(dropped >= lost && dropped <= lost + 5, "{device} {place}: {dropped} counted, {lost} missing");
    }
}

/// No device holds back what a policer lets through, and the hosts are told nothing.
#[lab_test]
fn a_policed_link_drops_what_exceeds_its_rate_and_counts_it() {
    let _alone = alone();
    let (flat, routed) = (["198.18.0.1", "198.18.0.2"], ["198.18.1.2", "198.18.2.2"]);
    for (device, addresses, rate, payload, batch) in [
        ("bridge", flat, 10_000_000, 1472, 1),
        ("bridge", flat, 100_000_000, 64, 1),
        ("router", routed, 100_000_000, 1472, 40),
    ] {
        let lab = up(&format!(
            "name = 'x'\nhosts = ['a', 'b']\ndevice = {{ kind = '{device}' }}\nlinks.b = {{ police = '{rate}' }}"
        ));
        let (near, far) = (socket(&lab, "a", addresses[0]), socket(&lab, "b", addresses[1]));
        let flood = flood(&[near], &far, payload, batch, Duration::from_secs(2));
        let limit = f64::from(rate) / 8.0 / on_the_wire(payload as u64) as f64;
        let what = format!("{device} {rate} bit/s, {batch} x {payload} bytes a send");
        within(flood.rate, limit, 0.01, &what);
        let (lost, dropped) = (flood.sent - flood.received, lab.dropped().expect("counters")[&host("b")]);
        assert!(dropped >= lost && dropped <= lost + 5, "{what}: {dropped} counted, {lost} missing");
    }
}
