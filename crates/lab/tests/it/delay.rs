//! A path lets each raw frame go so much later, whole, and where it must.

use crate::support::{fake_agent, host, wait_for};
use linerate_lab::{Bench, Lab, LabOptions};
use linerate_sys::clock;
use linerate_sys::netlink::Route;
use linerate_sys::packet::{Incoming, PacketSocket};
use linerate_testsuite::{alone, lab_test};
use linerate_units::Nanos;

/// An EtherType for experiments (IEEE 802): no kernel sends or answers it.
const TEST: u16 = 0x88b5;
const FRAMES: usize = 200;
/// Between two frames, ns: 2,000 a second.
const GAP: u64 = 500_000;
const DELAY: Nanos = Nanos::from_millis(10);
const MACS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 0xa0], [2, 0, 0, 0, 0, 0xa1], [2, 0, 0, 0, 0, 0xa2]];

/// A tester on a path, and its three ports.
struct Tester {
    _lab: Lab,
    ports: Vec<PacketSocket>,
}

impl Tester {
    fn new(limits: &str) -> Self {
        let device = format!("path,{limits}").parse().expect("a device");
        let bench = Bench::find("tester").expect("built in").with_device(device);
        let options = LabOptions { program: fake_agent(), keep: false, folders: Vec::new() };
        let lab = wait_for(Lab::up(&bench, &options)).expect("a lab");
        let open = || {
            let mut route = Route::open().expect("netlink");
            let open = |port: u8| {
                let link = route.index_of(&format!("p{port}")).expect("a port");
                let socket = PacketSocket::open(link, Some(TEST)).expect("a packet socket");
                socket.hear_all().expect("promiscuous");
                socket.stamp_and_hold(8 << 20).expect("stamps");
                socket
            };
            (0..3).map(open).collect()
        };
        let ports = lab.inside(&host("tester"), open).expect("inside");
        Self { _lab: lab, ports }
    }

    fn send(&self, from: usize, to: [u8; 6], bytes: usize) {
        let mut frame = [&to[..], &MACS[from], &TEST.to_be_bytes()].concat();
        frame.resize(14, 0);
        frame.extend(clock::unix_now().to_be_bytes());
        frame.resize(bytes, 0x5a);
        self.ports[from].send(&frame).expect("sent");
    }

    /// Waits for so many frames: how long each took, and its size. Each must come whole, and none more within 50 ms.
    fn heard(&self, port: usize, frames: usize) -> Vec<(u64, usize)> {
        let mut incoming = Incoming::with_room(64, 2_048);
        let mut heard = Vec::new();
        while self.ports[port].wait(if heard.len() < frames { 10_000 } else { 50 }) {
            incoming.take(&self.ports[port]).expect("received");
            heard.extend(incoming.frames().map(|(frame, stamp)| {
                assert!(frame[22..].iter().all(|byte| *byte == 0x5a), "{frame:?}");
                let sent = u64::from_be_bytes(frame[14..22].try_into().expect("8 bytes"));
                (stamp - sent, frame.len())
            }));
        }
        assert_eq!(heard.len(), frames, "port {port}");
        heard
    }

    /// The shortest of the times that frames took.
    fn shortest(&self) -> u64 {
        // So that the device knows where the second port is.
        self.send(1, MACS[0], 60);
        self.heard(0, 1);
        for _ in 0..FRAMES {
            // After a pause of this thread no burst follows: the device has a limit.
            let next = clock::now() + GAP;
            self.send(0, MACS[1], 60);
            clock::spin_until(next);
        }
        self.heard(1, FRAMES).into_iter().map(|(time, _)| time).min().expect("some")
    }
}

/// A busy machine makes most frames later, but not each of them.
#[lab_test]
fn no_frame_is_sooner_than_the_delay_and_some_are_hardly_later() {
    let _alone = alone();
    let shortest = Tester::new("delay=10ms").shortest();
    eprintln!("the shortest took {shortest} ns");
    // Frames are sent as much earlier as sending takes.
    assert!((DELAY.get() - 50_000..DELAY.get() + 5_000_000).contains(&shortest), "{shortest} ns");
}

#[lab_test]
fn frames_of_all_sizes_go_where_they_must() {
    let _alone = alone();
    let tester = Tester::new("delay=1ms");
    for bytes in [60, 512, 1_514] {
        // To everybody but the sender, whole.
        tester.send(1, [0xff; 6], bytes);
        let sizes = |expected: [usize; 3]| {
            for (port, frames) in expected.into_iter().enumerate() {
                assert!(tester.heard(port, frames).into_iter().all(|(_, size)| size == bytes), "port {port}");
            }
        };
        sizes([1, 0, 1]);
        tester.send(0, MACS[1], bytes);
        sizes([0, 1, 0]);
    }
}
