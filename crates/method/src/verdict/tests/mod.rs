//! Each rule against facts that are made up for it, and what the whole makes of them.

mod confidence;
mod copies;
mod requests;
mod streams;

use super::facts::{ClosedLoop, End, FlowFacts, InterfaceFacts, Tcp, TesterAlone, Udp, WindowFacts, Work};
use super::of_flows;
use linerate_model::{Bypass, Confidence, Limit, PathLimit, RecordId, TesterLimit};
use linerate_units::BitRate;
use linerate_units::Nanos;

/// A TCP stream of 500 Mbit/s over a path of unknown speed between idle hosts, with nothing to explain it.
fn facts() -> FlowFacts {
    let end = End { busy: 0.2, ..End::default() };
    FlowFacts {
        work: Work::Tcp,
        window: well_observed(),
        reached: 500e6,
        line: None,
        message_bytes: 1448,
        response_bytes: 0,
        tester_limit: None,
        tester_alone: TesterAlone::Cable,
        offer: None,
        sender: end.clone(),
        receiver: end,
        tcp: Some(tcp()),
        udp: None,
        vanished: None,
        closed_loop: None,
        calls: None,
        outage: 0.0,
        steadiness: None,
        course: None,
        outbound: InterfaceFacts::default(),
        inbound: InterfaceFacts::default(),
        bus: None,
        one_way: None,
        lost_on_return: 0.0,
        returns_keep_a_rate: false,
        declared_too_slow: None,
        waits: None,
        is_brief_volume: false,
        one_machine: false,
        steal: 0.0,
    }
}

/// A window of one second in ten samples, counted alike at both ends.
fn well_observed() -> WindowFacts {
    WindowFacts { seconds: 1.0, samples: 10.0, difference: Some(0.0) }
}

fn tcp() -> Tcp {
    Tcp {
        congestion: String::from("cubic"),
        rtt: 0.0005,
        min_rtt: 0.0004,
        segment_bits: 1448.0 * 8.0,
        flow_bps: 500e6,
        retransmits: 100.0,
        peer_window: 3e6,
        congestion_window: 1e6,
        ..Tcp::default()
    }
}

fn with_line(share: f64) -> FlowFacts {
    let (line_bps, payload_bps) = (BitRate::per_second(1_000_000_000), BitRate::per_second(941_000_000));
    FlowFacts { line: Some(PathLimit { line_bps, mtu: 1500, payload_bps, share, half_duplex: false }), ..facts() }
}

fn udp(udp: Udp) -> FlowFacts {
    FlowFacts { work: Work::Udp, tcp: None, udp: Some(Udp { buffer_time: 0.01, ..udp }), ..facts() }
}

/// Requests one after the other between hosts that are busy for this share of the time.
fn one_at_a_time(busy: f64) -> FlowFacts {
    let end = End { busy, ..End::default() };
    let closed_loop = Some(ClosedLoop { outstanding: 1.0, latency: 0.000_05 });
    FlowFacts { work: Work::Transact, tcp: None, sender: end.clone(), receiver: end, closed_loop, ..facts() }
}

fn at_tester_limit(facts: FlowFacts, share: f64) -> FlowFacts {
    let reached = crate::statistics::summary(vec![80e6]).expect("one run");
    let (record, bypass) = (RecordId("calibration".into()), Bypass::Cable);
    let limit = TesterLimit { record, bypass, age: Nanos::default(), interleaved: false, reached, share };
    FlowFacts { tester_limit: Some((limit, false)), ..facts }
}

#[track_caller]
fn is(facts: &FlowFacts, limit: Limit, confidence: Confidence) {
    let said = of_flows(facts);
    assert_eq!((said.limit, said.confidence), (limit, confidence), "{said:#?}");
}

/// The verdict is that it cannot be told which of `limits` it is.
#[track_caller]
fn is_open(facts: &FlowFacts, limits: &[Limit]) {
    let said = of_flows(facts);
    assert_eq!((said.limit, said.confidence), (Limit::CannotTell, Confidence::Low), "{said:#?}");
    assert_eq!(said.also, limits, "{said:#?}");
    assert!(!said.evidence.is_empty(), "{said:#?}");
}
