//! The simulated network itself, against figures worked out by hand.

use super::*;
use crate::device::Device as DeviceMethod;
use crate::device::tests::{frames_of, next, plan};
use linerate_model::{DeviceTest, Direction, NfsMix, NfsTask, Path, StreamTask, Timing};
use linerate_units::ByteCount;

fn stream(transport: Transport, bytes: u64) -> StreamTask {
    StreamTask { paths: vec![Path::between("a", "b")], ..StreamTask::plain(transport, ByteCount::new(bytes)) }
}

fn trial(task: Task) -> Trial {
    Trial::new("cell", task, Timing::of(Nanos::from_millis(100), Nanos::from_secs(1)))
}

fn attempt(network: &Network, task: Task) -> TrialResult {
    network.attempt(&trial(task), 0).expect("its hosts count")
}

#[test]
fn a_stream_has_its_share_of_the_line_each_way() {
    let network = Network::default();
    for direction in [Direction::Send, Direction::Receive, Direction::Both] {
        let result = attempt(&network, Task::Stream(StreamTask { direction, ..stream(Transport::Udp, 1_472) }));
        for transfer in crate::transfers(&result) {
            assert!((transfer.payload_bps() / (1e9 * 1_472.0 / 1_538.0) - 1.0).abs() < 1e-3, "{direction:?}");
        }
        assert_eq!(crate::transfers(&result).len(), if direction == Direction::Both { 2 } else { 1 });
    }
}

#[test]
fn operations_are_those_in_flight_over_their_time_until_the_server_is_busy() {
    let mix = NfsMix::named("getattr").expect("a mix");
    let task = |outstanding| NfsTask {
        paths: vec![Path::between("a", "b")],
        outstanding,
        ..NfsTask::plain(Transport::Tcp, mix.clone())
    };
    let server = Server { workers: 2, service: Nanos::from_millis(1) };
    let network = Network { server, round_trip: Nanos::from_millis(1), ..Network::default() };
    // Each takes 2 ms. The server does 2,000 a second.
    for (outstanding, per_s, millis) in [(1, 500.0, 2.0), (4, 2_000.0, 2.0), (8, 2_000.0, 4.0)] {
        let result = attempt(&network, Task::Nfs(task(outstanding)));
        let asked = result.paths()[0].client.transactions.clone().expect("it asked");
        assert_eq!(asked.completed as f64, per_s, "{outstanding}");
        assert!((asked.latency.mean() / 1e6 / millis - 1.0).abs() < 0.01, "{outstanding}: {}", asked.latency.mean());
    }
}

#[test]
fn a_buffer_holds_what_a_device_does_not_forward_at_once() {
    let device = Device { rate: FrameRate::per_second(100_000), buffer: 5_000, ..Network::default().device };
    let network = Network { device, ..Network::default() };
    let mut trial = next(&DeviceMethod::new(&plan(DeviceTest::Throughput, false), &[])).expect("a trial");
    let mut sent = |rate: u64| {
        let Task::Frames(task) = trial.task_mut() else { panic!("frames") };
        task.time = Nanos::from_secs(1);
        task.streams[0].rate = Some(FrameRate::per_second(rate));
        let result = network.attempt(&trial, 0).expect("its hosts count");
        assert_eq!(frames_of(&result.trial).streams.len(), 1);
        let counts = result.frames().expect("frames").counts.streams[0].clone();
        (counts.sent, counts.received, counts.latency.mean())
    };
    let (offered, received, latency) = sent(100_000);
    assert_eq!((offered, received), (100_000, 100_000));
    assert!((latency / 10e3 - 1.0).abs() < 0.01, "{latency}");
    assert_eq!(sent(104_000).1, 104_000, "4,000 of them wait");
    let (offered, received, latency) = sent(200_000);
    assert_eq!((offered, received), (200_000, 105_000), "the buffer is full after 50 ms, and then half is lost");
    // 5,000 frames wait for 50 ms.
    assert!((latency / 50e6 - 1.0).abs() < 0.01, "{latency}");
}
