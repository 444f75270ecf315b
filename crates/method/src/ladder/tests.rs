//! Ladders of simulated paths, from the plan through the sweep to the gap that is named.

use super::*;
use crate::measure::tests::host;
use crate::transfer::tests::trial;
use crate::{Method, Step, Sweep, measurements};
use linerate_model::{FlowResult, Loss, LossPlaces, Repeats, TcpFlow, Transactions, TrialResult};
use linerate_units::Nanos;

const GIGABIT: u64 = 1_000_000_000;
/// What a line of 1 Gbit/s carries in full frames over IPv4: 1472 and 1448 of 1538 bytes.
const UDP: f64 = 1e9 * 1472.0 / 1538.0;
const TCP: f64 = 1e9 * 1448.0 / 1538.0;

fn asked() -> Asked {
    Asked {
        path: Path { opener: "a".into(), listener: "b".into() },
        ip: IpVersion::V4,
        mtu: 1500,
        flows: 1,
        socket: SocketOptions::default(),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::from_secs(1) },
        frames: Err("no port".to_owned()),
    }
}

fn empty() -> Plan {
    Plan { cells: Vec::new(), repeats: Repeats::Times(3), device: None, ladder: None }
}

/// A path with planted figures: the line's speed, and what UDP and TCP get in each of three runs, bit/s.
struct Planted {
    line: Option<u64>,
    udp: [f64; 3],
    tcp: [f64; 3],
    /// What UDP lost in each run.
    loss: Option<Loss>,
    /// TCP's own account at the sender.
    account: TcpFlow,
}

impl Planted {
    fn full(udp: f64, tcp: f64) -> Self {
        let account = TcpFlow { mss: 1448, segments_out: 100_000, segments_in: 100_000, ..TcpFlow::default() };
        Self { line: Some(GIGABIT), udp: [udp; 3], tcp: [tcp; 3], loss: None, account }
    }

    fn run(&self, spec: &TrialSpec, turn: usize) -> TrialResult {
        let mut result = trial(0, 0);
        result.spec = spec.clone();
        let ends = &mut result.paths[0];
        match &spec.workload {
            Workload::Stream(stream) => {
                let bps = if stream.transport == Transport::Udp { self.udp[turn] } else { self.tcp[turn] };
                let received = ends.listener.received.as_mut().expect("a stream");
                received.payload_bytes = (bps / 8.0) as u64;
                if stream.transport == Transport::Udp {
                    ends.forward_loss = self.loss;
                } else {
                    let flow = FlowResult { tcp: Some(self.account.clone()), ..FlowResult::default() };
                    (ends.opener.flows, ends.listener.flows) = (vec![flow.clone()], vec![flow]);
                }
            }
            Workload::Transact(transact) => {
                let mut done =
                    Transactions { completed: 1_000, window: Nanos::from_secs(1), ..Transactions::default() };
                let nanos = if transact.transport == Transport::Udp { 20_000 } else { 30_000 };
                done.latency.record_many(nanos, 1_000);
                ends.opener.transactions = Some(done);
            }
        }
        result
    }

    fn ladder(&self) -> Ladder {
        let plan = onto(empty(), &asked());
        let (mut sweep, mut trials) = (Sweep::new(plan.clone()), Vec::new());
        while let Step::Run(spec) = sweep.next() {
            let turn = trials.iter().filter(|known: &&TrialResult| known.spec.name == spec.name).count();
            trials.push(self.run(&spec, turn));
            sweep.record(trials.last().expect("just added"));
        }
        let results = measurements(&plan, &[host("a", self.line), host("b", self.line)], &trials);
        climb(&Facts { plan: plan.ladder.as_ref().expect("a ladder"), results: &results, frame_trials: &[] })
    }
}

fn rung(ladder: &Ladder, name: RungName) -> &Rung {
    ladder.rungs.iter().find(|rung| rung.name == name).expect("every rung is listed")
}

/// The rung below, the rung above, and the part of the gap that is not headers.
fn named(ladder: &Ladder) -> Option<(RungName, RungName, f64)> {
    ladder.widest_gap.as_ref().map(|gap| (gap.below, gap.above, gap.rest))
}

fn close(value: f64, truth: f64) {
    assert!((value / truth - 1.0).abs() < 1e-4, "{value} is not {truth}");
}

#[test]
fn a_path_that_loses_nothing_is_full_at_every_rung() {
    let ladder = Planted::full(UDP, TCP).ladder();
    assert_eq!(ladder.widest_gap, None);
    assert_eq!(ladder.line_bps, Some(BitRate::per_second(GIGABIT)));
    let udp = rung(&ladder, RungName::Udp);
    close(udp.share_of_line.expect("the line is known"), 1.0);
    close(udp.share_of_below.expect("it stands on the line"), 1.0);
    // TCP has what its header leaves: 1448 of UDP's 1472 bytes.
    let tcp = rung(&ladder, RungName::Tcp);
    close(tcp.share_of_below.expect("it stands on UDP"), 1448.0 / 1472.0);
    close(tcp.limit_bps.map_or(0.0, |limit| limit.get() as f64), TCP);
    assert_eq!(tcp.results, ["tcp", "tcp transactions"]);
    let latency = tcp.latency_ns.expect("it was timed");
    assert!((29_900..30_100).contains(&latency.p50) && latency.count == 3_000, "{latency:?}");
}

#[test]
fn a_planted_gap_is_named_wherever_it_is() {
    use RungName::{Limit, Tcp as TcpRung, Udp as UdpRung};
    for (udp, tcp, below, above, rest) in [
        (UDP / 2.0, TCP / 2.0, Limit, UdpRung, 2.0),
        (UDP, TCP / 1.5, UdpRung, TcpRung, 1.5),
        // Both lose: the one that loses more.
        (UDP / 1.2, TCP / 1.2 / 3.0, UdpRung, TcpRung, 3.0),
        (UDP / 3.0, TCP / 3.0 / 1.2, Limit, UdpRung, 3.0),
    ] {
        let ladder = Planted::full(udp, tcp).ladder();
        let gap = ladder.widest_gap.as_ref().expect("there is a gap");
        assert_eq!((gap.below, gap.above), (below, above));
        close(gap.rest, rest);
        close(gap.factor, gap.headers * gap.rest);
        close(gap.headers, if above == TcpRung { 1472.0 / 1448.0 } else { 1.0 });
        assert!(!gap.advice.is_empty());
    }
}

/// TCP's median lies 5 % below UDP's, but so do UDP's own runs.
#[test]
fn what_the_spread_explains_is_no_gap() {
    let mut planted = Planted::full(UDP, TCP * 0.95);
    assert!(planted.ladder().widest_gap.is_some());
    planted.udp = [UDP * 0.94, UDP, UDP];
    assert_eq!(named(&planted.ladder()), None);
}

#[test]
fn without_a_speed_there_is_no_share_of_the_line_but_a_gap_all_the_same() {
    let ladder = Planted { line: None, ..Planted::full(4e9, 1e9) }.ladder();
    let why = rung(&ladder, RungName::Limit).missing.as_ref().expect("the ground is missing");
    assert!(why.contains("--link-speed"), "{why}");
    assert_eq!((ladder.line_bps, rung(&ladder, RungName::Udp).share_of_below), (None, None));
    assert!(ladder.rungs.iter().all(|rung| rung.share_of_line.is_none() && rung.limit_bps.is_none()));
    let (below, above, rest) = named(&ladder).expect("three quarters are lost");
    assert_eq!((below, above), (RungName::Udp, RungName::Tcp));
    close(rest, 4.0 * 1448.0 / 1472.0);
}

/// Offload may carry TCP past UDP, whose datagrams are a packet each: that is no loss.
#[test]
fn a_rung_that_rises_is_no_gap() {
    let ladder = Planted { line: None, ..Planted::full(1e9, 8e9) }.ladder();
    close(rung(&ladder, RungName::Tcp).share_of_below.expect("it stands on UDP"), 8.0);
    assert_eq!(ladder.widest_gap, None);
}

#[test]
fn the_advice_follows_what_tcp_says_of_itself() {
    let flow = |change: fn(&mut TcpFlow)| {
        let mut planted = Planted::full(UDP, TCP / 2.0);
        planted.account.busy = Nanos::from_secs(1);
        change(&mut planted.account);
        planted.ladder().widest_gap.expect("half is lost").advice
    };
    for (change, words) in [
        (
            (|flow| flow.receive_window_limited = Nanos::from_millis(600)) as fn(&mut TcpFlow),
            "window stalled TCP for 60 %",
        ),
        (|flow| flow.send_buffer_limited = Nanos::from_millis(300), "--send-buffer"),
        (|flow| flow.retransmits = 2_000, "sent 2.0 % of its segments again"),
        (|_| (), "neither window nor loss"),
    ] {
        let said = flow(change);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn the_advice_follows_where_udp_loses() {
    let advice = |places: LossPlaces| {
        let loss = Loss { lost: places.sum(), of: 100_000, places, ..Loss::default() };
        let planted = Planted { loss: Some(loss), ..Planted::full(UDP / 2.0, TCP / 2.0) };
        planted.ladder().widest_gap.expect("half is lost").advice
    };
    for (places, words) in [
        (LossPlaces { socket_buffer: 30_000, wire: 10, ..LossPlaces::default() }, "--receive-buffer"),
        (LossPlaces { receiver_queue: 30_000, ..LossPlaces::default() }, "netdev_max_backlog"),
        (LossPlaces { wire: 30_000, ..LossPlaces::default() }, "lost on the way"),
        // Too few to account for half.
        (LossPlaces { wire: 30, ..LossPlaces::default() }, "work for each packet"),
    ] {
        let said = advice(places);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_rung_that_was_not_measured_says_why_and_the_next_stands_on_what_is_left() {
    let plan = onto(empty(), &asked());
    let planted = Planted::full(UDP, TCP);
    let cell = plan.cells.iter().find(|cell| cell.name == "tcp").expect("TCP is measured");
    let results = measurements(&plan, &[host("a", Some(GIGABIT)), host("b", Some(GIGABIT))], &[planted.run(cell, 0)]);
    let ladder = climb(&Facts { plan: plan.ladder.as_ref().expect("a ladder"), results: &results, frame_trials: &[] });
    assert_eq!(rung(&ladder, RungName::Frames).missing.as_deref(), Some("no port"));
    assert!(rung(&ladder, RungName::Udp).missing.as_ref().is_some_and(|why| why.contains("ended before")));
    close(rung(&ladder, RungName::Tcp).share_of_below.expect("it stands on the line"), 1448.0 / 1472.0);
    assert_eq!(ladder.widest_gap, None, "headers alone are no gap");
}

#[test]
fn nothing_that_arrived_has_no_share() {
    let ladder = Planted::full(0.0, TCP).ladder();
    assert!(rung(&ladder, RungName::Udp).missing.as_ref().is_some_and(|why| why.contains("nothing arrived")));
    assert_eq!(ladder.widest_gap, None);
}

#[test]
fn its_trials_join_a_plan_that_has_some_already() {
    let twice = onto(onto(empty(), &asked()), &asked());
    let names: Vec<&str> = twice.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["udp 1472", "udp transactions", "tcp", "tcp transactions"]);
    let six = onto(empty(), &Asked { ip: IpVersion::V6, mtu: 9000, ..asked() });
    assert_eq!(six.cells[0].workload.message_bytes().get(), 9000 - 48);
}
