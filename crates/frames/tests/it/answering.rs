//! Thousands of simulated hosts, which a host with a kernel resolves and pings.

use crate::ports::LONG;
use linerate_engine::FailedBy;
use linerate_engine::testing::Reached;
use linerate_frames::{Frames, port};
use linerate_model::{
    FrameEngine, FrameHeaders, FramePayload, FrameReceiver, FrameStream, FramesTask, Mac, MacRule, SimulatedHosts,
};
use linerate_sys::namespace::NetNamespace;
use linerate_sys::netlink::Route;
use linerate_testsuite::{lab_test, wait_until};
use linerate_units::{FrameRate, FrameSize, Nanos};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::process::Command;
use std::thread;

const HOSTS: u32 = 5_000;
const FIRST_MAC: Mac = Mac([2, 0, 0, 1, 0, 0]);

fn first(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 1, 0).into() } else { Ipv4Addr::new(198, 18, 64, 0).into() }
}

fn host(v6: bool, index: u32) -> IpAddr {
    match first(v6) {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() + index).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() + u128::from(index)).into(),
    }
}

fn trial(engine: FrameEngine) -> FramesTask {
    let own = port("tester").unwrap();
    FramesTask {
        home: "tester".into(),
        ports: vec!["tester".into()],
        streams: vec![FrameStream {
            from: 0,
            to: 0,
            copies_to: Vec::new(),
            size: FrameSize::with_fcs(64).unwrap(),
            rate: Some(FrameRate::per_second(10)),
            count: None,
            after: Nanos::new(0),
            time: None,
            form: linerate_model::FrameForm::default(),
            headers: FrameHeaders {
                source_mac: own.mac,
                destination_mac: Mac([2, 0, 0, 0, 0, 9]),
                vlans: Vec::new(),
                priority: 0,
                dscp: 0,
                source: "198.18.0.2".parse().unwrap(),
                destination: "198.18.0.9".parse().unwrap(),
                payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
            },
        }],
        time: Nanos::from_secs(600),
        settle: Nanos::from_millis(0),
        engine,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: vec![simulated_hosts(false), simulated_hosts(true)],
    }
}

fn simulated_hosts(v6: bool) -> SimulatedHosts {
    SimulatedHosts { port: 0, first: first(v6), count: HOSTS, mac: MacRule::Counting { first: FIRST_MAC } }
}

/// Returns the Ethernet address that the kernel knows for an IP address.
fn neighbour(address: IpAddr) -> Option<Mac> {
    let output = Command::new("ip").args(["neigh", "show", &address.to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().skip_while(|word| *word != "lladdr").nth(1)?.parse().ok()
}

/// Returns whether an address answers one echo request within `within` seconds.
fn pings(address: IpAddr, bytes: u32, within: u32) -> bool {
    let output = Command::new("ping")
        .args(["-n", "-q", "-c", "1"])
        .args(["-W", &within.to_string(), "-s", &bytes.to_string(), &address.to_string()])
        .output();
    output.expect("ping: `make test` installs it").status.success()
}

/// Resolves and pings simulated hosts, on the host with a kernel.
fn ask() {
    for v6 in [false, true] {
        for index in [0, 2_345, HOSTS - 1] {
            let address = host(v6, index);
            for bytes in [56, 1_400] {
                // After 3 s without an answer the kernel gives up on a neighbour until the next request.
                wait_until(&format!("{address} answers"), || pings(address, bytes, 20).then_some(()));
            }
            assert_eq!(neighbour(address), Some(FIRST_MAC.plus(index)), "{address}");
        }
        let nobody = host(v6, HOSTS);
        let socket = UdpSocket::bind(if v6 { "[::]:0" } else { "0.0.0.0:0" }).unwrap();
        let _ = socket.send_to(b"?", (nobody, 9));
        // The kernel's table may be smaller, so each host is looked up while its entry is new.
        for index in (0..HOSTS).step_by(250) {
            let address = host(v6, index);
            wait_until(&format!("{address} is found"), || {
                let is_found = neighbour(address) == Some(FIRST_MAC.plus(index));
                if !is_found {
                    let _ = socket.send_to(b"?", (address, 9));
                }
                is_found.then_some(())
            });
        }
        assert_eq!(neighbour(nobody), None, "{nobody} is no host");
    }
}

#[lab_test(Bpf, Program("ping"), Program("ip"))]
fn a_kernel_host_finds_and_pings_simulated_hosts() {
    let [tester, asker] = [(); 2].map(|()| NetNamespace::new().unwrap());
    tester
        .enter(|| {
            let mut route = Route::open().unwrap();
            route.add_veth("tester", "asker", &asker, 1500).unwrap();
            let link = route.index_of("tester").unwrap();
            route.set_up(link).unwrap();
            asker
                .enter(|| {
                    let mut route = Route::open().unwrap();
                    let link = route.index_of("asker").unwrap();
                    route.set_up(link).unwrap();
                    route.add_address(link, "198.18.0.1".parse().unwrap(), 15).unwrap();
                    route.add_address(link, "2001:2::1".parse().unwrap(), 64).unwrap();
                })
                .unwrap();
            for engine in [FrameEngine::Xdp, FrameEngine::PacketSocket] {
                let session = crate::ports::session(&trial(engine));
                thread::scope(|scope| {
                    let running = scope.spawn(|| session.run(&Frames));
                    assert!(session.wait_for(Reached::Running, LONG), "{engine:?}");
                    let outcome = asker.enter(|| std::panic::catch_unwind(ask)).unwrap();
                    session.stop("enough");
                    let result = running.join().unwrap();
                    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    assert!(matches!(result.unwrap_err().error, FailedBy::Stop(_)), "{engine:?}");
                });
                let answers = asker.enter(|| pings(host(false, 1), 56, 1)).unwrap();
                assert!(!answers, "{engine:?}: it answers after the trial");
            }
        })
        .unwrap();
}
