//! A host with a kernel of its own asks for thousands of simulated ones: it finds them all, and they echo.

use crate::ports::LONG;
use linerate_engine::FailedBy;
use linerate_engine::testing::Reached;
use linerate_frames::{Frames, port};
use linerate_model::{FrameEngine, FrameHeaders, FramePayload, FrameStream, FramesTask, Mac, MacRule, SimulatedHosts};
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
    let hosts =
        |v6| SimulatedHosts { port: 0, first: first(v6), count: HOSTS, mac: MacRule::Counting { first: FIRST_MAC } };
    FramesTask {
        home: "tester".into(),
        ports: vec!["tester".into()],
        streams: vec![FrameStream {
            from: 0,
            to: 0,
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
                source: "198.18.0.2".parse().unwrap(),
                destination: "198.18.0.9".parse().unwrap(),
                payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
            },
        }],
        time: Nanos::from_secs(600),
        settle: Nanos::from_millis(0),
        engine,
        hosts: vec![hosts(false), hosts(true)],
    }
}

/// The Ethernet address that the kernel knows for an IP address.
fn known(address: IpAddr) -> Option<Mac> {
    let output = Command::new("ip").args(["neigh", "show", &address.to_string()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().skip_while(|word| *word != "lladdr").nth(1)?.parse().ok()
}

/// Whether an address answers one echo request within so many seconds.
fn pings(address: IpAddr, bytes: u32, within: u32) -> bool {
    let (size, within) = (bytes.to_string(), within.to_string());
    let ping =
        Command::new("ping").args(["-n", "-q", "-c", "1", "-W", &within, "-s", &size, &address.to_string()]).output();
    ping.expect("ping: `make test` installs it").status.success()
}

/// What the kernel host does meanwhile.
fn ask() {
    for v6 in [false, true] {
        for index in [0, 2_345, HOSTS - 1] {
            let address = host(v6, index);
            for bytes in [56, 1_400] {
                // The kernel takes a neighbour that has not said where it is within 3 s for gone, until it is asked for again.
                wait_until(&format!("{address} answers"), || pings(address, bytes, 20).then_some(()));
            }
            assert_eq!(known(address), Some(FIRST_MAC.plus(index)), "{address}");
        }
        let (nobody, socket) = (host(v6, HOSTS), UdpSocket::bind(if v6 { "[::]:0" } else { "0.0.0.0:0" }).unwrap());
        let _ = socket.send_to(b"?", (nobody, 9));
        // The kernel's table may be smaller than this, so each is looked up while it is new.
        for index in (0..HOSTS).step_by(250) {
            let address = host(v6, index);
            wait_until(&format!("{address} is found"), || {
                let found = known(address) == Some(FIRST_MAC.plus(index));
                if !found {
                    let _ = socket.send_to(b"?", (address, 9));
                }
                found.then_some(())
            });
        }
        assert_eq!(known(nobody), None, "{nobody} is no host");
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
                    let asked = asker.enter(|| std::panic::catch_unwind(ask)).unwrap();
                    session.stop("all has been asked");
                    let ended = running.join().unwrap();
                    asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    assert!(matches!(ended.unwrap_err().error, FailedBy::Stop(_)), "{engine:?}");
                });
                let after = asker.enter(|| pings(host(false, 1), 56, 1)).unwrap();
                assert!(!after, "{engine:?}: it answers after the trial is over");
            }
        })
        .unwrap();
}
