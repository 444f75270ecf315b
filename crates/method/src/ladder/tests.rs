//! Ladders of simulated paths, from the plan through the sweep to the gap that is named.

use super::*;
use crate::measure::tests::host;
use crate::transfer::tests::trial;
use crate::{Method, Step, Sweep, measurements};
use linerate_model::{
    FlowResult, FrameEngine, FrameForm, FrameHeaders, FramePayload, FrameStream, FrameStreamResult, Limit as LimitedBy,
    Loss, LossPlaces, Mac, NfsOperation, OperationCounts, Repeats, TcpFlow, Transactions, TrialResult,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

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
    Plan::of(Vec::new(), Repeats::Times(3))
}

/// A path with planted figures: the line's speed, and what UDP and TCP get in each of three runs, bit/s.
struct Planted {
    line: Option<u64>,
    udp: [f64; 3],
    tcp: [f64; 3],
    /// The units of RPC's calls.
    rpc: [f64; 3],
    /// What UDP lost in each run.
    loss: Option<Loss>,
    /// TCP's own account at the sender.
    account: TcpFlow,
    /// Trials of raw frames.
    frames: Vec<FrameTrialResult>,
}

impl Planted {
    fn full(udp: f64, tcp: f64) -> Self {
        let account = TcpFlow { mss: 1448, segments_out: 100_000, segments_in: 100_000, ..TcpFlow::default() };
        // What is left of TCP's payload by the heads of calls of 8 KiB.
        let rpc = [tcp * 8_192.0 / 8_256.0; 3];
        let (line, loss, frames) = (Some(GIGABIT), None, Vec::new());
        Self { line, udp: [udp; 3], tcp: [tcp; 3], rpc, loss, account, frames }
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
            Workload::Rpc(_) => {
                let bytes = (self.rpc[turn] / 8.0) as u64;
                let window = Nanos::from_secs(1);
                let received = ends.listener.received.as_mut().expect("it is there");
                (received.payload_bytes, received.messages) = (bytes, bytes / 8_192);
                let mut done = Transactions { completed: 1_000, window, ..Transactions::default() };
                done.latency.record_many(40_000, 1_000);
                ends.opener.transactions = Some(done);
                let flow = FlowResult { tcp: Some(self.account.clone()), ..FlowResult::default() };
                ends.opener.flows = vec![flow];
            }
            Workload::Nfs(_) => {
                let window = Nanos::from_secs(1);
                let moved = OperationCounts { bytes: (self.rpc[turn] / 8.0) as u64, ..OperationCounts::default() };
                let mut done = Transactions { completed: 1_000, window, ..Transactions::default() };
                done.latency.record_many(90_000, 1_000);
                ends.opener.transactions = Some(done);
                ends.opener.operations.insert(NfsOperation::Read, moved);
                let flow = FlowResult { tcp: Some(self.account.clone()), ..FlowResult::default() };
                ends.opener.flows = vec![flow];
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

    /// Every trial of the plan's cells.
    fn measured(&self) -> (Plan, Vec<TrialResult>) {
        let plan = onto(empty(), &asked());
        let (mut sweep, mut trials) = (Sweep::new(plan.clone()), Vec::new());
        while let Step::Run(spec) = sweep.next() {
            let turn = trials.iter().filter(|known: &&TrialResult| known.spec.name == spec.name).count();
            trials.push(self.run(&spec, turn));
            sweep.record(trials.last().expect("just added"));
        }
        (plan, trials)
    }

    fn ladder(&self) -> Ladder {
        let (plan, trials) = self.measured();
        let results = measurements(&plan, &[host("a", self.line), host("b", self.line)], &trials, None);
        let mut plan = plan.ladder.expect("a ladder");
        if let Some(full) = self.frames.first() {
            (plan.frames, plan.echoes) = (Some(full.trial.clone()), super::frames::echoes(&full.trial));
            plan.without.clear();
        }
        climb(&Facts { plan: &plan, results: &results, frame_trials: &self.frames, copy: None })
    }
}

/// Three trials of raw frames: so many sent in a second, so many received.
fn frames(sent: u64, received: u64) -> Vec<FrameTrialResult> {
    let size = FrameSize::with_fcs(1518).expect("a size");
    let headers = FrameHeaders {
        source_mac: Mac::default(),
        destination_mac: Mac::default(),
        vlans: Vec::new(),
        source: [198, 18, 0, 1].into(),
        destination: [198, 18, 0, 2].into(),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    };
    let stream = FrameStream {
        from: 0,
        to: 1,
        size,
        rate: Some(FrameRate::per_second(sent)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers,
        form: FrameForm::default(),
    };
    let trial = FrameTrial {
        name: "frames 1518".to_owned(),
        ports: vec!["a:eth0".into(), "b:eth0".into()],
        streams: vec![stream],
        time: Nanos::from_secs(1),
        settle: Nanos::default(),
        engine: FrameEngine::Auto,
        hosts: Vec::new(),
    };
    let second = Nanos::from_secs(1);
    let counts = FrameStreamResult {
        intended: sent,
        sent,
        send_time: second,
        received,
        receive_time: second,
        ..FrameStreamResult::default()
    };
    let result = FrameTrialResult {
        trial,
        engine: FrameEngine::Xdp,
        started_unix_ns: 0,
        streams: vec![counts],
        observation: Default::default(),
        other_hosts: BTreeMap::new(),
        device_load: None,
        caveats: Vec::new(),
    };
    vec![result; 3]
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

/// Calls that move half of what TCP does: their own loss, and no other rung's.
#[test]
fn what_calls_lose_is_named_as_theirs() {
    let planted = Planted::full(UDP, TCP);
    let rpc = rung(&planted.ladder(), RungName::Rpc).clone();
    close(rpc.share_of_below.expect("it stands on TCP"), 8_192.0 / 8_256.0);
    assert_eq!(rpc.results, ["rpc tcp write 8192", "rpc tcp null"]);
    assert_eq!(rpc.latency_ns.map(|latency| latency.count), Some(3_000));
    let ladder = Planted { rpc: planted.rpc.map(|bps| bps / 2.0), ..planted }.ladder();
    let (below, above, rest) = named(&ladder).expect("half is lost");
    assert_eq!((below, above), (RungName::Tcp, RungName::Rpc));
    close(rest, 2.0);
    assert!(ladder.widest_gap.expect("half is lost").advice.contains("--outstanding"));
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
    let results =
        measurements(&plan, &[host("a", Some(GIGABIT)), host("b", Some(GIGABIT))], &[planted.run(cell, 0)], None);
    let ladder = climb(&Facts {
        plan: plan.ladder.as_ref().expect("a ladder"),
        results: &results,
        frame_trials: &[],
        copy: None,
    });
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
    assert_eq!(
        names,
        [
            "udp 1472",
            "udp transactions",
            "tcp",
            "tcp transactions",
            "rpc tcp write 8192",
            "rpc tcp null",
            "nfs tcp read",
            "nfs tcp write"
        ]
    );
    let six = onto(empty(), &Asked { ip: IpVersion::V6, mtu: 9000, ..asked() });
    assert_eq!(six.cells[0].workload.message_bytes().get(), 9000 - 48);
}

/// Frames a second that a line of 1 Gbit/s carries at 1518 bytes.
const FRAMES: u64 = 81_274;

#[test]
fn raw_frames_are_a_rung_in_the_same_unit() {
    let ladder = Planted { frames: frames(FRAMES, FRAMES), ..Planted::full(UDP, TCP) }.ladder();
    let raw = rung(&ladder, RungName::Frames);
    close(raw.share_of_line.expect("the line is known"), 1.0);
    assert_eq!(raw.verdict.as_ref().map(|verdict| verdict.limit), Some(LimitedBy::Wire));
    assert_eq!((raw.below, rung(&ladder, RungName::Udp).below), (Some(RungName::Limit), Some(RungName::Frames)));
    assert_eq!(ladder.widest_gap, None);
}

#[test]
fn gaps_below_and_above_raw_frames_are_told_apart() {
    let half = FRAMES / 2;
    let lossy = Planted { frames: frames(FRAMES, half), ..Planted::full(UDP / 2.0, TCP / 2.0) }.ladder();
    assert_eq!(lossy.widest_gap.as_ref().map(|gap| (gap.below, gap.above)), Some((RungName::Limit, RungName::Frames)));
    let slow = Planted { frames: frames(FRAMES, FRAMES), ..Planted::full(UDP / 2.0, TCP / 2.0) }.ladder();
    assert_eq!(slow.widest_gap.as_ref().map(|gap| (gap.below, gap.above)), Some((RungName::Frames, RungName::Udp)));
}

/// A port that gives less than sockets do, or less than the line without any loss, says nothing of the path.
#[test]
fn what_the_testers_ports_lack_is_no_gap() {
    for (sent, received) in [(FRAMES / 3, FRAMES / 3), (FRAMES, FRAMES / 3)] {
        let ladder = Planted { frames: frames(sent, received), ..Planted::full(UDP, TCP) }.ladder();
        let raw = rung(&ladder, RungName::Frames);
        assert_eq!(raw.verdict.as_ref().map(|verdict| verdict.limit), Some(LimitedBy::Tester));
        close(raw.share_of_line.expect("the line is known"), 1.0 / 3.0);
        assert_eq!(rung(&ladder, RungName::Udp).below, Some(RungName::Limit), "it stands on the line");
        assert_eq!(ladder.widest_gap, None);
    }
}

#[test]
fn trials_of_frames_that_were_held_up_count_for_nothing() {
    let mut held_up = frames(FRAMES, FRAMES / 2);
    for trial in &mut held_up {
        (trial.streams[0].sent, trial.streams[0].held_up) = (FRAMES / 2, Nanos::from_millis(500));
    }
    let ladder = Planted { frames: held_up, ..Planted::full(UDP, TCP) }.ladder();
    let why = rung(&ladder, RungName::Frames).missing.as_ref().expect("none was sound");
    assert!(why.contains("held up"), "{why}");
}

#[test]
fn frames_are_sent_and_timed_as_often_as_the_plan_repeats_and_not_where_they_cannot_be() {
    let full = &frames(FRAMES, FRAMES)[0];
    let mut plan = onto(empty(), &Asked { frames: Ok(full.trial.clone()), ..asked() });
    let (mut done, mut order) = (Vec::new(), Vec::new());
    while let Some(trial) = next_frames(&plan, &done) {
        order.push(trial.name.clone());
        done.push(FrameTrialResult { trial: trial.clone(), ..full.clone() });
    }
    assert_eq!(order, ["frames 1518", "echo of frames"].repeat(3));
    plan.ladder.as_mut().expect("a ladder").echoes = None;
    assert_eq!(next_frames(&plan, &done[..2]).map(|trial| &trial.name), Some(&full.trial.name), "untimed");
    plan.ladder.as_mut().expect("a ladder").without.insert(RungName::Frames, "refused".to_owned());
    assert_eq!(next_frames(&plan, &[]), None);
    assert_eq!(next_frames(&onto(empty(), &asked()), &[]), None);
}

/// Only the sending port has a part in it, and nothing of it is in the rung's rate.
#[test]
fn frames_are_timed_there_and_back_by_one_port() {
    let mut trials = frames(FRAMES, FRAMES);
    let echoes = super::frames::echoes(&trials[0].trial).expect("a stream");
    let [stream] = &echoes.streams[..] else { panic!("{echoes:?}") };
    assert_eq!((&echoes.ports[..], stream.from, stream.to), (&["a:eth0".into()][..], 0, 0));
    assert_eq!((stream.headers.payload, stream.size.get()), (FramePayload::Echo, 64));
    // A tenth of the line is 148,809 a second.
    assert_eq!(stream.rate, Some(FrameRate::per_second(10_000)));
    let mut slow = trials[0].trial.clone();
    slow.streams[0].rate = Some(FrameRate::per_second(812));
    let slow = super::frames::echoes(&slow).expect("a stream");
    assert_eq!(slow.streams[0].rate, Some(FrameRate::per_second(812 * 1538 / 84 / 10)));
    assert_eq!(stream.headers.destination, trials[0].trial.streams[0].headers.destination);
    let mut timed = FrameTrialResult { trial: echoes, ..trials[0].clone() };
    timed.streams[0].received = 1_000;
    timed.streams[0].latency.record_many(12_000, 500);
    timed.streams[0].latency.record_many(40_000, 500);
    trials.extend([timed.clone(), timed]);
    let ladder = Planted { frames: trials, ..Planted::full(UDP, TCP) }.ladder();
    let raw = rung(&ladder, RungName::Frames);
    close(raw.share_of_line.expect("the line is known"), 1.0);
    let RungLatency { p50, p99, count } = raw.latency_ns.expect("it was timed");
    assert_eq!(count, 2_000);
    assert!((11_900..=12_100).contains(&p50) && (39_700..=40_300).contains(&p99), "{p50} {p99}");
}

/// NFS stands on RPC, and its rungs have what file data their calls moved.
#[test]
fn nfs_stands_on_rpc() {
    let ladder = Planted::full(UDP, TCP).ladder();
    let names: Vec<RungName> = ladder.rungs.iter().rev().map(|rung| rung.name).take(3).collect();
    assert_eq!(names, [RungName::Copy, RungName::NfsWrite, RungName::NfsRead]);
    let read = ladder.rungs.iter().find(|rung| rung.name == RungName::NfsRead).expect("a rung");
    assert_eq!(read.below, Some(RungName::Rpc));
    assert!((read.share_of_below.expect("RPC was measured") - 1.0).abs() < 1e-3);
    assert_eq!((read.results.as_slice(), read.latency_ns), (["nfs tcp read".to_owned()].as_slice(), None));
}

/// TCP says how large the tree is; the copies are as many as the plan has repeats, and their median is the rung's figure.
#[test]
fn a_copy_stands_on_top_sized_by_what_tcp_carries() {
    let (plan, trials) = Planted::full(UDP, TCP).measured();
    let mut record = Record::new(linerate_model::RecordId("r".into()), plan.clone());
    assert_eq!(next_copy(&record), None, "TCP is not measured yet");
    record.results = measurements(&plan, &[], &trials, None);
    let copy = next_copy(&record).expect("a copy");
    let linerate_model::CopyTree::Made(tree) = &copy.tree else { panic!("made") };
    assert_eq!(tree.bytes.get(), (TCP / 8.0) as u64, "a second's worth");
    assert!(tree.files >= 100 && copy.sources[0].0 == "a" && copy.destinations[0].0 == "b", "{copy:?}");
    for seconds in [2, 4, 3] {
        assert_eq!(next_copy(&record).as_ref(), Some(&copy));
        record.plan.ladder.as_mut().expect("a ladder").copy = Some(copy.clone());
        let side = linerate_model::CopySide {
            time: Nanos::from_secs(seconds),
            bytes: 120_000_000,
            complete: true,
            ..linerate_model::CopySide::default()
        };
        let counted = linerate_model::CopyHalfResult {
            started_unix_ns: 1,
            sides: vec![side],
            faults: Vec::new(),
            faults_total: 0,
            observation: linerate_model::Observation::default(),
            caveats: Vec::new(),
        };
        let part = |host: &str| vec![linerate_model::CopyPart { host: host.into(), counted: counted.clone() }];
        let servers = Vec::new();
        record.copy_trials.push(linerate_model::CopyTrial { sources: part("a"), destinations: part("b"), servers });
    }
    assert_eq!(next_copy(&record), None, "three are enough");
    let ladder = found(&record).expect("a ladder");
    let rung = ladder.rungs.last().expect("rungs");
    assert_eq!((rung.name, rung.below), (RungName::Copy, Some(RungName::NfsWrite)), "{rung:?}");
    assert_eq!(rung.payload_bps.as_ref().map(|runs| (runs.median, runs.runs)), Some((120e6 * 8.0 / 3.0, 3)));
    record.plan.ladder.as_mut().expect("a ladder").without.insert(RungName::Copy, "no folder".into());
    assert_eq!(next_copy(&record), None);
    let missing = found(&record).expect("a ladder").rungs.pop().expect("rungs").missing;
    assert_eq!(missing.as_deref(), Some("no folder"));
}
