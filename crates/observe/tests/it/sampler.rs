//! What a sampler tells is what was sent: in network namespaces, where nobody else sends.

use super::traffic::{A, B, HEADERS, apart, bring_up, introduce, join, pair, read_all, read_queued, shape, socket};
use linerate_model::{Readings, SeriesQuantity};
use linerate_observe::HostSampler;
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::BitRate;
use socket2::SockRef;

fn sampler(namespace: &NetNamespace) -> HostSampler {
    namespace.enter(|| HostSampler::open(&[])).expect("enter")
}

/// Takes a sample, outside the namespace: a sampler stays where it was opened.
fn sample(sampler: &mut HostSampler) -> Readings {
    let mut readings = Readings::default();
    sampler.sample(&mut readings);
    readings
}

fn of(readings: &Readings, quantity: SeriesQuantity) -> Vec<(&str, u64)> {
    readings.of(quantity).collect()
}

#[lab_test]
fn interfaces_are_told_with_what_crossed_them_since_the_opening() {
    let (a, b) = pair();
    let (from, to) = (a.enter(|| socket(A)).expect("enter"), b.enter(|| socket(B)).expect("enter"));
    introduce(&from, &to);
    let (mut sender, mut receiver) = (sampler(&a), sampler(&b));
    for sampler in [&mut sender, &mut receiver] {
        let idle = sample(sampler);
        assert!(of(&idle, SeriesQuantity::InterfaceSentBytes).is_empty(), "what is idle is left out: {idle:?}");
    }
    // The default socket buffer holds some 90 of them.
    const DATAGRAMS: u64 = 60;
    const PAYLOAD: u64 = 1000;
    for round in 1..=2 {
        for _ in 0..DATAGRAMS {
            from.send_to(&[0; PAYLOAD as usize], to.local_addr().expect("address")).expect("send");
        }
        assert_eq!(read_all(&to, DATAGRAMS), DATAGRAMS);
        let (out, into) = (sample(&mut sender), sample(&mut receiver));
        let (packets, bytes) = (round * DATAGRAMS, round * DATAGRAMS * (PAYLOAD + HEADERS));
        for (readings, quantity, value) in [
            (&out, SeriesQuantity::InterfaceSentBytes, bytes),
            (&out, SeriesQuantity::InterfaceSentPackets, packets),
            (&into, SeriesQuantity::InterfaceReceivedBytes, bytes),
            (&into, SeriesQuantity::InterfaceReceivedPackets, packets),
        ] {
            assert_eq!(of(readings, quantity), [("eth0", value)], "{quantity:?}");
        }
        assert!(of(&out, SeriesQuantity::InterfaceReceivedBytes).is_empty(), "{out:?}");
        assert!(into.get(SeriesQuantity::SoftnetProcessed) >= Some(packets), "{into:?}");
        assert_eq!(into.get(SeriesQuantity::UdpReceiveBufferErrors), None);
    }
}

#[lab_test]
fn an_interface_that_comes_later_is_told_from_zero_and_keeps_its_count_when_it_goes() {
    let (a, b) = apart();
    let mut sampler = sampler(&a);
    assert!(of(&sample(&mut sampler), SeriesQuantity::InterfaceSentBytes).is_empty());
    join(&a, &b);
    let (from, to) = (a.enter(|| socket(A)).expect("enter"), b.enter(|| socket(B)).expect("enter"));
    introduce(&from, &to);
    let mut route = a.enter(|| Route::open().expect("netlink")).expect("enter");
    let mut sent = || {
        let links = route.links().expect("links");
        links.into_iter().find(|link| link.name == "eth0").map(|link| link.counters.tx_bytes)
    };
    let bytes = sent().expect("eth0");
    assert_eq!(of(&sample(&mut sampler), SeriesQuantity::InterfaceSentBytes), [("eth0", bytes)]);
    // With a namespace the kernel removes its end of the link, and so the other end.
    drop((to, b));
    wait_until("the link goes", || sent().is_none().then_some(()));
    assert_eq!(of(&sample(&mut sampler), SeriesQuantity::InterfaceSentBytes), [("eth0", bytes)]);
}

#[lab_test]
fn a_standing_queue_is_seen_with_its_bytes_and_drops() {
    let (a, b) = pair();
    let (from, to) = (a.enter(|| socket(A)).expect("enter"), b.enter(|| socket(B)).expect("enter"));
    introduce(&from, &to);
    // A full queue stands for more than three seconds.
    shape(&a, BitRate::per_second(20_000));
    let mut sampler = sampler(&a);
    const DATAGRAMS: u64 = 100;
    for _ in 0..DATAGRAMS {
        // A queue that drops may say so.
        let _ = from.send_to(&[0; 1000], to.local_addr().expect("address"));
    }
    let full = sample(&mut sampler);
    let backlog = of(&full, SeriesQuantity::QdiscBacklog);
    assert!(matches!(backlog[..], [("eth0 tbf", 1_000..=10_000)]), "{backlog:?}");
    let arrived = read_queued(&a, &to);
    let empty = sample(&mut sampler);
    assert!(of(&empty, SeriesQuantity::QdiscBacklog).is_empty(), "{empty:?}");
    assert_eq!(of(&empty, SeriesQuantity::QdiscDrops), [("eth0 tbf", DATAGRAMS - arrived)]);
    assert!(matches!(of(&empty, SeriesQuantity::QdiscOverlimits)[..], [("eth0 tbf", 1..)]), "{empty:?}");
    assert_eq!(of(&empty, SeriesQuantity::InterfaceSentPackets), [("eth0", arrived)]);
}

#[lab_test]
fn full_socket_buffers_are_told_of_both_families_together() {
    let namespace = NetNamespace::new().expect("a namespace");
    namespace.enter(|| bring_up("lo", None)).expect("enter");
    let mut sampler = sampler(&namespace);
    let mut lost = 0;
    for address in ["127.0.0.1", "::1"] {
        const DATAGRAMS: u64 = 100;
        let arrived = namespace.enter(|| {
            let (from, to) = (socket(address), socket(address));
            SockRef::from(&to).set_recv_buffer_size(8192).expect("buffer");
            for _ in 0..DATAGRAMS {
                from.send_to(&[0; 1000], to.local_addr().expect("address")).expect("send");
            }
            read_all(&to, 1)
        });
        lost += DATAGRAMS - arrived.expect("enter");
        assert_eq!(sample(&mut sampler).get(SeriesQuantity::UdpReceiveBufferErrors), Some(lost), "after {address}");
    }
}
