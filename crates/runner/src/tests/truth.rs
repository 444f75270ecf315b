//! What runs come to, held against what was planted in the network.

use super::fake::FakeAgents;
use super::{plans, run};
use linerate_method::simulation::{Device, Network, Server};
use linerate_model::{
    CopyOnError, DeviceFound, DeviceTest, IpVersion, LayerName, Limit, Measurement, Plan, Record, Transport,
};
use linerate_units::{BitRate, FrameRate, Nanos};

async fn measured(plan: Plan, network: &Network) -> Record {
    let plan = plans::lengthened(plan);
    let ended = run(plan, &FakeAgents::on(network.clone(), &["a", "c", "b"]), None, &mut |_| ()).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    ended.record
}

#[track_caller]
fn close(value: f64, truth: f64, within: f64) {
    assert!((value / truth - 1.0).abs() <= within, "{value} is not {truth}");
}

fn only(record: &Record) -> &Measurement {
    assert_eq!(record.results.len(), 1);
    &record.results[0]
}

fn lines() -> [Network; 3] {
    [10_000_000, 1_000_000_000, 25_000_000_000]
        .map(|rate| Network { line: BitRate::per_second(rate), ..Network::default() })
}

#[tokio::test(start_paused = true)]
async fn streams_have_what_the_line_carries_and_its_name() {
    for network in lines() {
        for (plan, transport, bytes) in
            [(plans::udp(), Transport::Udp, 1_472), (plans::sweep(2), Transport::Tcp, 128 << 10)]
        {
            let record = measured(plan, &network).await;
            for result in &record.results {
                close(result.main.median, network.payload(transport, IpVersion::V4, bytes), 0.02);
                assert_eq!(result.verdict.limit, Limit::Wire, "{:?}", result.verdict);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lossy_path_costs_tcp_what_theory_says_and_is_named() {
    let network = Network { loss: 0.005, round_trip: Nanos::from_millis(10), ..Network::default() };
    let record = measured(plans::sweep(2), &network).await;
    for result in &record.results {
        close(result.main.median, network.reno().expect("it loses"), 0.1);
        assert_eq!(result.verdict.limit, Limit::PathLoss, "{:?}", result.verdict);
    }
    let lossy = Network { loss: 0.02, ..Network::default() };
    let record = measured(plans::udp(), &lossy).await;
    let loss = only(&record).loss().copied().expect("datagrams are counted");
    assert!(loss.lost as f64 / loss.of as f64 >= 0.02, "{loss:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_round_trip() {
    for micros in [50, 1_000, 20_000] {
        let network = Network { round_trip: Nanos::new(micros * 1_000), ..Network::default() };
        let record = measured(plans::transact(), &network).await;
        close(only(&record).main.median, 1e6 / micros as f64, 0.02);
        let latency = only(&record).latency().cloned().expect("it was timed");
        close(latency.p50 as f64, micros as f64 * 1e3, 0.02);
    }
}

#[tokio::test(start_paused = true)]
async fn latency_under_load_is_the_queue() {
    for queue in [5, 50].map(Nanos::from_millis) {
        let network = Network { queue, ..Network::default() };
        let record = measured(plans::loaded_latency(), &network).await;
        let loaded = only(&record).loaded_latency().cloned().expect("it was probed");
        close(loaded.added_ns.p50_runs.median, queue.get() as f64, 0.05);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_move_what_the_line_or_their_number_in_flight_allows() {
    let head = 8_192.0 / 8_256.0;
    for network in lines() {
        let record = measured(plans::rpc(), &network).await;
        let moved = only(&record).received().expect("writes").payload_bps.median;
        let line = network.payload(Transport::Tcp, IpVersion::V4, 1 << 20) * head;
        let in_flight = 16.0 * 8_192.0 * 8.0 / network.round_trip.as_secs_f64();
        close(moved, line.min(in_flight), 0.03);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_found_and_named() {
    let server = Server { workers: 16, service: Nanos::from_millis(4) };
    let network = Network { server, ..Network::default() };
    let record = measured(plans::nfs(), &network).await;
    close(only(&record).main.median, server.capacity().expect("it limits"), 0.06);
    assert_eq!(only(&record).verdict.limit, Limit::Server, "{:?}", only(&record).verdict);
}

#[tokio::test(start_paused = true)]
async fn a_curve_peaks_at_the_servers_capacity() {
    for (workers, millis) in [(4, 2), (1, 1), (16, 10)] {
        let server = Server { workers, service: Nanos::from_millis(millis) };
        let record = measured(plans::curve(), &Network { server, ..Network::default() }).await;
        let peak = record.curve().and_then(|(_, found)| found.peak.clone()).expect("a peak");
        // 16 in flight do not fill the last of them.
        let capacity = server.capacity().expect("it limits").min(16.0 / (f64::from(millis as u32) / 1e3 + 0.0002));
        close(peak.achieved_ops, capacity, 0.1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_as_fast_as_the_path_or_the_storage_and_that_is_named() {
    let slow_line = Network { line: BitRate::per_second(100_000_000), ..Network::default() };
    let slow_disk = Network { storage: 20_000_000, ..Network::default() };
    let path = slow_line.payload(Transport::Tcp, IpVersion::V4, 1 << 20);
    for (network, bits, limit) in [(slow_line, path, Limit::Wire), (slow_disk, 160e6, Limit::StorageWrite)] {
        for sources in [&["a"][..], &["a", "c"]] {
            let record = measured(plans::copy(sources, CopyOnError::Stop, 2), &network).await;
            close(only(&record).main.median, bits, 0.02);
            assert_eq!(only(&record).verdict.limit, limit, "{sources:?}: {:?}", only(&record).verdict);
        }
    }
}

async fn tested(test: DeviceTest, device: Device) -> DeviceFound {
    let record = measured(plans::device(test), &Network { device, ..Network::default() }).await;
    record.device().expect("a device test").1.clone()
}

fn device(rate: u64) -> Device {
    Device { rate: FrameRate::per_second(rate), ..Network::default().device }
}

#[tokio::test(start_paused = true)]
async fn a_devices_throughput_is_found_at_any_rate() {
    // Of frames of 64 bytes a line of 1 Gbit/s carries 1,488,095 a second.
    for rate in [3_000, 40_000, 100_000, 777_777, 5_000_000] {
        let found = tested(DeviceTest::Throughput, device(rate)).await;
        let truth = rate.min(1_488_095) as f64;
        let cell = &found.throughput[0];
        assert!(cell.frames_per_s <= truth * 1.0001, "{} of {truth}", cell.frames_per_s);
        close(cell.frames_per_s, truth, 0.05);
        assert_eq!(cell.limit == Limit::Wire, rate > 1_488_095, "{:?}", cell.verdict);
    }
}

#[tokio::test(start_paused = true)]
async fn a_devices_loss_buffer_and_recovery_are_found() {
    let rate = 500_000.0;
    let found = tested(DeviceTest::Loss { step_percent: 10 }, device(500_000)).await;
    for point in &found.loss[0].points {
        let truth = (1.0 - rate / point.offered_frames_per_s).max(0.0);
        assert!((point.loss_ratio - truth).abs() < 0.01, "{point:?}: {truth}");
    }
    let with_buffer = Device { buffer: 1_000, ..device(500_000) };
    let found = tested(DeviceTest::Burst { repeats: 3 }, with_buffer).await;
    // A burst at the line's rate fills the buffer by what is not forwarded meanwhile.
    let longest = 1_000.0 / (1.0 - rate / 1_488_095.0);
    close(found.burst[0].frames.as_ref().expect("bursts came back").mean, longest, 0.05);
    let recovery = Nanos::from_millis(120);
    let found = tested(DeviceTest::Recovery { repeats: 2 }, Device { recovery, ..device(100_000) }).await;
    close(found.recovery[0].mean_ns.expect("it recovered"), recovery.get() as f64, 0.05);
}

#[tokio::test(start_paused = true)]
async fn a_ladder_of_a_clean_path_is_full_and_a_slow_layer_is_named() {
    let record = measured(plans::ladder(3), &Network::default()).await;
    let ladder = record.ladder().expect("a ladder");
    for layer in &ladder.layers {
        let share = layer.share_of_line.unwrap_or_default();
        assert!(share > 0.9, "{:?}: {share} {:?}", layer.name, layer.missing);
    }
    assert_eq!(ladder.widest_gap, None);
    // A server whose operations take long, and storage that takes little.
    let server = Server { workers: 1, service: Nanos::from_millis(2) };
    for (network, above) in [
        (Network { server, ..Network::default() }, LayerName::NfsRead),
        (Network { storage: 10_000_000, ..Network::default() }, LayerName::Copy),
    ] {
        let record = measured(plans::ladder(3), &network).await;
        let gap = record.ladder().and_then(|ladder| ladder.widest_gap.clone()).expect("a gap");
        assert_eq!(gap.above, above, "{gap:?}");
    }
}
