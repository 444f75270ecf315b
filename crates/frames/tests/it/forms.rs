//! Frames of other forms over a virtual cable: fields that vary, mixes of sizes and raw frames.

use crate::ports::{AMPLE, ENGINES, GENTLE, UDP, counted, counts, failure, stream, trial, with_ports};
use etherparse::{LaxSlicedPacket, TransportSlice};
use linerate_frames::port;
use linerate_model::{
    CaveatKind, FrameEngine, FrameForm, FrameMix, FramePayload, FrameStream, FramesTask, RawFrame, Vary,
};
use linerate_sys::ethtool::Ethtool;
use linerate_sys::netlink::Route;
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use linerate_testsuite::lab_test;
use linerate_units::{FrameSize, Nanos};
use std::collections::{BTreeMap, BTreeSet};

const TCP: FramePayload = FramePayload::Tcp { source_port: 40_000, destination_port: 5_001 };

fn vary(texts: &[&str]) -> FrameForm {
    let vary = texts.iter().map(|text| text.parse::<Vary>().unwrap()).collect();
    FrameForm { vary, ..FrameForm::default() }
}

/// Runs a trial of one stream. Returns the beginnings of its frames. The stream's destination is a spare port, so that
/// no counter removes the frames where they arrive.
fn captured(
    engine: FrameEngine,
    mut stream: FrameStream,
    namespace: &linerate_sys::namespace::NetNamespace,
) -> Vec<Vec<u8>> {
    let mut route = Route::open().unwrap();
    if route.index_of("spare").is_err() {
        route.add_veth("spare", "spare-far", namespace, 1500).unwrap();
        for name in ["spare", "spare-far"] {
            let link = route.index_of(name).unwrap();
            route.set_up(link).unwrap();
        }
        // A virtual port without a program accepts raw frames only this way.
        Ethtool::open().unwrap().send_frame_by_frame("right").unwrap();
    }
    let capture = PacketSocket::open(route.index_of("right").unwrap(), Some(ALL_PROTOCOLS)).unwrap();
    capture.hear_all().unwrap();
    capture.stamp_and_hold(16 << 20).unwrap();
    stream.to = 1;
    let mut trial = trial(engine, AMPLE, vec![stream]);
    trial.ports = vec!["left".into(), "spare".into()];
    trial.settle = Nanos::from_millis(0);
    let sent = counts(&trial).streams[0].sent;
    let mut incoming = Incoming::new(64);
    let mut frames = Vec::new();
    // Waits up to 30 s for the frames that were sent. Any others arrive with them.
    while capture.wait(if (frames.len() as u64) < sent { 30_000 } else { 0 }) {
        incoming.take(&capture).unwrap();
        frames
            .extend(incoming.frames().map(|(frame, _)| frame).filter(|frame| is_of_stream(frame)).map(<[u8]>::to_vec));
    }
    assert_eq!(frames.len() as u64, sent, "{engine:?}: all were captured");
    frames
}

/// Returns whether a frame belongs to a stream. Others are learning frames and packets of the kernel.
fn is_of_stream(frame: &[u8]) -> bool {
    LaxSlicedPacket::from_ethernet(frame).is_ok_and(|packet| match packet.transport {
        Some(TransportSlice::Udp(udp)) => matches!(udp.destination_port(), 5_001 | 7..=9),
        Some(TransportSlice::Tcp(tcp)) => tcp.destination_port() == 5_001,
        Some(TransportSlice::Icmpv4(_)) => true,
        Some(TransportSlice::Icmpv6(icmp)) => icmp.type_u8() == 128,
        _ => false,
    })
}

/// Returns whether the RFC 1071 sum of `pieces` has only ones.
fn sums_to_ones(pieces: &[&[u8]]) -> bool {
    let words = pieces.iter().flat_map(|piece| {
        piece.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

/// Returns whether the checksums of an untagged frame without padding are correct.
fn checksums_are_right(frame: &[u8]) -> bool {
    let (ip, addresses, protocol, transport) = match frame[12..14] {
        [8, 0] => (&frame[14..34], &frame[26..34], frame[23], &frame[34..]),
        _ => (&[0xff, 0xff][..], &frame[22..54], frame[20], &frame[54..]),
    };
    let pseudo = [&(transport.len() as u32).to_be_bytes()[..], &[0, 0, 0, protocol]].concat();
    let covered: &[&[u8]] = if protocol == 1 { &[transport] } else { &[addresses, &pseudo, transport] };
    sums_to_ones(&[ip]) && sums_to_ones(covered)
}

#[lab_test(Bpf)]
fn counting_fields_take_each_value_in_turn() {
    with_ports(|namespace| {
        // Fields, and the positions of their low bytes over IPv4 and IPv6. A capture keeps 128 bytes.
        for (field, at) in [
            ("src-mac", [10, 10]),
            ("dst-mac", [4, 4]),
            ("src-ip", [28, 36]),
            ("dst-ip", [32, 52]),
            ("src-port", [34, 54]),
            ("dst-port", [36, 56]),
        ] {
            for (family, payload) in
                [(0, UDP), (1, UDP), (0, TCP), (1, TCP), (0, FramePayload::Echo), (1, FramePayload::Echo)]
            {
                let port = field.ends_with("port");
                if port && payload == FramePayload::Echo {
                    continue;
                }
                // No checksum covers an Ethernet address.
                if field.ends_with("mac") && (family, payload) != (0, UDP) {
                    continue;
                }
                let mut stream = stream(0, family, 110, None, payload);
                let count = if field == "dst-port" && payload == UDP { 3 } else { 300 };
                let total = if field == "dst-port" && payload == TCP { 1 } else { 2 * count + 1 };
                stream.count = Some(total);
                stream.form = vary(&[&format!("{field}:{count}")]);
                for engine in ENGINES {
                    let frames = captured(engine, stream.clone(), namespace);
                    let at = at[family];
                    let value = |frame: &Vec<u8>| u16::from_be_bytes([frame[at], frame[at + 1]]);
                    let first = value(&frames[0]);
                    for (number, frame) in (0u64..).zip(&frames) {
                        let expected = first.wrapping_add((number % count) as u16);
                        assert_eq!(value(frame), expected, "{engine:?} {field} {payload:?} frame {number}");
                        assert!(checksums_are_right(frame), "{engine:?} {field} {payload:?} {frame:02x?}");
                    }
                }
            }
        }
    });
}

#[lab_test(Bpf)]
fn random_fields_stay_in_range_and_both_engines_agree() {
    with_ports(|namespace| {
        let mut stream = stream(0, 0, 64, None, UDP);
        stream.count = Some(4_000);
        stream.form = vary(&["src-ip:100:random", "src-port:1000:random", "src-mac:7", "dst-ip:70000"]);
        let seen = ENGINES.map(|engine| {
            let frames = captured(engine, stream.clone(), namespace);
            assert!(frames.iter().all(|frame| checksums_are_right(frame)), "{engine:?}");
            // Addresses and ports, without the signature.
            frames.iter().map(|frame| [&frame[..24], &frame[26..40]].concat()).collect::<Vec<_>>()
        });
        assert!(seen[0] == seen[1], "the engines send the same frames");
        let values =
            |from: usize, until: usize| seen[0].iter().map(|f| f[from..until].to_vec()).collect::<BTreeSet<_>>();
        let addresses = values(24, 28);
        assert_eq!(addresses.len(), 100, "4,000 draws find each of 100 addresses");
        assert_eq!(addresses.first().map(|a| a[3]), Some(1), "from the port's own up");
        assert_eq!(addresses.last().map(|a| a[3]), Some(100));
        let ports = values(32, 34);
        let range = 49_152u16.to_be_bytes().to_vec()..50_152u16.to_be_bytes().to_vec();
        assert!(ports.len() > 900 && ports.iter().all(|port| range.contains(port)), "{} ports", ports.len());
        assert_eq!(values(6, 12).len(), 7);
        assert_eq!(values(28, 32).len(), 4_000, "a counter of more than 16 bits carries over");
    });
}

#[lab_test(Bpf)]
fn frames_with_fields_that_vary_are_counted() {
    with_ports(|_| {
        for engine in ENGINES {
            for payload in [UDP, TCP] {
                let mut stream = counted(128, GENTLE, payload, 500);
                stream.headers.vlans = vec![100, 7];
                stream.form = vary(&["vlan:50", "dst-ip:1000:random"]);
                let counts = counts(&trial(engine, AMPLE, vec![stream]));
                let result = &counts.streams[0];
                let seen = (result.received, result.duplicates, result.reordered, result.received_bytes);
                assert_eq!(seen, (result.sent, 0, 0, result.sent * 128), "{engine:?} {payload:?} {result:?}");
                assert!(result.sent > 0);
            }
        }
    });
}

#[lab_test(Bpf)]
fn a_mix_has_its_shares_and_its_bytes() {
    with_ports(|namespace| {
        for engine in ENGINES {
            let mut stream = stream(0, 0, 1518, Some(GENTLE), UDP);
            stream.form.mix = Some(FrameMix::imix());
            stream.count = Some(1_201);
            let seen = captured(engine, stream.clone(), namespace);
            let mut sizes: BTreeMap<u16, u32> = BTreeMap::new();
            seen.iter().for_each(|frame| *sizes.entry(u16::from_be_bytes([frame[16], frame[17]])).or_default() += 1);
            assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [(46, 701), (576, 400), (1500, 100)], "{engine:?}");
            assert!(seen.iter().filter(|frame| frame.len() == 60).all(|frame| checksums_are_right(frame)));

            let mut back = stream.clone();
            back.from = 1;
            back.to = 0;
            back.form.vary = vary(&["src-port:9"]).vary;
            let counts = counts(&trial(engine, AMPLE, vec![stream, back]));
            for result in &counts.streams {
                assert_eq!((result.received, result.received_bytes), (result.sent, result.sent_bytes), "{engine:?}");
                assert!(result.sent > 0);
                assert_eq!(result.received_bytes, FrameMix::imix().bytes(result.sent), "{engine:?}");
            }
        }
    });
}

fn raw(bytes: Vec<u8>, signed: bool) -> FrameForm {
    let bytes = linerate_model::FrameBytes::new(bytes).unwrap();
    FrameForm { raw: Some(RawFrame { bytes, signed }), ..FrameForm::default() }
}

#[lab_test(Bpf)]
fn raw_frames_arrive_as_they_are() {
    with_ports(|namespace| {
        // A captured frame with a unique body.
        let mut model = stream(0, 0, 128, None, TCP);
        model.count = Some(1);
        let mut bytes = captured(FrameEngine::PacketSocket, model, namespace).remove(0);
        (106..124).for_each(|at| bytes[at] = at as u8);
        let length = bytes.len() as u32;
        for engine in ENGINES {
            let mut stream = stream(0, 0, length + 4, None, UDP);
            stream.count = Some(100);
            stream.form = raw(bytes.clone(), false);
            assert!(captured(engine, stream.clone(), namespace).iter().all(|frame| *frame == bytes), "{engine:?}");

            // Only the port's counter counts the frames, and the result says so.
            let all = counts(&trial(engine, AMPLE, vec![stream.clone()]));
            let result = &all.streams[0];
            assert!(result.by_port_counters && result.sent == 100, "{result:?}");
            assert!((100..130).contains(&result.received), "{engine:?}: {result:?}");
            assert!(all.caveats.iter().any(|caveat| caveat.kind == CaveatKind::PortCountersOnly));
            let twice = trial(engine, 100, vec![stream.clone(), stream.clone()]);
            assert!(failure(&twice).to_string().contains("cannot tell them apart"));

            // With signatures each frame is counted. Its checksum stays as right or wrong as it was.
            stream.form = raw(bytes.clone(), true);
            let result = &counts(&trial(engine, AMPLE, vec![stream])).streams[0];
            assert_eq!(
                (result.received, result.by_port_counters, result.latency.count()),
                (100, false, 100),
                "{engine:?}"
            );
        }
    });
}

/// Builds a frame of the experimental EtherType from the left to the right port.
fn experimental(length: usize, tags: &[u8]) -> Vec<u8> {
    let [left, right] = ["left", "right"].map(|name| port(name).unwrap().mac.0);
    let mut bytes = [&right[..], &left, tags, &[0x88, 0xb5]].concat();
    bytes.resize(length, 0);
    bytes
}

#[lab_test(Bpf)]
fn undersize_frames_are_sent_and_counted() {
    with_ports(|_| {
        for engine in ENGINES {
            for (length, tags) in [(32, &[][..]), (33, &[]), (46, &[]), (59, &[]), (36, &[0x81, 0, 0, 5])] {
                let mut undersize = counted(64, GENTLE, UDP, 200);
                undersize.form = raw(experimental(length, tags), true);
                let plain = counted(64, GENTLE, UDP, 200);
                let all = counts(&trial(engine, AMPLE, vec![undersize, plain]));
                let bytes = (length as u64 + 4) * 200;
                let [undersize, plain] = &all.streams[..] else { panic!("two streams") };
                let seen = (undersize.sent, undersize.received, undersize.sent_bytes, undersize.received_bytes);
                assert_eq!(seen, (200, 200, bytes, bytes), "{engine:?} {length}: {undersize:?}");
                assert_eq!((undersize.duplicates, undersize.flooded, undersize.latency.count()), (0, 0, 200));
                assert_eq!((plain.received, plain.received_bytes), (200, 200 * 64), "{engine:?} {length}: {plain:?}");
            }
            // Without room for a signature.
            refused(raw(experimental(31, &[]), true), 64, "no room for a signature");
        }
    });
}

/// The kernel lets XDP send four bytes more than the MTU permits, and packet sockets if the frame has a VLAN tag.
#[lab_test(Bpf)]
fn oversize_frames_are_sent_or_refused() {
    with_ports(|_| {
        let mut tagged = counted(1_522, GENTLE, UDP, 200);
        tagged.headers.vlans = vec![5];
        for (engine, stream) in [
            (FrameEngine::Xdp, counted(1_519, GENTLE, UDP, 200)),
            (FrameEngine::Xdp, counted(1_522, GENTLE, UDP, 200)),
            (FrameEngine::PacketSocket, tagged),
        ] {
            let result = &counts(&trial(engine, AMPLE, vec![stream])).streams[0];
            assert_eq!((result.sent, result.received), (200, 200), "{engine:?} {result:?}");
        }
        for (engine, size) in
            [(FrameEngine::PacketSocket, 1_519), (FrameEngine::Xdp, 1_523), (FrameEngine::Auto, 1_523)]
        {
            let error = failure(&trial(engine, AMPLE, vec![counted(size, GENTLE, UDP, 200)])).to_string();
            let mtu = format!("left mtu {}", size - 18);
            assert!(error.contains(&format!("frames of {size} bytes")) && error.contains(&mtu), "{engine:?}: {error}");
        }
    });
}

/// A virtual port has no FCS, and the frame would be a longer one.
#[lab_test(Bpf)]
fn wrong_fcs_is_refused_by_a_virtual_port() {
    with_ports(|_| {
        let mut stream = counted(64, GENTLE, UDP, 10);
        stream.form.bad_fcs = true;
        for (engine, words) in [
            (FrameEngine::Xdp, "XDP cannot send frames with a wrong FCS"),
            (FrameEngine::PacketSocket, "port left cannot send frames with a wrong FCS"),
            (FrameEngine::Auto, "port left cannot send frames with a wrong FCS"),
        ] {
            let error = failure(&trial(engine, AMPLE, vec![stream.clone()])).to_string();
            assert!(error.contains(words), "{engine:?}: {error}");
        }
    });
}

/// Three bursts of 50 frames at 100 frames per second begin after 0, 0.5 and 1 s.
#[lab_test(Bpf)]
fn frames_of_a_burst_leave_together() {
    with_ports(|_| {
        for engine in ENGINES {
            let mut stream = counted(64, 100, UDP, 150);
            stream.form.burst = 50;
            let result = &counts(&trial(engine, AMPLE, vec![stream])).streams[0];
            assert_eq!((result.intended, result.sent, result.received), (150, 150, 150), "{engine:?} {result:?}");
            let held_up = result.held_up;
            assert!(result.send_time < Nanos::from_millis(1_300) + held_up, "{engine:?} {result:?}");
            assert!(result.send_time + held_up > Nanos::from_millis(900), "{engine:?} {result:?}");
            eprintln!("{engine:?}: three bursts in {}", result.send_time);
        }
    });
}

/// Asserts that frames of `form` and `size` are refused with an error that contains `words`.
fn refused(form: FrameForm, size: u32, words: &str) {
    let plain = stream(0, 0, 64, None, UDP);
    let stream = FrameStream { form, size: FrameSize::with_fcs(size).unwrap(), count: Some(1), ..plain };
    let trial = FramesTask { time: Nanos::from_millis(10), ..trial(FrameEngine::Auto, 10, vec![stream]) };
    let error = failure(&trial).to_string();
    assert!(error.contains(words), "`{words}` is not in: {error}");
}

#[lab_test(Bpf)]
fn impossible_forms_are_refused() {
    with_ports(|_| {
        refused(vary(&["vlan:2"]), 64, "have no vlan");
        refused(vary(&["src-port:16385"]), 64, "room for 16384 values");
        refused(vary(&["src-ip:2", "dst-ip:2", "src-mac:2", "dst-mac:2", "src-port:2"]), 64, "more than 4");
        refused(FrameForm { mix: Some(FrameMix::imix()), ..FrameForm::default() }, 64, "largest of the mix");
        let small = "64:1,100:1".parse::<FrameMix>().unwrap();
        let mut stream = stream(0, 1, 100, None, UDP);
        stream.form.mix = Some(small);
        let error = failure(&trial(FrameEngine::Auto, 10, vec![stream])).to_string();
        assert!(error.contains("the smallest are 84"), "{error}");
        let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 6], &[0; 28]].concat();
        refused(raw(arp.clone(), true), 64, "no room for a signature");
        refused(raw(arp, false), 128, "cannot have another size");
    });
}
