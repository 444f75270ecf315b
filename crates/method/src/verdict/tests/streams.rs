//! Streams, and what holds for every load.

use super::super::facts::{BusUse, Course, KernelThread, LossPattern, Offer, OneWay, Pace, TcpCourse, Vanished};
use super::*;
use crate::transfer::tests::trial;
use linerate_model::{LimitPlace, Support, Verdict};

/// Datagrams of which the path lost the share `wire` at a load that was sent in full, in this pattern.
fn datagrams_lost(wire: f64, losses: Option<LossPattern>) -> FlowFacts {
    let offer = Some(Offer { sent: 1.0, arrived: 1.0 - wire });
    let course = Some(Course { growth: 1.0, losses, ..Course::default() });
    FlowFacts { offer, course, ..udp(Udp { wire, ..Udp::default() }) }
}

/// Datagrams sent as fast as possible, of which this share was in excess of a rate.
fn in_excess(lost: Udp) -> FlowFacts {
    let course = Some(Course { growth: 1.0, losses: Some(LossPattern::Excess), ..Course::default() });
    FlowFacts { course, ..udp(lost) }
}

#[test]
fn a_full_line_is_the_wire_even_at_the_tester_limit() {
    is(&with_line(0.998), Limit::Wire, Confidence::High);
    is(&at_tester_limit(with_line(0.998), 1.0), Limit::Wire, Confidence::High);
}

#[test]
fn at_the_tester_limit_it_is_the_tester_and_below_it_the_device() {
    let busy = End { busy: 0.5, ..End::default() };
    let queued = |share| at_tester_limit(FlowFacts { sender: busy.clone(), ..with_line(0.4) }, share);
    assert_eq!(of_flows(&queued(0.99)).limit, Limit::Tester);
    assert_eq!(of_flows(&queued(0.5)).limit, Limit::Device);
}

#[test]
fn an_estimated_tester_limit_names_the_tester_only_where_nothing_else_was_counted() {
    let busy = End { busy: 0.5, ..End::default() };
    let alone = |sender: &End, share| FlowFacts {
        tester_alone: TesterAlone::Loopback,
        ..at_tester_limit(FlowFacts { sender: sender.clone(), ..with_line(0.4) }, share)
    };
    let at = of_flows(&alone(&busy, 0.99));
    assert_eq!(at.limit, Limit::Tester, "{at:#?}");
    assert_ne!(at.confidence, Confidence::High);
    let below = of_flows(&alone(&busy, 0.5));
    assert!(![Limit::Tester, Limit::Device].contains(&below.limit), "{below:#?}");
    let occupied = End { busy: 0.7, waited: 0.25, ..End::default() };
    assert_eq!(of_flows(&alone(&occupied, 0.99)).limit, Limit::SenderCpu);
}

#[test]
fn a_thread_that_always_has_work_is_the_limit_unless_it_kept_its_load() {
    let occupied = End { busy: 0.7, waited: 0.25, ..End::default() };
    let slow = FlowFacts { sender: occupied.clone(), ..facts() };
    is(&slow, Limit::SenderCpu, Confidence::High);
    is(&FlowFacts { receiver: occupied.clone(), ..facts() }, Limit::ReceiverCpu, Confidence::High);
    let kept = FlowFacts { offer: Some(Offer { sent: 1.0, arrived: 1.0 }), ..slow.clone() };
    is(&kept, Limit::OfferedLoad, Confidence::High);
    // What is sent in vain is not the sender's limit.
    let outrun = FlowFacts { sender: occupied, ..in_excess(Udp { wire: 0.4, ..Udp::default() }) };
    assert_eq!(of_flows(&outrun).limit, Limit::Shaper);
}

#[test]
fn a_machine_with_too_few_cores_for_both_ends_tells_neither_from_the_other() {
    let (sender, receiver) =
        (End { busy: 0.55, waited: 0.4, ..End::default() }, End { busy: 0.4, waited: 0.45, ..End::default() });
    let two_machines = FlowFacts { sender: sender.clone(), receiver, ..facts() };
    is(&two_machines, Limit::SenderCpu, Confidence::Medium);
    let one_machine = FlowFacts { one_machine: true, ..two_machines.clone() };
    is(&one_machine, Limit::CannotTell, Confidence::Low);
    // The receiver had a core whenever it wanted one.
    let receiver = End { busy: 0.4, waited: 0.05, ..End::default() };
    is(&FlowFacts { receiver, ..one_machine.clone() }, Limit::SenderCpu, Confidence::High);
    let quota = End { throttled: Some((0.9, 0.2)), ..sender };
    is(&FlowFacts { sender: quota, ..one_machine }, Limit::SenderCpu, Confidence::Medium);
}

/// An end that nobody watched is not one that had time to spare.
#[test]
fn of_an_end_without_an_agent_nothing_is_excluded() {
    let unseen = End { unseen: true, ..End::default() };
    let verdict = of_flows(&FlowFacts { receiver: unseen.clone(), ..facts() });
    let of = |limit| verdict.weighed.iter().find(|weighed| weighed.limit == limit).expect("it is weighed").clone();
    let receiver = of(Limit::ReceiverCpu);
    assert_eq!(receiver.support, Support::Unknown);
    assert!(receiver.text.contains("runs no agent"), "{}", receiver.text);
    assert_ne!(of(Limit::SenderCpu).support, Support::Unknown);
    let lossy = FlowFacts { receiver: unseen, ..in_excess(Udp { wire: 0.4, ..Udp::default() }) };
    let (seen, unseen) = (of_flows(&FlowFacts { receiver: End::default(), ..lossy.clone() }), of_flows(&lossy));
    assert!(unseen.confidence <= seen.confidence && unseen.confidence != Confidence::High, "{unseen:?}");
}

#[test]
fn uncounted_drops_make_the_place_of_a_loss_less_sure() {
    let lost = Udp { wire: 0.4, ..Udp::default() };
    let counted = in_excess(lost);
    let uncounted = FlowFacts { udp: Some(Udp { drops_uncounted: true, ..lost }), ..counted.clone() };
    let receiver = End { busy: 0.8, ..End::default() };
    let busy = FlowFacts { receiver, ..uncounted.clone() };
    let support = |facts: &FlowFacts, limit| {
        of_flows(facts).weighed.iter().find(|weighed| weighed.limit == limit).expect("it is weighed").support
    };
    assert!(support(&counted, Limit::Shaper) > Support::Hint);
    assert!(support(&uncounted, Limit::Shaper) <= Support::For);
    assert_eq!(support(&busy, Limit::Shaper), Support::Hint);
    let by_chance = datagrams_lost(0.6, Some(LossPattern::ByChance));
    let udp = by_chance.udp.map(|udp| Udp { drops_uncounted: true, ..udp });
    let receiver = End { busy: 0.8, ..End::default() };
    let busy = FlowFacts { udp, receiver, ..by_chance.clone() };
    assert!(support(&by_chance, Limit::PathLoss) > Support::Hint);
    assert!(support(&busy, Limit::PathLoss) <= Support::Hint);
}

#[test]
fn a_quota_that_is_used_up_stops_the_threads_however_idle_they_look() {
    let throttled = End { busy: 0.05, throttled: Some((0.98, 0.05)), ..End::default() };
    is(&FlowFacts { sender: throttled.clone(), ..facts() }, Limit::SenderCpu, Confidence::High);
    let dropped = FlowFacts { receiver: throttled, ..udp(Udp { socket_buffer: 0.6, ..Udp::default() }) };
    is(&dropped, Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn a_full_buffer_is_the_readers_fault_only_if_it_had_no_time() {
    let lost = Udp { socket_buffer: 0.3, ..Udp::default() };
    is(&udp(lost), Limit::ReceiverBuffer, Confidence::High);
    let late = End { busy: 0.1, waited: 0.4, ..End::default() };
    let slow = End { busy: 0.5, waited: 0.3, ..End::default() };
    is(&FlowFacts { receiver: slow, ..udp(lost) }, Limit::ReceiverCpu, Confidence::High);
    // Others had its core.
    is(&FlowFacts { receiver: late.clone(), ..udp(lost) }, Limit::ReceiverCpu, Confidence::Medium);
    // A buffer of two datagrams overflows however soon the reader comes.
    let tiny = Udp { buffer_time: 0.000_05, ..lost };
    let tiny = FlowFacts { udp: Some(tiny), receiver: late, ..udp(lost) };
    assert_eq!(of_flows(&tiny).limit, Limit::ReceiverBuffer);
}

/// A UDP sender does not wait for its receiver.
#[test]
fn a_late_reader_that_loses_nothing_limits_nothing() {
    let late = End { busy: 0.3, waited: 0.66, ..End::default() };
    let of =
        |lost, sender| of_flows(&FlowFacts { receiver: late.clone(), sender, one_machine: true, ..in_excess(lost) });
    let support = |verdict: &Verdict| {
        let weighed = verdict.weighed.iter().find(|weighed| weighed.limit == Limit::ReceiverCpu);
        weighed.expect("it is weighed").support
    };
    let policed = of(Udp { wire: 0.4, ..Udp::default() }, End::default());
    assert_eq!((policed.limit, support(&policed)), (Limit::Shaper, Support::Against));
    let slow = of(Udp::default(), End { busy: 0.7, waited: 0.25, ..End::default() });
    assert_eq!(support(&slow), Support::Against);
    let overflowed = of(Udp { socket_buffer: 0.3, ..Udp::default() }, End::default());
    assert_eq!((overflowed.limit, support(&overflowed)), (Limit::ReceiverCpu, Support::For));
}

#[test]
fn fragments_that_the_receiving_host_refuses_are_not_the_paths_loss() {
    let refused = udp(Udp { refused_fragments: 0.9, ..Udp::default() });
    let verdict = of_flows(&refused);
    assert_eq!((verdict.limit, verdict.place), (Limit::ReceiverBuffer, Some(LimitPlace::ReceiverHost)));
    // The same share lost on the way.
    assert_ne!(of_flows(&udp(Udp { wire: 0.9, ..Udp::default() })).limit, Limit::ReceiverBuffer);
}

#[test]
fn a_kernel_thread_kept_from_its_core_is_the_receivers_processor() {
    let thread = KernelThread { name: String::from("napi/eth0-7"), own: true, busy: 0.4, waited: 0.3 };
    let kernel = Some(thread.clone());
    let late = FlowFacts { receiver: End { kernel, ..End::default() }, ..facts() };
    let bbr = Tcp { congestion: String::from("bbr"), retransmitted: 0.1, ..tcp() };
    let lossy = FlowFacts { tcp: Some(bbr), ..late.clone() };
    is(&lossy, Limit::ReceiverCpu, Confidence::High);
    // What waits and is not lost costs no rate.
    assert_ne!(of_flows(&late).limit, Limit::ReceiverCpu);
    // A thread of the whole machine may be late with what is another's.
    let of_machine = KernelThread { name: String::from("ksoftirqd/1"), own: false, ..thread };
    let blamed = |dropped| {
        let receiver = End { kernel: Some(of_machine.clone()), dropped, ..End::default() };
        of_flows(&FlowFacts { receiver, ..lossy.clone() }).limit
    };
    assert_ne!(blamed(0.0), Limit::ReceiverCpu);
    assert_eq!(blamed(0.01), Limit::ReceiverCpu);
}

#[test]
fn a_window_that_is_full_limits_and_one_that_is_not_does_not() {
    let held = |window_limited, rtt: f64| FlowFacts {
        tcp: Some(Tcp { window_limited, rtt, min_rtt: rtt, flow_bps: 12e6, peer_window: 65_536.0, ..tcp() }),
        reached: 12e6,
        ..facts()
    };
    // 12 Mbit/s over 43 ms are 64,500 bytes in flight.
    is(&held(0.45, 0.043), Limit::Window, Confidence::High);
    is(&held(0.95, 0.001), Limit::Window, Confidence::High);
    // BBR sends that each round trip of itself, and seldom meets the window's end. Half a window is none.
    is(&held(0.05, 0.043), Limit::Window, Confidence::High);
    // No loss and no queue: a TCP that goes by loss has not met the path's limit either.
    is(&held(0.05, 0.021), Limit::CannotTell, Confidence::Low);
    // The load that was asked for came, whatever else is full.
    let met = Offer { sent: 1.0, arrived: 1.0 };
    is(&FlowFacts { offer: Some(met), ..held(0.05, 0.043) }, Limit::OfferedLoad, Confidence::High);
    let slow_reader = FlowFacts { receiver: End { busy: 0.95, ..End::default() }, ..held(0.95, 0.001) };
    is(&slow_reader, Limit::ReceiverCpu, Confidence::High);
}

/// A TCP sender whose round trip of 40 ms is not longer than the path's, and whose series say `course`.
fn over_40_ms(flow_bps: f64, course: TcpCourse) -> FlowFacts {
    let tcp = Tcp { rtt: 0.041, min_rtt: 0.04, flow_bps, retransmits: 0.0, congestion: "bbr".into(), ..tcp() };
    let course = Some(Course { growth: 1.0, tcp: Some(course), ..Course::default() });
    FlowFacts { tcp: Some(tcp), reached: flow_bps, course, ..facts() }
}

#[test]
fn a_send_buffer_is_the_limit_where_all_of_it_is_in_flight() {
    // 6 Mbit/s over 41 ms are 30,750 bytes in flight.
    let unsent = |unsent| over_40_ms(6e6, TcpCourse { unsent, ..TcpCourse::default() });
    is(&unsent(3_000.0), Limit::SendBuffer, Confidence::High);
    assert_eq!(of_flows(&unsent(3_000.0)).place, Some(LimitPlace::SenderApplication));
    // Of a path that is full as much waits to be sent as is in flight: nothing but the path is left to explain the rate.
    is(&unsent(60_000.0), Limit::Shaper, Confidence::Medium);
    // After losses the kernel's own count decides.
    let lossy = |buffer_limited| {
        let mut lossy = unsent(3_000.0);
        let tcp = lossy.tcp.as_mut().expect("TCP");
        (tcp.retransmitted, tcp.retransmits, tcp.buffer_limited) = (0.001, 10.0, buffer_limited);
        lossy
    };
    is(&lossy(0.3), Limit::SendBuffer, Confidence::Low);
    assert_ne!(of_flows(&lossy(0.16)).limit, Limit::SendBuffer);
    // A few packets that were overtaken are no loss, but they stay in the buffer too.
    let mut overtaken = unsent(3_000.0);
    overtaken.tcp.as_mut().expect("TCP").retransmits = 2.0;
    assert!(of_flows(&overtaken).confidence < Confidence::High);
    // Nor does it tell that TCP waited for them and sent nothing again.
    let tcp = overtaken.tcp.as_mut().expect("TCP");
    (tcp.retransmits, tcp.reorderings) = (0.0, 3);
    assert!(of_flows(&overtaken).confidence < Confidence::High);
    // A sender without time leaves its buffer empty too, and so does one that is to send no more.
    let busy = End { busy: 0.95, ..End::default() };
    is(&FlowFacts { sender: busy, ..unsent(0.0) }, Limit::SenderCpu, Confidence::High);
    let met = FlowFacts { offer: Some(Offer { sent: 1.0, arrived: 1.0 }), ..unsent(0.0) };
    is(&met, Limit::OfferedLoad, Confidence::High);
}

#[test]
fn a_rate_that_grows_with_its_window_is_the_start_of_a_connection() {
    let mut rising = over_40_ms(50e6, TcpCourse { unsent: 1e6, window_growth: 2.0, ..TcpCourse::default() });
    let course = rising.course.as_mut().expect("a course");
    (course.rises, course.growth) = (true, 2.0);
    is(&rising, Limit::StartUp, Confidence::High);
    // The receiver's buffer grows with it, and holds TCP back now and then.
    rising.tcp.as_mut().expect("TCP").window_limited = 0.26;
    rising.course.as_mut().and_then(|course| course.tcp.as_mut()).expect("a course of TCP").peer_window_rises = true;
    is(&rising, Limit::StartUp, Confidence::High);
    // After a loss it grows slowly: that it grows is no sign of the start.
    rising.tcp.as_mut().expect("TCP").retransmitted = 0.01;
    assert_ne!(of_flows(&rising).limit, Limit::StartUp);
}

#[test]
fn a_queue_that_stands_or_marks_are_counted_and_nothing_else_is_elimination() {
    let course = |queued, marked| TcpCourse { queued, queue: 0.03, marked, unsent: 1e6, ..TcpCourse::default() };
    is(&over_40_ms(50e6, course(0.95, 0.0)), Limit::Shaper, Confidence::High);
    is(&over_40_ms(50e6, course(0.0, 0.05)), Limit::Shaper, Confidence::High);
    // A rate that slow start has lowered says little of what the path lets through.
    let brief = FlowFacts { is_brief_volume: true, ..over_40_ms(50e6, course(0.95, 0.0)) };
    is(&brief, Limit::Shaper, Confidence::Medium);
    let left_over = over_40_ms(50e6, course(0.0, 0.0));
    is(&left_over, Limit::Shaper, Confidence::Medium);
    // Beside what nobody explains, what is left over is hardly known.
    let crowded = End { busiest_core: 0.99, ..left_over.receiver.clone() };
    let beside = FlowFacts { receiver: crowded, ..left_over.clone() };
    is(&beside, Limit::Shaper, Confidence::Low);
    assert!(of_flows(&beside).evidence.iter().any(|text| text.contains("busy for 99 %")), "{:#?}", of_flows(&beside));
    let others = InterfaceFacts { name: "eth0".into(), others: 0.4, ..InterfaceFacts::default() };
    let shared = FlowFacts { inbound: others, ..left_over };
    is(&shared, Limit::Shaper, Confidence::Low);
    assert!(of_flows(&shared).evidence.iter().any(|text| text.contains("Other traffic was 40 %")));
}

#[test]
fn a_queue_of_a_host_is_told_from_one_of_the_path() {
    let own = InterfaceFacts { name: "eth0".into(), waiting: 1.0, held_back_per_s: 900.0, ..InterfaceFacts::default() };
    let queue = Tcp { rtt: 0.02, ..tcp() };
    let shaped = FlowFacts { tcp: Some(queue), ..facts() };
    let place = |facts: &FlowFacts| {
        is(facts, Limit::Shaper, Confidence::High);
        of_flows(facts).place
    };
    assert_eq!(place(&shaped), Some(LimitPlace::ForwardPath));
    assert_eq!(place(&FlowFacts { outbound: own.clone(), ..shaped.clone() }), Some(LimitPlace::SenderQueue));
    assert_eq!(place(&FlowFacts { inbound: own.clone(), ..shaped.clone() }), Some(LimitPlace::ReturnPath));
    let slow_return = FlowFacts { lost_on_return: 0.3, returns_keep_a_rate: true, ..facts() };
    assert_eq!(place(&slow_return), Some(LimitPlace::ReturnPath));
    let one_way = |there, back| FlowFacts { one_way: Some(OneWay { there, back }), ..shaped.clone() };
    assert_eq!(place(&one_way(0.000_3, 0.019_7)), Some(LimitPlace::ReturnPath));
    is(&one_way(0.006, 0.014), Limit::Shaper, Confidence::Medium);
    assert_eq!(place(&one_way(0.019_7, 0.000_3)), Some(LimitPlace::ForwardPath));
    // A queue before a line of known speed that is full is the line's.
    is(&FlowFacts { outbound: own, ..with_line(0.99) }, Limit::Wire, Confidence::High);
}

#[test]
fn a_full_half_duplex_line_names_what_shares_it() {
    let (line_bps, payload_bps) = (BitRate::per_second(10_000_000), BitRate::per_second(9_147_188));
    let half = |share| PathLimit { line_bps, mtu: 1500, payload_bps, share, half_duplex: true };
    let of_work = |work| FlowFacts { work, line: Some(half(0.998)), ..facts() };
    for (work, part) in [(Work::Tcp, "acknowledgement for every two segments"), (Work::Udp, "both directions share it")]
    {
        let verdict = of_flows(&of_work(work));
        assert_eq!(verdict.limit, Limit::Wire, "{verdict:#?}");
        let wire = verdict.weighed.iter().find(|one| one.limit == Limit::Wire).expect("weighed");
        assert!(wire.text.contains("half duplex") && wire.text.contains(part), "{}", wire.text);
    }
}

#[test]
fn collisions_may_take_the_rest_of_a_half_duplex_line() {
    let (line_bps, payload_bps) = (BitRate::per_second(10_000_000), BitRate::per_second(9_147_188));
    // A standing queue of 75 ms, as a shaper has.
    let queue = Tcp { rtt: 0.075, min_rtt: 0.00023, flow_bps: 7.77e6, retransmits: 0.0, ..tcp() };
    let with = |share, half_duplex| {
        let line = PathLimit { line_bps, mtu: 1500, payload_bps, share, half_duplex };
        of_flows(&FlowFacts { work: Work::Tcp, tcp: Some(queue.clone()), line: Some(line), ..facts() })
    };
    let hub = with(0.85, true);
    assert_eq!((hub.limit, hub.confidence), (Limit::Wire, Confidence::Medium), "{hub:#?}");
    let wire = hub.weighed.iter().find(|one| one.limit == Limit::Wire).expect("weighed");
    assert!(wire.text.contains("collisions may have taken the rest"), "{}", wire.text);
    assert_eq!(with(0.85, false).limit, Limit::Shaper);
    assert_eq!(with(0.5, true).limit, Limit::Shaper, "collisions leave more than that");
}

#[test]
fn a_line_that_carries_more_than_it_can_has_another_speed() {
    let (line_bps, payload_bps) = (BitRate::per_second(10_000_000), BitRate::per_second(9_410_000));
    let declared = PathLimit { line_bps, mtu: 1500, payload_bps, share: 50.96, half_duplex: false };
    let said = of_flows(&FlowFacts { declared_too_slow: Some(declared), ..facts() });
    assert_ne!(said.limit, Limit::Wire, "{said:#?}");
    let wire = said.weighed.iter().find(|one| one.limit == Limit::Wire).expect("weighed");
    assert!(wire.text.contains("declared speed of an interface is wrong"), "{}", wire.text);
}

#[test]
fn what_waits_for_the_line_waits_for_no_shaper() {
    let queue = |waiting| InterfaceFacts { name: "eth0".into(), waiting, held_back_per_s: 9e3, ..Default::default() };
    let held = |share, waiting| FlowFacts { outbound: queue(waiting), ..with_line(share) };
    is(&held(0.85, 0.9), Limit::Wire, Confidence::Medium);
    is(&held(0.5, 0.9), Limit::Shaper, Confidence::High);
}

#[test]
fn who_mostly_waits_for_a_core_is_not_surely_the_limit() {
    let late = End { busy: 0.38, waited: 0.57, ..End::default() };
    is(&FlowFacts { receiver: late, ..facts() }, Limit::ReceiverCpu, Confidence::Medium);
}

#[test]
fn a_line_that_others_fill_too_is_full() {
    let beside = |others, share| {
        let inbound = InterfaceFacts { name: "eth0".into(), others, ..InterfaceFacts::default() };
        FlowFacts { inbound, ..with_line(share) }
    };
    is(&beside(0.4, 0.6), Limit::Wire, Confidence::High);
    is(&beside(0.03, 0.96), Limit::Wire, Confidence::High);
    assert_ne!(of_flows(&beside(0.4, 0.5)).limit, Limit::Wire);
}

#[test]
fn a_core_full_of_soft_interrupts_is_named_with_its_host() {
    let full = End { interrupts: 0.97, busy: 0.3, ..End::default() };
    let at = |facts: FlowFacts| {
        is(&facts, Limit::SoftirqCpu, Confidence::High);
        of_flows(&facts).place
    };
    let facts = FlowFacts { tcp: None, ..facts() };
    assert_eq!(at(FlowFacts { receiver: full.clone(), ..facts.clone() }), Some(LimitPlace::ReceiverHost));
    assert_eq!(at(FlowFacts { sender: full.clone(), ..facts.clone() }), Some(LimitPlace::SenderHost));
    assert_eq!(at(FlowFacts { sender: full, one_machine: true, ..facts.clone() }), None);
    // A core with other work besides is full of them too; one with time left is not.
    let shared = |interrupted_core| End { interrupts: 0.7, interrupted_core, busy: 0.3, ..End::default() };
    assert_eq!(at(FlowFacts { receiver: shared(0.99), ..facts.clone() }), Some(LimitPlace::ReceiverHost));
    is_open(&FlowFacts { receiver: shared(0.8), ..facts }, &[]);
}

#[test]
fn packets_that_fail_their_checksums_were_damaged_on_the_path() {
    let damaged = Udp { corrupted: 0.02, ..Udp::default() };
    let offer = Some(Offer { sent: 1.0, arrived: 0.98 });
    is(&FlowFacts { offer, ..udp(damaged) }, Limit::Corruption, Confidence::High);
    // Where most of the loss is another's, both may be it.
    assert_eq!(of_flows(&in_excess(Udp { wire: 0.6, ..damaged })).limit, Limit::Shaper);
    let lossy = Tcp { retransmitted: 0.01, ..tcp() };
    let receiver = End { busy: 0.2, corrupted: 0.009, ..End::default() };
    is(&FlowFacts { tcp: Some(lossy), receiver, ..facts() }, Limit::Corruption, Confidence::High);
}

#[test]
fn what_a_hosts_own_filter_drops_is_no_path() {
    let filtered = udp(Udp { receiver_filter: 0.4, ..Udp::default() });
    is(&filtered, Limit::Shaper, Confidence::High);
    assert_eq!(of_flows(&filtered).place, Some(LimitPlace::ReceiverHost));
    let inbound = InterfaceFacts { name: "eth0".into(), filtered: 0.03, ..InterfaceFacts::default() };
    let lossy = FlowFacts { tcp: Some(Tcp { retransmitted: 0.04, ..tcp() }), inbound, ..facts() };
    is(&lossy, Limit::Shaper, Confidence::High);
    assert_eq!(of_flows(&lossy).place, Some(LimitPlace::ReceiverHost));
}

#[test]
fn two_limits_that_are_both_reached_are_both_named() {
    let both = FlowFacts { sender: End { busy: 0.95, ..End::default() }, ..with_line(0.99) };
    let said = of_flows(&both);
    assert_eq!((said.limit, said.also), (Limit::Wire, vec![Limit::SenderCpu]));
    assert_eq!(of_flows(&with_line(0.99)).also, []);
}

/// At 1 % loss and 20 ms CUBIC has 12.2 segments in flight (Reno's, RFC 9438 section 4.3): 7.1 Mbit/s.
#[test]
fn loss_rules_where_the_formula_gives_what_was_reached() {
    let lossy = |retransmitted, flow_bps, rtt, min_rtt| FlowFacts {
        tcp: Some(Tcp { retransmitted, flow_bps, rtt, min_rtt, ..tcp() }),
        reached: flow_bps,
        ..facts()
    };
    is(&lossy(0.01, 7.1e6, 0.02, 0.02), Limit::PathLoss, Confidence::Medium);
    // The same loss over a short path would allow far more.
    assert_ne!(of_flows(&lossy(0.01, 7.1e6, 0.000_2, 0.000_2)).limit, Limit::PathLoss);
    // Loss out of a queue that fills is the queue's.
    is(&lossy(0.000_1, 95e6, 0.022, 0.000_1), Limit::Shaper, Confidence::High);
    let bbr = Tcp { congestion: String::from("bbr"), retransmitted: 0.01, flow_bps: 95e6, ..tcp() };
    // A policer lets BBR lose more than that.
    is(&FlowFacts { tcp: Some(bbr.clone()), ..facts() }, Limit::PathLoss, Confidence::Medium);
    // What was measured with BBR is not advised to be measured with it.
    let advised = |facts: &FlowFacts| of_flows(facts).next.concat().contains("--congestion bbr");
    assert!(!advised(&FlowFacts { tcp: Some(bbr), ..facts() }) && advised(&lossy(0.01, 7.1e6, 0.02, 0.02)));
    // Errors come one by one, what a queue drops comes together.
    let lost = |losses| {
        let tcp = Some(TcpCourse { unsent: 1e6, ..TcpCourse::default() });
        let course = Some(Course { growth: 1.0, losses: Some(losses), tcp, ..Course::default() });
        FlowFacts { course, ..lossy(0.01, 7.1e6, 0.02, 0.02) }
    };
    is(&lost(LossPattern::ByChance), Limit::PathLoss, Confidence::Medium);
    is(&lost(LossPattern::Clustered), Limit::CannotTell, Confidence::Low);
}

#[test]
fn few_losses_and_segments_sent_again_in_vain_name_no_loss() {
    let lost = |retransmits, in_vain| {
        let course = TcpCourse { unsent: 1e6, has_lost: true, ..TcpCourse::default() };
        let course = Some(Course { growth: 1.0, tcp: Some(course), ..Course::default() });
        let tcp = Tcp { retransmitted: 0.01, retransmits, in_vain, flow_bps: 7.1e6, rtt: 0.02, min_rtt: 0.02, ..tcp() };
        FlowFacts { tcp: Some(tcp), course, reached: 7.1e6, ..facts() }
    };
    is(&lost(30.0, 0.0), Limit::PathLoss, Confidence::Medium);
    is(&lost(3.0, 0.0), Limit::CannotTell, Confidence::Low);
    let overtaken = of_flows(&lost(30.0, 0.9));
    assert_eq!(overtaken.limit, Limit::CannotTell);
    assert!(overtaken.evidence.iter().any(|text| text.contains("overtook one another")), "{overtaken:#?}");
}

/// At 8, 10 and 25 % as at 1.5 %: the pattern decides, whatever the share.
#[test]
fn loss_of_datagrams_is_the_paths_where_it_comes_by_chance_and_a_shapers_where_a_rate_is_exceeded() {
    for share in [0.015, 0.08, 0.1, 0.25, 0.4] {
        is(&datagrams_lost(share, Some(LossPattern::ByChance)), Limit::PathLoss, Confidence::Medium);
        let excess = datagrams_lost(share, Some(LossPattern::Excess));
        // A load that is nearly met shows no limit for sure.
        if share < 0.02 {
            is_open(&excess, &[Limit::Shaper]);
        } else {
            is(&excess, Limit::Shaper, Confidence::Medium);
        }
        for unclear in [None, Some(LossPattern::Clustered)] {
            is_open(&datagrams_lost(share, unclear), &[Limit::PathLoss, Limit::Shaper]);
        }
    }
    is(&datagrams_lost(0.6, Some(LossPattern::ByChance)), Limit::PathLoss, Confidence::Medium);
    is(&datagrams_lost(0.6, Some(LossPattern::Excess)), Limit::Shaper, Confidence::High);
    is(&datagrams_lost(0.0, None), Limit::OfferedLoad, Confidence::High);
}

/// `lab` with `links.a.path.loss = "20%"`: an acknowledgement confirms all data before it.
#[test]
fn acknowledgements_lost_by_chance_limit_nothing() {
    let lost = FlowFacts { lost_on_return: 0.2, ..facts() };
    assert_ne!(of_flows(&lost).limit, Limit::Shaper);
    // The round trip includes the wait for the next acknowledgement, on whichever way.
    let one_way = Some(OneWay { there: 0.001, back: 0.014 });
    let queued = FlowFacts { one_way, tcp: Some(Tcp { rtt: 0.015, min_rtt: 0.002, ..tcp() }), ..lost };
    assert_ne!(of_flows(&queued).place, Some(LimitPlace::ReturnPath));
    assert_eq!(of_flows(&FlowFacts { lost_on_return: 0.0, ..queued }).place, Some(LimitPlace::ReturnPath));
}

/// `lab --device path,rate=5Mbit/s,queue=10000,delay=1ms`: a queue of six packets is too short for the round trip to show it.
#[test]
fn a_tcp_whose_arrivals_keep_to_a_rate_fills_the_path() {
    let paced = |pace, retransmits| {
        let tcp = Tcp { rtt: 0.014, min_rtt: 0.011, retransmitted: 0.02, retransmits, flow_bps: 4.7e6, ..tcp() };
        let course = Course { growth: 1.0, pace, tcp: Some(TcpCourse::default()), ..Course::default() };
        FlowFacts { tcp: Some(tcp), reached: 4.7e6, course: Some(course), ..facts() }
    };
    let full = paced(Some(Pace::steady()), 34.0);
    is(&full, Limit::Shaper, Confidence::High);
    let verdict = of_flows(&full);
    assert_eq!(verdict.place, Some(LimitPlace::ForwardPath));
    assert!(verdict.evidence[0].contains("standard deviation 4.0 %"), "{verdict:#?}");
    is(&paced(None, 34.0), Limit::PathLoss, Confidence::Medium);
    // Two losses are no full queue, and others may keep an interface at a rate.
    assert_ne!(of_flows(&paced(Some(Pace::steady()), 2.0)).limit, Limit::Shaper);
    let inbound = InterfaceFacts { name: "eth0".into(), others: 0.4, ..InterfaceFacts::default() };
    assert_ne!(of_flows(&FlowFacts { inbound, ..full }).confidence, Confidence::High);
}

/// `lab --device path,mtu=1280,mtu-silent=true`: the flows were opened, and then nothing arrived.
#[test]
fn packets_that_all_vanish_are_too_large_for_the_path_or_nothing_is_known() {
    let vanished = |packet_bytes| Some(Vanished { packet_bytes, sent: 8_500 });
    let datagrams = FlowFacts { vanished: vanished(1_500), ..datagrams_lost(1.0, None) };
    let segments = FlowFacts {
        tcp: Some(Tcp { retransmitted: 0.8, stalled: 1.0, flow_bps: 0.0, retransmits: 4.0, ..tcp() }),
        reached: 0.0,
        vanished: vanished(1_500),
        ..facts()
    };
    for facts in [&datagrams, &segments] {
        is(facts, Limit::MtuBlackHole, Confidence::Medium);
        let verdict = of_flows(facts);
        assert_eq!(verdict.place, Some(LimitPlace::ForwardPath));
        assert!(verdict.evidence[0].contains("None of the packets of 1500 bytes arrived"), "{verdict:#?}");
    }
    // A shaper lets something through, and every path carries packets of 1,280 bytes.
    is_open(&FlowFacts { vanished: vanished(1_028), ..datagrams_lost(1.0, None) }, &[Limit::PathLoss]);
}

/// What a policer makes of TCP, as it was measured: no one load tells it from a bad path, so nothing is said surely.
#[test]
fn a_policer_and_a_bad_path_look_the_same_to_tcp() {
    let lossy = |congestion: &str, retransmitted, stalled, flow_bps, rtt, min_rtt| {
        let tcp = Tcp { congestion: congestion.into(), retransmitted, stalled, flow_bps, rtt, min_rtt, ..tcp() };
        of_flows(&FlowFacts { tcp: Some(tcp), reached: flow_bps, ..facts() })
    };
    for (name, said) in [
        ("100 Mbit/s, 20 ms", lossy("cubic", 0.021, 0.0, 5.2e6, 0.0204, 0.02)),
        ("100 Mbit/s", lossy("cubic", 0.17, 0.7, 15e6, 0.000_5, 0.000_01)),
        ("1 Gbit/s", lossy("reno", 0.053, 0.0, 78e6, 0.000_7, 0.000_01)),
        ("10 Mbit/s, bbr", lossy("bbr", 0.54, 1.0, 0.5e6, 0.000_6, 0.000_01)),
        ("1 Gbit/s, bbr", lossy("bbr", 0.27, 0.1, 850e6, 0.000_6, 0.000_01)),
        ("a bad path that stalls", lossy("bbr", 0.06, 0.7, 593e6, 0.000_9, 0.000_01)),
        // An acknowledgement waits up to 40 ms for a second segment: no queue makes the round trip grow then.
        ("a bad path, few segments", lossy("cubic", 0.038, 0.0, 8e6, 0.005_5, 0.000_01)),
        ("a bad path, seen late", lossy("cubic", 0.049, 0.0, 12e6, 0.011_6, 0.000_01)),
    ] {
        let both = said.also.contains(&Limit::PathLoss) && said.also.contains(&Limit::Shaper);
        assert!(matches!(said.limit, Limit::PathLoss | Limit::Shaper) || both, "{name}: {said:#?}");
        assert!(said.confidence < Confidence::High, "{name}: {said:#?}");
    }
}

#[test]
fn who_was_busy_for_most_of_the_time_is_not_surely_idle() {
    let busy = End { busy: 0.7, ..End::default() };
    let bbr = Tcp { congestion: String::from("bbr"), flow_bps: 17e9, ..tcp() };
    let paced = FlowFacts { tcp: Some(bbr.clone()), sender: busy, ..facts() };
    is(&paced, Limit::Shaper, Confidence::Medium);
    let busier = End { busy: 0.8, ..End::default() };
    is_open(&FlowFacts { sender: busier, ..paced }, &[Limit::SenderCpu, Limit::Shaper]);
}

#[test]
fn what_floods_and_mostly_vanishes_is_surely_a_shapers_only_where_arrivals_keep_to_a_rate() {
    let lost = |wire| Udp { wire, ..Udp::default() };
    is(&in_excess(lost(0.9)), Limit::Shaper, Confidence::High);
    is(&in_excess(lost(0.2)), Limit::Shaper, Confidence::Medium);
    is(&udp(lost(0.9)), Limit::Shaper, Confidence::Medium);
}

#[test]
fn otherwise_it_cannot_tell_and_says_what_was_missing() {
    // A TCP whose own account is missing says nothing of the path.
    let said = of_flows(&FlowFacts { tcp: None, ..facts() });
    assert_eq!((said.limit, said.confidence), (Limit::CannotTell, Confidence::Low), "{said:#?}");
    assert!(said.evidence.iter().any(|text| text.contains("speed of no link is known")), "{:?}", said.evidence);
    assert!(said.weighed.iter().any(|one| one.limit == Limit::SenderCpu && one.support == Support::Against));
}

#[test]
fn time_taken_by_the_hypervisor_makes_verdicts_less_sure_that_it_could_have_brought_about() {
    let stolen = |facts: FlowFacts| FlowFacts { steal: 0.2, ..facts };
    // Hosts with two thirds of their time to spare are held back by no fifth of it that was taken ...
    let queue = Tcp { rtt: 0.01, ..tcp() };
    is(&stolen(FlowFacts { tcp: Some(queue), ..facts() }), Limit::Shaper, Confidence::High);
    let tcp = Tcp { window_limited: 0.95, ..tcp() };
    is(&stolen(FlowFacts { tcp: Some(tcp.clone()), ..facts() }), Limit::Window, Confidence::High);
    // ... hosts that were at work for most of it may be.
    let end = End { busy: 0.56, ..End::default() };
    let held = of_flows(&stolen(FlowFacts { tcp: Some(tcp), sender: end, ..facts() }));
    assert_eq!((held.limit, held.confidence), (Limit::Window, Confidence::Medium), "{held:#?}");
    assert!(held.evidence.iter().any(|text| text.contains("hypervisor took 20 %")), "{:?}", held.evidence);
    // A buffer of some milliseconds overflows in one pause of its reader, whatever time is left over.
    let overflown = udp(Udp { socket_buffer: 0.3, ..Udp::default() });
    is(&stolen(overflown), Limit::ReceiverBuffer, Confidence::Medium);
    // A quota that is used up stops its threads whatever else is taken.
    let throttled = End { busy: 0.05, throttled: Some((0.98, 0.05)), ..End::default() };
    is(&stolen(FlowFacts { sender: throttled, ..facts() }), Limit::SenderCpu, Confidence::High);
    // A line that is full is full.
    is(&stolen(with_line(0.998)), Limit::Wire, Confidence::High);
    // Of one request after the other the answer's way is most, however the hosts' share of it is counted ...
    is(&stolen(one_at_a_time(0.4)), Limit::Latency, Confidence::High);
    // ... unless they may have been at work all the time.
    is_open(&stolen(one_at_a_time(0.6)), &[Limit::Latency]);
}

#[test]
fn facts_come_from_the_trials() {
    use linerate_model::{CoreUse, CpuQuota, KernelThreadUse, ThreadUse};
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
        let (user, softirq) = (Nanos::from_millis(100), Nanos::from_millis(700));
        b.cores = vec![CoreUse { user, system: user, softirq, ..CoreUse::default() }];
        b.quota = Some(CpuQuota { cores: 0.5, periods: 10, throttled: 4 });
        let kernel = |name: &str, cpu| KernelThreadUse {
            name: name.into(),
            cpu: Nanos::from_millis(cpu),
            waited: Nanos::new(0),
        };
        b.kernel_threads = vec![kernel("napi/eth7-1", 900), kernel("napi/eth0-2", 200)];
    }
    let result = crate::measure::tests::measure(&[], std::slice::from_ref(&run));
    let found = FlowFacts::of(&result, &[&run], &[]);
    assert!((found.receiver.busy - 0.4).abs() < 1e-9 && (found.receiver.waited - 0.2).abs() < 1e-9, "{found:?}");
    assert_eq!(found.receiver.throttled, Some((0.4, 0.5)));
    assert!((found.receiver.interrupted - 0.75).abs() < 1e-9, "600 of 800 ms: {found:?}");
    assert!((found.receiver.interruptible - 0.875).abs() < 1e-9, "700 of 800 ms: {found:?}");
    let own = found.receiver.kernel.as_ref().map(|thread| (thread.name.as_str(), thread.own, thread.busy));
    assert_eq!(own, Some(("napi/eth0-2", true, 0.2)), "another interface's is left out");
    assert_eq!(found.work, Work::Udp);
}

/// Measured in the lab over a shaper of 500 Mbit/s: soft interrupts of the whole path run on top of whatever thread is on a core.
#[test]
fn threads_under_soft_interrupts_do_not_hide_a_shaper() {
    let crowded = End { busy: 0.67, waited: 0.31, busiest_core: 0.6, ..End::default() };
    let queue = Tcp { rtt: 0.004_5, min_rtt: 0.000_013, flow_bps: 467e6, congestion: String::from("bbr"), ..tcp() };
    let shaped = FlowFacts { receiver: crowded.clone(), tcp: Some(queue.clone()), ..facts() };
    is(&shaped, Limit::Shaper, Confidence::Medium);
    let said = of_flows(&shaped).evidence[0].clone();
    assert!(said.contains("ahead of the path (occupied for 98 %)"), "{said}");
    // A receiver that does not take what arrives fills its window; one without a core to spare may really be late.
    let full = Tcp { window_limited: 0.3, ..queue.clone() };
    is(&FlowFacts { tcp: Some(full), ..shaped.clone() }, Limit::ReceiverCpu, Confidence::High);
    let busy = End { busiest_core: 0.97, ..crowded.clone() };
    is(&FlowFacts { receiver: busy, ..shaped.clone() }, Limit::ReceiverCpu, Confidence::High);
    let quota = End { throttled: Some((0.9, 0.3)), ..crowded.clone() };
    is(&FlowFacts { receiver: quota, ..shaped.clone() }, Limit::ReceiverCpu, Confidence::High);
    is(&FlowFacts { tcp: Some(tcp()), ..shaped.clone() }, Limit::ReceiverCpu, Confidence::High);
    let interrupted = End { interruptible: 0.87, ..crowded.clone() };
    is(
        &FlowFacts { tcp: Some(tcp()), receiver: interrupted, ..shaped.clone() },
        Limit::ReceiverCpu,
        Confidence::Medium,
    );
    // A receiver that waits for a core that others keep busy may itself be what the queue waits for.
    let waits = End { busy: 0.18, waited: 0.66, busiest_core: 0.98, ..End::default() };
    let behind = Tcp { rtt: 0.006_9, min_rtt: 0.004, congestion: String::from("reno"), ..queue };
    is(&FlowFacts { receiver: waits, tcp: Some(behind), ..shaped }, Limit::CannotTell, Confidence::Low);

    let datagrams = |interrupted, interruptible| FlowFacts {
        sender: End { interrupted, interruptible, ..crowded.clone() },
        ..udp(Udp::default())
    };
    is(&datagrams(0.92, 1.0), Limit::Shaper, Confidence::Medium);
    is(&datagrams(0.3, 0.6), Limit::SenderCpu, Confidence::High);
    // With other programs about it cannot be told what the soft interrupts ran on top of.
    is(&datagrams(0.0, 0.95), Limit::SenderCpu, Confidence::Medium);
}

/// A slot that is slower than its link, and so full.
#[test]
fn a_full_bus_is_named_and_one_with_room_is_not() {
    let used = |share| {
        Some(BusUse {
            host: "a".into(),
            interface: "eth0".into(),
            bus: "pcie-1-x1".parse().expect("a bus"),
            card: Some("pcie-3-x8".parse().expect("a bus")),
            frame_bytes: 1_518,
            share,
        })
    };
    let full = FlowFacts { bus: used(0.93), ..facts() };
    is(&full, Limit::HostBus, Confidence::High);
    let said = of_flows(&full);
    assert!(said.evidence[0].contains("eth0 of a is on pcie-1-x1"), "{said:#?}");
    assert!(said.evidence[0].contains("can use pcie-3-x8") && said.evidence[0].contains("93 %"), "{said:#?}");
    assert_ne!(of_flows(&FlowFacts { bus: used(0.5), ..facts() }).limit, Limit::HostBus);
}
