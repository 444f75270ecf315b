//! Trials over a pair of virtual ports in a separate namespace, with exact counts.

use crate::ports::{
    AMPLE, ENGINES, FAR, GENTLE, LONG, OWN, UDP, counted, counts, failure, part, session, stream, trial, with_ports,
    with_ports_alone,
};
use linerate_engine::FailedBy;
use linerate_engine::testing::Reached;
use linerate_frames::{FrameError, Frames, port, resolve};
use linerate_model::{CaveatKind, FrameEngine, FramePayload, Meter, Readings, SeriesQuantity};
use linerate_sys::clock;
use linerate_sys::ethtool::Ethtool;
use linerate_sys::namespace::{NetNamespace, set_network_setting};
use linerate_sys::netlink::Route;
use linerate_sys::shaping::Way;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::{Nanos, Ratio};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

#[lab_test(Bpf)]
fn every_frame_is_counted() {
    with_ports(|_| {
        for engine in ENGINES {
            for (family, size) in [(0, 64), (0, 512), (0, 1518), (1, 84), (1, 1518)] {
                let mut stream = stream(0, family, size, Some(GENTLE), UDP);
                stream.count = Some(500);
                let trial = trial(engine, AMPLE, vec![stream]);
                let counts = counts(&trial);
                assert_eq!(counts.engine, engine);
                let [result] = &counts.streams[..] else { panic!("{counts:?}") };
                assert_eq!(result.intended, 500, "{engine:?} {size}");
                assert!(result.sent > 0, "{engine:?} {size}: {result:?}");
                assert_eq!((result.received, result.duplicates, result.reordered), (result.sent, 0, 0), "{result:?}");
                assert_eq!((result.latency.count(), result.flooded), (result.received, 0), "{result:?}");
                assert_eq!(result.last_gap, None, "{engine:?} {result:?}");
                assert!(result.latency.quantile(0.5) < 100_000_000, "{engine:?} {result:?}");
                assert!(counts.caveats.is_empty(), "{:?}", counts.caveats);
            }
        }
    });
}

#[lab_test(Bpf)]
fn headers_of_all_kinds_are_recognised() {
    with_ports(|_| {
        for engine in ENGINES {
            for (family, payload, vlans) in [
                (0, FramePayload::Echo, &[][..]),
                (1, FramePayload::Echo, &[]),
                (0, UDP, &[5]),
                (0, UDP, &[5, 6]),
                (1, FramePayload::Echo, &[5, 6]),
            ] {
                let mut stream = stream(1, family, 256, Some(GENTLE), payload);
                stream.headers.vlans = vlans.to_vec();
                stream.count = Some(500);
                let [result] = &counts(&trial(engine, AMPLE, vec![stream])).streams[..] else { panic!("one stream") };
                assert_eq!(
                    (result.intended, result.sent, result.received),
                    (500, 500, 500),
                    "{engine:?} {family} {payload:?} {vlans:?}"
                );
            }
        }
    });
}

#[lab_test(Bpf)]
fn the_rate_is_not_exceeded() {
    with_ports(|_| {
        for engine in ENGINES {
            let rate = 7_001;
            let [result] = &counts(&trial(engine, 1_000, vec![stream(0, 0, 64, Some(rate), UDP)])).streams[..] else {
                panic!("one stream")
            };
            assert_eq!(result.intended, 7_001, "{engine:?}: {result:?}");
            // The first frame may be late, and the others on time. `cargo xtask bench frames` measures how exact the
            // rate is.
            let limit = rate as f64 * (result.send_time.as_secs_f64() + 0.03);
            assert!(result.sent as f64 <= limit && result.sent <= result.intended, "{engine:?}: {result:?}");
            assert!(result.sent > 0 || result.held_up >= Nanos::from_secs(1), "{engine:?}: {result:?}");
        }
    });
}

#[lab_test(Bpf)]
fn streams_of_both_ways_and_sizes_share_a_trial() {
    with_ports(|_| {
        for engine in ENGINES {
            let streams = [(0, 64), (1, 1518), (0, 1000), (1, 64), (0, 333)];
            let mut streams = streams.map(|(from, size)| stream(from, 0, size, Some(1_000), UDP)).to_vec();
            streams[4].to = 0;
            streams.iter_mut().for_each(|stream| stream.count = Some(200));
            let counts = counts(&trial(engine, AMPLE, streams));
            for result in &counts.streams[..4] {
                assert_eq!(result.received, result.sent, "{engine:?} {result:?}");
                assert!(result.sent > 0 && result.flooded == 0, "{engine:?} {result:?}");
            }
            let misdirected = &counts.streams[4];
            assert_eq!(
                (misdirected.received, misdirected.flooded),
                (0, misdirected.sent),
                "{engine:?} {misdirected:?}"
            );
        }
    });
}

#[lab_test(Bpf)]
fn each_port_counts_what_it_sent_and_received() {
    with_ports(|_| {
        for engine in ENGINES {
            let mut streams = [0, 1].map(|from| stream(from, 0, 64, Some(1_000), UDP)).to_vec();
            // These take two seconds and one second.
            (streams[0].count, streams[1].count) = (Some(2_000), Some(1_000));
            let session = session(&trial(engine, AMPLE, streams));
            thread::scope(|scope| {
                let running = scope.spawn(|| session.run(&Frames));
                let stage = wait_until("frames arrive", || {
                    // Read before the sample, which is therefore at least as late.
                    let stage = session.reached();
                    let received = frames(&session.readings()?, SeriesQuantity::FramesReceived, "left")?;
                    (received > 10).then_some(stage)
                });
                assert!(stage < Reached::Ended, "{engine:?}");
                running.join().unwrap().unwrap();
            });
            let readings = session.readings().unwrap();
            for (port, sent, received) in [("left", 2_000, 1_000), ("right", 1_000, 2_000)] {
                assert_eq!(frames(&readings, SeriesQuantity::FramesSent, port), Some(sent), "{engine:?} {port}");
                assert_eq!(
                    frames(&readings, SeriesQuantity::FramesReceived, port),
                    Some(received),
                    "{engine:?} {port}"
                );
            }
            let meter = session.meter().unwrap();
            assert_eq!((meter.operations, meter.sent_bytes, meter.received_bytes), (3_000, 3_000 * 64, 3_000 * 64));
        }
    });
}

/// Returns the value of `quantity` at `port`.
fn frames(readings: &Readings, quantity: SeriesQuantity, port: &str) -> Option<u64> {
    readings.of(quantity).find(|(subject, _)| *subject == port).map(|(_, frames)| frames)
}

/// Other work of an agent during a trial, such as samples of the host, would delay frames by milliseconds.
#[lab_test(Bpf)]
fn other_threads_leave_the_sending_core_while_xdp_sends() {
    if fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim() == "0" {
        return linerate_testsuite::skip(module_path!(), "it needs two cores");
    }
    with_ports_alone(|_| {
        let session = session(&trial(FrameEngine::Xdp, 90_000, vec![stream(0, 0, 64, Some(1_000), UDP)]));
        thread::scope(|scope| {
            let running = scope.spawn(|| session.run(&Frames));
            wait_until("this thread has left the core", || (!may_use_first_core()).then_some(()));
            session.stop("seen");
            running.join().unwrap().unwrap_err();
        });
        wait_until("this thread may use the core again", || may_use_first_core().then_some(()));
    });
}

fn may_use_first_core() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split(['-', ',']).next() == Some("0")
}

/// Frames cross a bridge that drops a quarter of them. The kernel's counter is the reference.
#[lab_test(Bpf)]
fn planted_loss_is_found() {
    with_ports(|namespace| {
        // Frames of the kernel would be lost and counted too.
        for interfaces in ["all", "default"] {
            set_network_setting(&format!("ipv6/conf/{interfaces}/disable_ipv6"), "1").unwrap();
        }
        let mut route = Route::open().unwrap();
        route.add_link("bridge", "middle").unwrap();
        let bridge = route.index_of("middle").unwrap();
        route.set_up(bridge).unwrap();
        for (near, far) in [("in", "in-far"), ("out", "out-far")] {
            route.add_veth(near, far, namespace, 1500).unwrap();
            for end in [near, far] {
                let link = route.index_of(end).unwrap();
                route.set_up(link).unwrap();
            }
            let far_link = route.index_of(far).unwrap();
            route.set_bridge(far_link, bridge).unwrap();
            Ethtool::open().unwrap().send_frame_by_frame(far).unwrap();
        }
        // A kernel worker, which may be late, activates the ports.
        wait_until("the bridge forwards", || {
            let links = route.links().unwrap();
            let runs = |name: &&str| links.iter().any(|link| link.name == **name && link.running);
            ["in", "in-far", "out", "out-far"].iter().all(runs).then_some(())
        });
        let link = route.index_of("out-far").unwrap();
        route.drop_by_chance(link, &[(Way::Out, Ratio { part: 1, of: 4 })]).unwrap();
        let mut drops = || {
            let qdiscs = route.qdiscs().unwrap();
            qdiscs
                .iter()
                .filter(|qdisc| qdisc.link == link && qdisc.kind == "clsact")
                .map(|qdisc| qdisc.drops)
                .sum::<u64>()
        };
        let mut lossy = counted(64, GENTLE, UDP, 1_000);
        [lossy.headers.source_mac, lossy.headers.destination_mac] = ["in", "out"].map(|name| port(name).unwrap().mac);
        for engine in ENGINES {
            let before = drops();
            let mut trial = trial(engine, AMPLE, vec![lossy.clone()]);
            trial.ports = vec!["in".into(), "out".into()];
            let counts = counts(&trial);
            let [result] = &counts.streams[..] else { panic!("one stream") };
            let lost = result.sent - result.received;
            let dropped = drops() - before;
            assert!(lost > result.sent / 8 && lost < result.sent / 2, "{engine:?} {result:?}");
            // One of the last 250 frames was lost, except with the probability of 3/4 to the 250th power. Each was sent
            // when it was due or later, apart from the 30 ms by which the first may have been late.
            let last_gap = result.last_gap.unwrap_or_else(|| panic!("{engine:?}: no gap"));
            let due = Nanos::new(result.sent.saturating_sub(250) * 1_000_000_000 / GENTLE);
            assert!(last_gap <= result.send_time && last_gap + Nanos::from_millis(30) >= due, "{result:?}");
            // Learning frames and the kernel's packets (IPv6 multicast) take the same path and may be lost.
            assert!(dropped >= lost && dropped <= lost + 20, "{engine:?}: {lost} lost, {dropped} dropped");
        }
    });
}

#[lab_test(Bpf)]
fn a_stop_ends_the_trial_and_detaches_the_programs() {
    with_ports(|_| {
        for engine in ENGINES {
            // Long to send, then long to settle.
            for (time, settle, frames) in [(600_000, 100, None), (AMPLE, 600_000, Some(200))] {
                let mut long = trial(engine, time, vec![stream(0, 0, 64, Some(1_000), UDP)]);
                long.settle = Nanos::from_millis(settle);
                long.streams[0].count = frames;
                let session = session(&long);
                let start = clock::now();
                let result = thread::scope(|scope| {
                    let running = scope.spawn(|| session.run(&Frames));
                    let stage = if frames.is_some() { Reached::Sent } else { Reached::Running };
                    assert!(session.wait_for(stage, LONG), "{engine:?}");
                    let has_traffic = |meter: Meter| meter.received_bytes > 100 * 64 && meter.operations > 100;
                    wait_until("frames arrive", || session.meter().is_some_and(has_traffic).then_some(()));
                    assert_eq!(has_xdp_program(), engine == FrameEngine::Xdp);
                    session.stop("enough");
                    running.join().unwrap()
                });
                assert!(clock::now() - start < 300_000_000_000, "{engine:?}");
                assert!(matches!(result.unwrap_err().error, FailedBy::Stop(_)), "{engine:?}");
                assert!(!has_xdp_program(), "{engine:?} left a program");
            }
        }
    });
}

fn has_xdp_program() -> bool {
    let output = Command::new("ip").args(["link", "show"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains("xdp")
}

#[lab_test(Bpf)]
fn large_frames_fall_back_to_packet_sockets() {
    with_ports(|_| {
        for name in ["left", "right"] {
            let done = Command::new("ip").args(["link", "set", name, "mtu", "9000"]).status().unwrap();
            assert!(done.success());
        }
        let mut large = trial(FrameEngine::Xdp, AMPLE, vec![counted(9_018, 1_000, UDP, 100)]);
        let error = failure(&large).to_string();
        assert!(error.contains("9018 bytes is too large for XDP"), "{error}");
        large.engine = FrameEngine::Auto;
        let counts = counts(&large);
        assert_eq!(counts.engine, FrameEngine::PacketSocket);
        assert_eq!(counts.caveats[0].kind, CaveatKind::Fallback);
        assert!(counts.streams[0].received == counts.streams[0].sent && counts.streams[0].sent > 0, "{counts:?}");
    });
}

#[lab_test(Bpf)]
fn neighbours_are_resolved_and_ports_described() {
    with_ports(|_| {
        // The far end has a namespace of its own because a kernel does not answer itself.
        let far = NetNamespace::new().unwrap();
        let mut route = Route::open().unwrap();
        route.add_veth("near", "far", &far, 1500).unwrap();
        let near = route.index_of("near").unwrap();
        assert!(matches!(port("near"), Err(FrameError::Down(_))));
        route.add_address(near, OWN[0].parse().unwrap(), 24).unwrap();
        route.set_up(near).unwrap();
        let mac = far
            .enter(|| {
                let mut route = Route::open().unwrap();
                let link = route.index_of("far").unwrap();
                route.set_up(link).unwrap();
                for (address, prefix) in FAR.into_iter().zip([24, 64]) {
                    route.add_address(link, address.parse().unwrap(), prefix).unwrap();
                }
                port("far").unwrap()
            })
            .unwrap();
        assert_eq!(mac.ipv4, Some(("198.18.0.2".parse().unwrap(), 24)));
        assert_eq!(mac.ipv6, Some(("2001:2::2".parse().unwrap(), 64)));
        let own = port("near").unwrap();
        for (source, target) in OWN.into_iter().zip(FAR) {
            let answer = resolve("near", (own.mac, source.parse().unwrap()), target.parse().unwrap(), LONG);
            assert_eq!(answer.unwrap(), mac.mac, "{target}");
        }
        let brief = Duration::from_millis(600);
        let nobody = resolve("near", (own.mac, OWN[0].parse().unwrap()), "198.18.0.77".parse().unwrap(), brief);
        assert!(matches!(nobody, Err(FrameError::NoAnswer { .. })), "{nobody:?}");
        let missing = port("eth77").unwrap_err().to_string();
        assert!(missing.contains("eth77") && missing.contains("near"), "{missing}");
    });
}

/// Each of two consecutive streams sends the frames of its own time.
#[lab_test(Bpf)]
fn streams_follow_each_other() {
    with_ports(|_| {
        for engine in ENGINES {
            let mut streams = [GENTLE, 1_000].map(|rate| stream(0, 0, 64, Some(rate), UDP)).to_vec();
            // A sender that is stalled for all of a stream's time sends nothing of it.
            streams[0].time = Some(Nanos::from_millis(500));
            streams[1].after = Nanos::from_millis(500);
            let counts = counts(&trial(engine, 1_000, streams));
            let [first, second] = &counts.streams[..] else { panic!("{counts:?}") };
            assert_eq!((first.intended, second.intended), (1_000, 500), "{engine:?}");
            for result in [first, second] {
                // The result reports a sender that got no core during the stream.
                assert!(result.sent > 0 || result.held_up >= Nanos::from_millis(500), "{engine:?} {result:?}");
                assert_eq!((result.received, result.last_gap), (result.sent, None), "{engine:?} {result:?}");
            }
        }
    });
}

#[lab_test(Bpf)]
fn a_stream_must_end_within_its_trial() {
    with_ports(|_| {
        let mut late = stream(0, 0, 64, Some(1_000), UDP);
        late.after = Nanos::from_millis(200);
        late.time = Some(Nanos::from_millis(200));
        let trial = trial(FrameEngine::PacketSocket, 300, vec![late]);
        let error = failure(&trial).to_string();
        assert!(error.contains("begins after 200 ms") && error.contains("takes 300 ms"), "{error}");
    });
}

/// The other end has no program and does not join received frames.
#[lab_test(Bpf)]
fn a_virtual_link_without_raw_frames_is_detected() {
    with_ports(|namespace| {
        let mut route = Route::open().unwrap();
        route.add_veth("spare", "spare-far", namespace, 1500).unwrap();
        for name in ["spare", "spare-far"] {
            let link = route.index_of(name).unwrap();
            route.set_up(link).unwrap();
        }
        let mut trial = trial(FrameEngine::Xdp, AMPLE, vec![stream(0, 0, 128, Some(1_000), UDP)]);
        trial.streams[0].count = Some(200);
        trial.ports[1] = "spare".into();
        let refused = failure(&trial).to_string();
        assert!(refused.contains("port left: the other end of this virtual link takes no frames"), "{refused}");

        trial.engine = FrameEngine::Auto;
        let session = session(&trial);
        let counted = session.run(&Frames).unwrap();
        // The trial begins with the packet sockets, and does not count what XDP sent before.
        let began = clock::unix_at(session.begins().unwrap());
        // Each is read from two clocks, one after the other. XDP began 200 ms earlier.
        assert!(began.abs_diff(counted.started_unix_ns) < 100_000_000, "{began} and {}", counted.started_unix_ns);
        assert_eq!(session.meter().map(|meter| (meter.operations, meter.sent_bytes)), Some((200, 200 * 128)));
        let caveats = counted.caveats.clone();
        let counts = part(counted);
        let sent = counts.streams[0].sent.as_ref().map(|sent| sent.sent);
        assert_eq!((counts.engine, sent), (FrameEngine::PacketSocket, Some(200)));
        let fallback = caveats.iter().find(|caveat| caveat.kind == CaveatKind::Fallback).unwrap();
        assert!(fallback.text.contains("port left") && fallback.text.contains("gro on"), "{}", fallback.text);
    });
}
