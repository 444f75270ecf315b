//! Transactions and calls to a server.

use super::super::facts::{Calls, Course, Offer, ServerLoad, TcpCourse, Waits};
use super::*;
use linerate_model::LimitPlace;

#[test]
fn requests_that_were_lost_take_the_time_of_their_repeats() {
    let waits = |repeated, in_tail| FlowFacts { waits: Some(Waits { repeated, in_tail }), ..one_at_a_time(0.1) };
    is(&waits(0.01, 0.95), Limit::PathLoss, Confidence::High);
    is(&waits(0.01, 0.3), Limit::PathLoss, Confidence::Medium);
    // The host's own queue loses packets too.
    let own_queue = InterfaceFacts { dropped: 0.1, ..InterfaceFacts::default() };
    assert_ne!(of_flows(&FlowFacts { outbound: own_queue, ..waits(0.01, 0.95) }).limit, Limit::PathLoss);
    is(&waits(0.01, 0.05), Limit::Latency, Confidence::High);
    // Slow ones that nobody sent again are slow for another reason.
    is(&waits(0.0, 0.95), Limit::Latency, Confidence::High);
    let throttled = End { busy: 0.05, throttled: Some((0.98, 0.05)), ..End::default() };
    is(&FlowFacts { receiver: throttled, ..waits(0.0, 0.5) }, Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn requests_that_stand_in_a_queue_wait_for_the_path() {
    let queue = Tcp { rtt: 0.05, min_rtt: 0.001, flow_bps: 18e6, ..tcp() };
    let course =
        Course { growth: 1.0, tcp: Some(TcpCourse { queued: 0.9, ..TcpCourse::default() }), ..Course::default() };
    let queued = FlowFacts { tcp: Some(queue), course: Some(course), ..calls(Some(0.000_05)) };
    is(&queued, Limit::Shaper, Confidence::High);
    is(&FlowFacts { course: None, ..queued }, Limit::Shaper, Confidence::Medium);
}

/// A congestion control that keeps queues on the path short leaves what the path does not take in the send buffer.
#[test]
fn requests_that_wait_to_be_sent_wait_for_the_path() {
    let path = Tcp { rtt: 0.021, min_rtt: 0.020, congestion_window: 9_000.0, ..tcp() };
    let unsent = |unsent, window_limited| {
        let tcp = Tcp { window_limited, ..path.clone() };
        let course = TcpCourse { unsent, ..TcpCourse::default() };
        let course = Course { growth: 1.0, tcp: Some(course), ..Course::default() };
        FlowFacts { tcp: Some(tcp), course: Some(course), ..calls(Some(0.000_05)) }
    };
    is(&unsent(200_000.0, 0.0), Limit::Shaper, Confidence::Medium);
    assert_ne!(of_flows(&unsent(2_000.0, 0.0)).limit, Limit::Shaper);
    assert_ne!(of_flows(&unsent(200_000.0, 0.9)).limit, Limit::Shaper);
}

#[test]
fn requests_that_fill_a_line_wait_for_the_line() {
    let several = |outstanding| ClosedLoop { outstanding, latency: 1.0 };
    let line = |line_share, return_share| InterfaceFacts {
        name: String::from("eth0"),
        line_share: Some(line_share),
        return_share: Some(return_share),
        ..InterfaceFacts::default()
    };
    let requests =
        |outbound, inbound| FlowFacts { closed_loop: Some(several(8.0)), outbound, inbound, ..one_at_a_time(0.01) };
    let place = |facts: &FlowFacts| {
        is(facts, Limit::Wire, Confidence::High);
        of_flows(facts).place
    };
    let empty = || line(0.01, 0.01);
    assert_eq!(place(&requests(line(0.99, 0.2), line(0.99, 0.2))), Some(LimitPlace::SenderQueue));
    assert_eq!(place(&requests(empty(), line(0.99, 0.2))), Some(LimitPlace::ForwardPath));
    assert_eq!(place(&requests(line(0.2, 0.99), line(0.2, 0.99))), Some(LimitPlace::ReturnPath));
    is(&requests(line(0.96, 0.1), empty()), Limit::Wire, Confidence::Medium);
    // A shaper of the host itself, on a link whose speed nobody declared.
    let shaped = InterfaceFacts { waiting: 1.0, held_back_per_s: 50.0, ..InterfaceFacts::default() };
    assert_ne!(of_flows(&requests(shaped, InterfaceFacts::default())).limit, Limit::Latency);
}

#[test]
fn several_requests_without_a_known_round_trip_are_not_surely_the_paths() {
    let closed = |outstanding| {
        let closed_loop = Some(ClosedLoop { outstanding, latency: 1.0 });
        FlowFacts { closed_loop, ..one_at_a_time(0.01) }
    };
    is(&closed(1.0), Limit::Latency, Confidence::High);
    is(&closed(8.0), Limit::Latency, Confidence::Medium);
    let tcp = |min_rtt| Some(Tcp { min_rtt, rtt: min_rtt, ..tcp() });
    is(&FlowFacts { tcp: tcp(0.9), ..closed(8.0) }, Limit::Latency, Confidence::High);
    assert_ne!(of_flows(&FlowFacts { tcp: tcp(0.01), ..closed(8.0) }).confidence, Confidence::High);
    is(&FlowFacts { message_bytes: 65_000, ..closed(1.0) }, Limit::Latency, Confidence::Medium);
    is(&FlowFacts { response_bytes: 65_000, ..closed(1.0) }, Limit::Latency, Confidence::Medium);
}

#[test]
fn requests_one_after_the_other_wait_for_each_other() {
    let closed = one_at_a_time(0.2);
    is(&closed, Limit::Latency, Confidence::High);
    // Two ends that take turns on one core wait for each other.
    let in_turns = End { busy: 0.45, waited: 0.5, ..End::default() };
    let turns = FlowFacts { sender: in_turns.clone(), receiver: in_turns, ..closed.clone() };
    is(&FlowFacts { one_machine: true, ..turns.clone() }, Limit::Latency, Confidence::High);
    // On two machines others have the cores, and an answer comes later for it.
    is(&turns, Limit::Latency, Confidence::Medium);
    let busy = End { busy: 0.95, ..End::default() };
    is(&FlowFacts { receiver: busy, ..closed }, Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn threads_that_poll_are_on_a_core_whatever_limits_them() {
    let polls = End { busy: 0.99, polls: true, ..End::default() };
    let polled = |min_rtt| {
        let closed = one_at_a_time(0.2);
        let latency = closed.closed_loop.expect("a closed loop").latency;
        let path = Tcp { rtt: min_rtt * latency, min_rtt: min_rtt * latency, ..tcp() };
        FlowFacts { sender: polls.clone(), receiver: polls.clone(), tcp: Some(path), ..closed }
    };
    is(&polled(0.95), Limit::Latency, Confidence::High);
    is_open(&polled(0.2), &[Limit::Latency]);
}

#[test]
fn one_request_is_told_in_the_singular() {
    let told = |facts: &FlowFacts| of_flows(facts).evidence.concat();
    let one = told(&one_at_a_time(0.2));
    assert!(one.contains("1 request in flight at a time took ") && !one.contains(" each."), "{one}");
    let four = ClosedLoop { outstanding: 4.0, latency: 0.002 };
    let four = told(&FlowFacts { closed_loop: Some(four), ..one_at_a_time(0.2) });
    assert!(four.contains("4.0 requests in flight at a time took 2 ms each."), "{four}");
}

/// Four calls in flight at a time on an idle path of 50 us, of which the server has each for `service` of 2 ms.
fn calls(service: Option<f64>) -> FlowFacts {
    let calls = Calls {
        nfs: true,
        response: 0.002,
        service,
        under_way: 4.0,
        per_s: 2_000.0,
        round_trip: Some(0.000_05),
        server: None,
        classes: Vec::new(),
    };
    let closed_loop = Some(ClosedLoop { outstanding: 4.0, latency: 0.002 });
    FlowFacts { work: Work::Transact, reached: 2_000.0, tcp: None, closed_loop, calls: Some(calls), ..facts() }
}

#[test]
fn calls_that_spend_their_time_in_the_server_are_the_servers() {
    is(&calls(Some(0.0019)), Limit::Server, Confidence::High);
    is(&calls(Some(0.0012)), Limit::Server, Confidence::Medium);
    is(&calls(Some(0.0003)), Limit::Latency, Confidence::Medium);
    // Over UDP nobody knows what the empty path takes.
    let mut over_udp = calls(Some(0.0003));
    over_udp.calls.as_mut().expect("calls").round_trip = None;
    is(&over_udp, Limit::Latency, Confidence::Medium);
    // An open loop beyond what the server does: calls wait at their caller for one of four places, all of them in the server.
    let mut beyond = calls(Some(0.0019));
    beyond.closed_loop = None;
    beyond.offer = Some(Offer { sent: 0.4, arrived: 0.4 });
    beyond.calls.as_mut().expect("calls").response = 0.5;
    is(&beyond, Limit::Server, Confidence::High);
    // All that was asked for was done: no limit was met, however slow each call.
    is(&FlowFacts { offer: Some(Offer { sent: 1.0, arrived: 1.0 }), ..beyond }, Limit::OfferedLoad, Confidence::High);
}

#[test]
fn a_server_without_a_processor_is_slow_whatever_its_own_account_says() {
    let starved = End { busy: 0.05, throttled: Some((0.97, 0.05)), ..End::default() };
    let facts = FlowFacts { receiver: starved, ..calls(Some(0.0001)) };
    is(&facts, Limit::Server, Confidence::High);
    let said = of_flows(&facts);
    assert!(said.evidence[0].contains("quota (0.05 of a core)"), "{said:#?}");
    is(
        &FlowFacts { receiver: End { busy: 0.97, ..End::default() }, ..calls(Some(0.0016)) },
        Limit::Server,
        Confidence::High,
    );
    // A caller that has no time itself is the limit, though its calls take long.
    let slow = FlowFacts { sender: End { throttled: Some((0.97, 0.05)), ..End::default() }, ..calls(Some(0.0001)) };
    is(&slow, Limit::SenderCpu, Confidence::High);
    let crowded = End { busy: 0.3, waited: 0.65, ..End::default() };
    is(&FlowFacts { sender: crowded, ..calls(Some(0.0003)) }, Limit::SenderCpu, Confidence::Medium);
    // And where a server is kept from its core by others, it is not sure that it is slow itself.
    let kept = End { busy: 0.3, waited: 0.4, ..End::default() };
    is(&FlowFacts { receiver: kept, ..calls(Some(0.0019)) }, Limit::Server, Confidence::Medium);
}

#[test]
fn a_line_that_calls_fill_is_the_wire_however_long_they_take() {
    is(&FlowFacts { line: with_line(0.99).line, ..calls(Some(0.0001)) }, Limit::Wire, Confidence::High);
    is(&FlowFacts { line: with_line(0.5).line, ..calls(Some(0.0019)) }, Limit::Server, Confidence::High);
}

#[test]
fn calls_behind_a_queue_of_the_path_wait_for_the_path() {
    let queued = Tcp { rtt: 0.1, min_rtt: 0.0001, ..tcp() };
    is(&FlowFacts { tcp: Some(queued), ..calls(Some(0.0001)) }, Limit::Shaper, Confidence::Medium);
}

#[test]
fn calls_that_wait_on_the_path_for_part_of_their_time_are_not_surely_of_the_latency() {
    let path = |rtt| Tcp { rtt, min_rtt: 0.020, ..tcp() };
    let slow = |rtt, response| {
        let of = calls(Some(0.000_05));
        let told = Calls { response, round_trip: Some(rtt), ..of.calls.clone().expect("calls") };
        let closed_loop = Some(ClosedLoop { outstanding: 32.0, latency: response });
        FlowFacts { tcp: Some(path(rtt)), calls: Some(told), closed_loop, ..of }
    };
    is(&slow(0.0225, 0.024), Limit::Latency, Confidence::High);
    assert!(of_flows(&slow(0.0285, 0.032)).confidence < Confidence::High, "8.5 of 32 ms were spent waiting");
    // Of 32 ms the path and the server explain 22.55: what took the rest was not seen.
    is(&slow(0.0225, 0.032), Limit::Latency, Confidence::Medium);
}

#[test]
fn the_tester_limit_of_nfs_names_the_tester_and_not_the_device() {
    let of_nfs =
        |share| FlowFacts { tester_alone: TesterAlone::OwnServer, ..at_tester_limit(calls(Some(0.0003)), share) };
    assert_eq!(of_flows(&of_nfs(0.99)).limit, Limit::Tester);
    is(&of_nfs(0.2), Limit::Latency, Confidence::Medium);
    let weighed = of_flows(&of_nfs(0.2)).weighed;
    assert!(weighed.iter().all(|weighed| weighed.limit != Limit::Device), "{weighed:#?}");
}

#[test]
fn a_server_without_an_account_is_named_with_medium_confidence_at_most() {
    let idle = FlowFacts { line: with_line(0.1).line, ..calls(None) };
    is(&idle, Limit::Server, Confidence::Medium);
    is_open(&FlowFacts { line: None, ..idle.clone() }, &[Limit::Server]);
    is_open(&FlowFacts { line: with_line(0.7).line, ..idle.clone() }, &[Limit::Server]);
    let mut seen = idle.clone();
    let load = ServerLoad { disk: None, core: Some(0.97), shared: false };
    seen.calls.as_mut().expect("calls").server = Some(load.clone());
    is(&seen, Limit::Server, Confidence::High);
    seen.calls.as_mut().expect("calls").server = Some(ServerLoad { core: Some(0.3), ..load });
    is(&seen, Limit::Server, Confidence::Medium);
    let mut near = idle.clone();
    near.calls.as_mut().expect("calls").round_trip = Some(0.001);
    is(&near, Limit::Latency, Confidence::High);
    let mut udp = idle;
    udp.calls.as_mut().expect("calls").round_trip = None;
    is_open(&udp, &[Limit::Latency]);
}

#[test]
fn the_class_that_is_slow_is_named() {
    let mut slow_writes = calls(Some(0.0019));
    slow_writes.calls.as_mut().expect("calls").classes =
        vec![(linerate_model::NfsClass::Read, 0.000_2), (linerate_model::NfsClass::Write, 0.020_5)];
    let said = of_flows(&slow_writes);
    assert!(said.evidence[0].contains("writes took 20.5 ms, reads 200 us"), "{said:#?}");
}
