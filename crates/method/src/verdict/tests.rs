//! Each rule against facts that are made up for it, and what the whole makes of them.

use super::facts::{ClosedLoop, End, Facts, KernelThread, Offer, Tcp, Udp, Work};
use super::verdict;
use crate::transfer::tests::trial;
use linerate_model::{Ceiling, Confidence, Limit, PathLimit, RecordId, Stand};
use linerate_units::BitRate;

/// A TCP stream of 500 Mbit/s over a path of unknown speed between idle hosts, with nothing to explain it.
fn facts() -> Facts {
    let end = End { busy: 0.2, ..End::default() };
    Facts {
        work: Work::Tcp,
        reached: 500e6,
        line: None,
        message_bytes: 1448,
        ceiling: None,
        offer: None,
        sender: end.clone(),
        receiver: end,
        tcp: Some(tcp()),
        udp: None,
        closed_loop: None,
        steal: 0.0,
    }
}

fn tcp() -> Tcp {
    Tcp {
        congestion: String::from("cubic"),
        rtt: 0.0005,
        min_rtt: 0.0004,
        segment_bits: 1448.0 * 8.0,
        flow_bps: 500e6,
        peer_window: 3e6,
        congestion_window: 1e6,
        ..Tcp::default()
    }
}

fn with_line(share: f64) -> Facts {
    let (line_bps, payload_bps) = (BitRate::per_second(1_000_000_000), BitRate::per_second(941_000_000));
    Facts { line: Some(PathLimit { line_bps, mtu: 1500, payload_bps, share }), ..facts() }
}

fn udp(udp: Udp) -> Facts {
    Facts { work: Work::Udp, tcp: None, udp: Some(Udp { buffer_time: 0.01, ..udp }), ..facts() }
}

fn at_ceiling(facts: Facts, share: f64) -> Facts {
    let reached = crate::summary(vec![80e6]).expect("one run");
    Facts { ceiling: Some((Ceiling { record: RecordId("calibration".into()), reached, share }, false)), ..facts }
}

#[track_caller]
fn is(facts: &Facts, limit: Limit, confidence: Confidence) {
    let said = verdict(facts);
    assert_eq!((said.limit, said.confidence), (limit, confidence), "{said:#?}");
}

#[test]
fn a_full_line_is_the_wire_even_at_the_ceiling() {
    is(&with_line(0.998), Limit::Wire, Confidence::High);
    is(&at_ceiling(with_line(0.998), 1.0), Limit::Wire, Confidence::High);
}

#[test]
fn at_the_ceiling_below_the_line_it_is_the_tester_and_below_the_ceiling_the_device() {
    let busy = End { busy: 0.5, ..End::default() };
    let queued = |share| at_ceiling(Facts { sender: busy.clone(), ..with_line(0.4) }, share);
    assert_eq!(verdict(&queued(0.99)).limit, Limit::Tester);
    assert_eq!(verdict(&queued(0.5)).limit, Limit::Device);
}

#[test]
fn a_thread_that_always_has_work_is_the_limit_unless_it_kept_its_load() {
    let occupied = End { busy: 0.7, waited: 0.25, ..End::default() };
    let slow = Facts { sender: occupied.clone(), ..facts() };
    is(&slow, Limit::SenderCpu, Confidence::High);
    is(&Facts { receiver: occupied.clone(), ..facts() }, Limit::ReceiverCpu, Confidence::High);
    let kept = Facts { offer: Some(Offer { sent: 1.0, arrived: 1.0 }), ..slow.clone() };
    is(&kept, Limit::OfferedLoad, Confidence::High);
    // What is sent in vain is not the sender's limit.
    let outrun = Facts { sender: occupied, ..udp(Udp { wire: 0.4, ..Udp::default() }) };
    assert_eq!(verdict(&outrun).limit, Limit::Shaper);
}

#[test]
fn a_quota_that_is_used_up_stops_the_threads_however_idle_they_look() {
    let throttled = End { busy: 0.05, throttled: Some((0.98, 0.05)), ..End::default() };
    is(&Facts { sender: throttled.clone(), ..facts() }, Limit::SenderCpu, Confidence::High);
    let dropped = Facts { receiver: throttled, ..udp(Udp { socket_buffer: 0.6, ..Udp::default() }) };
    is(&dropped, Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn a_full_buffer_is_the_readers_fault_only_if_it_had_no_time() {
    let lost = Udp { socket_buffer: 0.3, ..Udp::default() };
    is(&udp(lost), Limit::ReceiverBuffer, Confidence::High);
    let late = End { busy: 0.1, waited: 0.4, ..End::default() };
    is(&Facts { receiver: late.clone(), ..udp(lost) }, Limit::ReceiverCpu, Confidence::High);
    // A buffer of two datagrams overflows however soon the reader comes.
    let tiny = Udp { buffer_time: 0.000_05, ..lost };
    let tiny = Facts { udp: Some(tiny), receiver: late, ..udp(lost) };
    assert_eq!(verdict(&tiny).limit, Limit::ReceiverBuffer);
}

#[test]
fn a_kernel_thread_kept_from_its_core_is_the_receivers_processor() {
    let thread = KernelThread { name: String::from("napi/eth0-7"), own: true, busy: 0.3, waited: 0.4 };
    let kernel = Some(thread.clone());
    let late = Facts { receiver: End { kernel, ..End::default() }, ..facts() };
    let bbr = Tcp { congestion: String::from("bbr"), resent: 0.1, ..tcp() };
    let lossy = Facts { tcp: Some(bbr), ..late.clone() };
    is(&lossy, Limit::ReceiverCpu, Confidence::High);
    // What waits and is not lost costs no rate.
    assert_ne!(verdict(&late).limit, Limit::ReceiverCpu);
    // A thread of the whole machine may be late with what is another's.
    let of_machine = KernelThread { name: String::from("ksoftirqd/1"), own: false, ..thread };
    let blamed = |dropped| {
        let receiver = End { kernel: Some(of_machine.clone()), dropped, ..End::default() };
        verdict(&Facts { receiver, ..lossy.clone() }).limit
    };
    assert_ne!(blamed(0.0), Limit::ReceiverCpu);
    assert_eq!(blamed(0.01), Limit::ReceiverCpu);
}

#[test]
fn a_window_that_is_full_limits_and_one_that_is_not_does_not() {
    let held = |window_limited, rtt: f64| Facts {
        tcp: Some(Tcp { window_limited, rtt, min_rtt: rtt, flow_bps: 12e6, peer_window: 65_536.0, ..tcp() }),
        reached: 12e6,
        ..facts()
    };
    // 12 Mbit/s over 43 ms are 64,500 bytes under way.
    is(&held(0.45, 0.043), Limit::Window, Confidence::High);
    is(&held(0.95, 0.001), Limit::Window, Confidence::High);
    assert_ne!(verdict(&held(0.05, 0.043)).limit, Limit::Window);
    let slow_reader = Facts { receiver: End { busy: 0.95, ..End::default() }, ..held(0.95, 0.001) };
    is(&slow_reader, Limit::ReceiverCpu, Confidence::High);
}

/// At 1 % loss and 20 ms CUBIC has 12.2 segments under way (Reno's, RFC 9438 section 4.3): 7.1 Mbit/s.
#[test]
fn loss_rules_where_the_formula_gives_what_was_reached() {
    let lossy = |resent, flow_bps, rtt, min_rtt| Facts {
        tcp: Some(Tcp { resent, flow_bps, rtt, min_rtt, ..tcp() }),
        reached: flow_bps,
        ..facts()
    };
    is(&lossy(0.01, 7.1e6, 0.02, 0.02), Limit::PathLoss, Confidence::High);
    // The same loss over a short path would allow far more.
    assert_ne!(verdict(&lossy(0.01, 7.1e6, 0.000_2, 0.000_2)).limit, Limit::PathLoss);
    // Loss out of a queue that fills is the queue's.
    is(&lossy(0.000_1, 95e6, 0.022, 0.000_1), Limit::Shaper, Confidence::High);
    let bbr = Tcp { congestion: String::from("bbr"), resent: 0.01, flow_bps: 95e6, ..tcp() };
    is(&Facts { tcp: Some(bbr), ..facts() }, Limit::Shaper, Confidence::High);
}

#[test]
fn datagrams_lost_at_a_load_that_was_sent_are_the_paths() {
    let lost =
        |wire| Facts { offer: Some(Offer { sent: 1.0, arrived: 1.0 - wire }), ..udp(Udp { wire, ..Udp::default() }) };
    is(&lost(0.01), Limit::PathLoss, Confidence::Medium);
    assert_eq!(verdict(&lost(0.4)).limit, Limit::Shaper);
    is(&lost(0.0), Limit::OfferedLoad, Confidence::High);
}

#[test]
fn requests_one_after_the_other_wait_for_each_other() {
    let closed = Facts {
        work: Work::Transact,
        tcp: None,
        closed_loop: Some(ClosedLoop { outstanding: 1.0, latency: 0.000_05 }),
        ..facts()
    };
    is(&closed, Limit::Latency, Confidence::High);
    // Two ends that take turns on one core wait for each other.
    let in_turns = End { busy: 0.45, waited: 0.5, ..End::default() };
    is(&Facts { sender: in_turns.clone(), receiver: in_turns, ..closed.clone() }, Limit::Latency, Confidence::High);
    let busy = End { busy: 0.95, ..End::default() };
    is(&Facts { receiver: busy, ..closed }, Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn otherwise_it_cannot_tell_and_says_what_was_missing() {
    // A TCP whose own account is missing says nothing of the path.
    let said = verdict(&Facts { tcp: None, ..facts() });
    assert_eq!((said.limit, said.confidence), (Limit::CannotTell, Confidence::Low), "{said:#?}");
    assert!(said.evidence.iter().any(|text| text.contains("speed of no link is known")), "{:?}", said.evidence);
    assert!(said.weighed.iter().any(|one| one.limit == Limit::SenderCpu && one.stand == Stand::Against));
}

#[test]
fn time_taken_by_the_hypervisor_makes_every_verdict_less_sure() {
    is(&Facts { steal: 0.2, ..with_line(0.998) }, Limit::Wire, Confidence::Medium);
}

#[test]
fn facts_come_from_the_trials() {
    use linerate_model::{CpuQuota, KernelThreadUse, ThreadUse};
    use linerate_units::Nanos;
    let mut run = trial(9_000, 0);
    if let Some(b) = run.hosts.get_mut(&"b".into()) {
        b.window = Nanos::from_secs(1);
        let thread = |name: &str, cpu, waited| ThreadUse {
            name: name.into(),
            cpu: Nanos::from_millis(cpu),
            waited: Some(Nanos::from_millis(waited)),
            sends: false,
        };
        b.threads = vec![thread("receive 0", 300, 100), thread("receive 1", 500, 300)];
        b.quota = Some(CpuQuota { cores: 0.5, periods: 10, throttled: 4 });
        let kernel = |name: &str, cpu| KernelThreadUse {
            name: name.into(),
            cpu: Nanos::from_millis(cpu),
            waited: Nanos::new(0),
        };
        b.kernel_threads = vec![kernel("napi/eth7-1", 900), kernel("napi/eth0-2", 200)];
    }
    let plan = linerate_model::Plan {
        cells: vec![run.spec.clone()],
        repeats: linerate_model::Repeats::Times(1),
        device: None,
        ladder: None,
    };
    let result = crate::measurements(&plan, &[], std::slice::from_ref(&run), None).remove(0);
    let found = Facts::of(&result, &[&run]);
    assert!((found.receiver.busy - 0.4).abs() < 1e-9 && (found.receiver.waited - 0.2).abs() < 1e-9, "{found:?}");
    assert_eq!(found.receiver.throttled, Some((0.4, 0.5)));
    let own = found.receiver.kernel.as_ref().map(|thread| (thread.name.as_str(), thread.own, thread.busy));
    assert_eq!(own, Some(("napi/eth0-2", true, 0.2)), "another interface's is left out");
    assert_eq!(found.work, Work::Udp);
}
