//! Two ports joined by a virtual cable, and trials between them.

#![allow(dead_code, reason = "each test file uses its own part")]

use linerate_frames::{Counts, port, run, xdp_possible};
use linerate_model::{FrameEngine, FrameForm, FrameHeaders, FramePayload, FrameStream, FrameTrial};
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_units::{FrameRate, FrameSize, Nanos};
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Two trials at once would take each other's cores.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) const ENGINES: [FrameEngine; 2] = [FrameEngine::Xdp, FrameEngine::PacketSocket];
pub(crate) const UDP: FramePayload = FramePayload::Udp { source_port: 49_152, destination_port: 7 };
pub(crate) const OWN: [&str; 2] = ["198.18.0.1", "2001:2::1"];
pub(crate) const FAR: [&str; 2] = ["198.18.0.2", "2001:2::2"];

/// Runs `work` in a namespace with two ports, `left` and `right`, joined by a virtual cable.
pub(crate) fn with_ports(name: &str, work: impl FnOnce(&NetNamespace) + Send) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let namespace = match NetNamespace::new() {
        Ok(namespace) if xdp_possible().is_ok() => namespace,
        other => {
            let why = other.err().map_or(String::from("XDP is not permitted"), |error| error.to_string());
            assert!(std::env::var_os("CI").is_none(), "{name}: {why}");
            eprintln!("SKIPPED: {name}: {why}");
            return;
        }
    };
    namespace
        .enter(|| {
            let mut route = Route::open().unwrap();
            route.add_veth("left", "right", &namespace, 1500).unwrap();
            for port in ["left", "right"] {
                let link = route.index_of(port).unwrap();
                route.set_up(link).unwrap();
            }
            work(&namespace);
        })
        .unwrap();
}

pub(crate) fn stream(from: u16, family: usize, size: u32, rate: Option<u64>, payload: FramePayload) -> FrameStream {
    let [source, destination] = [OWN, FAR].map(|ends| ends[family].parse::<IpAddr>().unwrap());
    let [a, b] = ["left", "right"].map(|name| port(name).unwrap().mac);
    let (source_mac, destination_mac) = if from == 0 { (a, b) } else { (b, a) };
    FrameStream {
        from,
        to: 1 - from,
        size: FrameSize::with_fcs(size).unwrap(),
        rate: rate.map(FrameRate::per_second),
        count: None,
        after: Nanos::new(0),
        time: None,
        headers: FrameHeaders { source_mac, destination_mac, vlans: Vec::new(), source, destination, payload },
        form: FrameForm::default(),
    }
}

pub(crate) fn trial(engine: FrameEngine, milliseconds: u64, streams: Vec<FrameStream>) -> FrameTrial {
    FrameTrial {
        name: String::from("test"),
        ports: vec!["left".into(), "right".into()],
        streams,
        time: Nanos::from_millis(milliseconds),
        settle: Nanos::from_millis(100),
        engine,
        hosts: Vec::new(),
    }
}

pub(crate) fn counts(trial: &FrameTrial) -> Counts {
    run(trial, &AtomicBool::new(false), &|_, _| {}).unwrap()
}
