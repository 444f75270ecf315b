//! Trials over a switch with several ports: a bridge of the kernel.

use crate::ports::{AMPLE, ENGINES, UDP, alone, counts, part, session, trial};
use linerate_frames::{Frames, port};
use linerate_model::{FrameEngine, FrameStream, FramesTask, Mac, PortName};
use linerate_sys::ethtool::Ethtool;
use linerate_sys::namespace::set_network_setting;
use linerate_sys::netlink::Route;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::{FrameRate, Nanos};
use std::net::{IpAddr, Ipv4Addr};

/// Runs `work` with the ports `p0`, `p1` and so on of a switch.
fn with_switch(ports: u16, work: impl FnOnce() + Send) {
    alone(|namespace| {
        for interfaces in ["all", "default"] {
            set_network_setting(&format!("ipv6/conf/{interfaces}/disable_ipv6"), "1").unwrap();
        }
        let mut route = Route::open().unwrap();
        route.add_link("bridge", "switch").unwrap();
        let switch = route.index_of("switch").unwrap();
        route.set_up(switch).unwrap();
        for number in 0..ports {
            let (near, far) = (format!("p{number}"), format!("q{number}"));
            route.add_veth(&near, &far, namespace, 1500).unwrap();
            for end in [&near, &far] {
                let link = route.index_of(end).unwrap();
                route.set_up(link).unwrap();
            }
            let far_link = route.index_of(&far).unwrap();
            route.set_bridge(far_link, switch).unwrap();
            Ethtool::open().unwrap().send_frame_by_frame(&far).unwrap();
        }
        // A kernel worker, which may be late, activates the ports.
        wait_until("the switch forwards", || {
            let links = route.links().unwrap();
            let running = links.iter().filter(|link| link.running && link.kind == "veth").count();
            (running == 2 * usize::from(ports)).then_some(())
        });
        work();
    });
}

fn address(number: u16) -> IpAddr {
    Ipv4Addr::new(198, 18, 0, number as u8 + 1).into()
}

/// Returns a stream between two ports of the switch.
fn between(from: u16, to: u16, rate: u64, frames: u64) -> FrameStream {
    let [source_mac, destination_mac] = [from, to].map(|number| port(&format!("p{number}")).unwrap().mac);
    let plain = crate::ports::between(source_mac, destination_mac, 64, UDP);
    let mut stream = FrameStream { from, to, rate: Some(FrameRate::per_second(rate)), count: Some(frames), ..plain };
    (stream.headers.source, stream.headers.destination) = (address(from), address(to));
    stream
}

fn switched(engine: FrameEngine, ports: u16, streams: Vec<FrameStream>) -> FramesTask {
    let names = (0..ports).map(|number| PortName::from(format!("p{number}").as_str()));
    FramesTask { ports: names.collect(), ..trial(engine, AMPLE, streams) }
}

#[lab_test(Bpf)]
fn each_port_counts_its_copy_of_a_broadcast() {
    with_switch(4, || {
        for engine in ENGINES {
            let mut broadcast = between(0, 1, 500, 200);
            broadcast.headers.destination_mac = Mac([0xff; 6]);
            broadcast.copies_to = vec![3, 2];
            let unicast = between(1, 3, 500, 200);
            let mut partial = broadcast.clone();
            partial.copies_to = vec![2];
            let counts = counts(&switched(engine, 4, vec![broadcast, unicast, partial]));
            let [whole, unicast, partial] = &counts.streams[..] else { panic!("three streams") };
            assert_eq!((whole.sent, whole.received, whole.flooded), (200, 200, 0), "{engine:?} {whole:?}");
            let ports: Vec<u16> = whole.copies.iter().map(|copy| copy.port).collect();
            assert_eq!(ports, [2, 3], "in the order of the ports");
            for copy in &whole.copies {
                let arrived = &copy.arrived;
                let seen = (arrived.received, arrived.duplicates, arrived.reordered, arrived.expected);
                assert_eq!(seen, (200, 0, 0, 200), "{engine:?} {copy:?}");
                assert_eq!((arrived.bytes, arrived.latency.count()), (200 * 64, 200), "{engine:?} {copy:?}");
            }
            assert_eq!((unicast.received, unicast.flooded, unicast.copies.len()), (200, 0, 0), "{engine:?}");
            assert_eq!((partial.received, partial.copies[0].arrived.received), (200, 200), "{engine:?}");
            assert_eq!(partial.flooded, 200, "{engine:?}: port 3 is no receiver");
            assert_eq!([2, 3].map(|port| partial.flooded_at(port)), [Some(0), Some(200)], "{engine:?} {partial:?}");
        }
    });
}

/// Returns the stream of each port to each other one, all at `rate`. They start one after the other.
fn mesh(ports: u16, rate: u64, frames: u64) -> Vec<FrameStream> {
    let mut streams = Vec::new();
    for from in 0..ports {
        for to in (0..ports).filter(|to| *to != from) {
            let mut stream = between(from, to, rate, frames);
            stream.after = Nanos::new(streams.len() as u64 * 1_000_000_000 / (rate * u64::from(ports * (ports - 1))));
            streams.push(stream);
        }
    }
    streams
}

/// Runs a trial with these streams by both engines, and asserts that each frame arrived at its port only.
fn all_arrive(ports: u16, streams: &[FrameStream]) {
    for engine in ENGINES {
        let task = FramesTask { time: TIME, ..switched(engine, ports, streams.to_vec()) };
        let mut counted = session(&task).run(&Frames).unwrap();
        let caveats = std::mem::take(&mut counted.caveats);
        let part = part(counted);
        assert_eq!((part.engine, part.streams.len()), (engine, streams.len()));
        let mut starts = Vec::new();
        let mut held_up = Nanos::default();
        for (index, (stream, counts)) in streams.iter().zip(&part.streams).enumerate() {
            let sent = counts.sent.as_ref().unwrap();
            let arrived = counts.arrived.as_ref().unwrap();
            starts.push(sent.first - stream.after.get());
            held_up = held_up.max(sent.held_up);
            // What a delayed sender could not send in time is flagged by `intended`.
            let short = Nanos::new(TIME.get() / sent.intended * (sent.intended - sent.sent));
            assert!(short <= sent.held_up + Nanos::from_millis(20), "{engine:?} stream {index}: {counts:?}");
            let seen = (arrived.received, arrived.duplicates, arrived.reordered, counts.flooded);
            assert_eq!(seen, (sent.sent, 0, 0, 0), "{engine:?} stream {index}: {counts:?} {caveats:?}");
        }
        let spread = Nanos::new(starts.iter().max().unwrap() - starts.iter().min().unwrap());
        eprintln!("{engine:?}: {} streams, starts within {spread}, held up for {held_up}", streams.len());
        assert!(spread <= Nanos::new(TIME.get() / 100) + held_up, "{engine:?}: starts within {spread}");
    }
}

/// Length of the trials. 1 % of it is 50 ms.
const TIME: Nanos = Nanos::from_secs(5);

#[lab_test(Bpf)]
fn full_mesh_of_eight_ports_has_56_streams() {
    with_switch(8, || all_arrive(8, &mesh(8, 100, 400)));
}

#[lab_test(Bpf)]
fn eight_ports_send_64_streams() {
    with_switch(8, || {
        let mut streams = mesh(8, 100, 400);
        streams.extend((0..8).map(|from| between(from, (from + 1) % 8, 100, 400)));
        all_arrive(8, &streams);
    });
}
