//! Ladders of simulated paths, from the plan through the sweep to the gap that is named.

use super::*;
use crate::contract::{After, Again, Step};
use crate::copy::tests::{made, part};
use crate::device::tests::{counted, frames_of, streams_of};
use crate::measure::tests::host;
use crate::transfer::tests::{paths_of, trial};
use linerate_model::{
    CaveatKind, CopyParts, CopySide, FlowCounts, FrameEngine, FrameForm, FrameHeaders, FramePayload, FrameReceiver,
    FrameStream, FrameStreamCounts, FramesTask, Limit as LimitedBy, Loss, LossPlaces, Mac, NfsOperation,
    OperationCounts, Record, RecordId, TcpFlow, Transactions,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

const GIGABIT: u64 = 1_000_000_000;
/// What a line of 1 Gbit/s carries in full frames over IPv4: 1472 and 1448 of 1538 bytes.
const UDP: f64 = 1e9 * 1472.0 / 1538.0;
const TCP: f64 = 1e9 * 1448.0 / 1538.0;

fn request() -> LadderRequest {
    LadderRequest {
        path: Path::between("a", "b"),
        ip: IpVersion::V4,
        mtu: 1500,
        flows: 1,
        socket: SocketOptions::default(),
        calls_over: Transport::Tcp,
        timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(1)),
        repeats: Repeats::Times(3),
        frames: Planned::Missing("no port".to_owned()),
        hops: false,
    }
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
    frames: Vec<TrialResult>,
}

impl Planted {
    fn full(udp: f64, tcp: f64) -> Self {
        let account = TcpFlow { mss: 1448, segments_out: 100_000, segments_in: 100_000, ..TcpFlow::default() };
        // What is left of TCP's payload by the heads of calls of 8 KiB.
        let rpc = [tcp * 8_192.0 / 8_256.0; 3];
        let (line, loss, frames) = (Some(GIGABIT), None, Vec::new());
        Self { line, udp: [udp; 3], tcp: [tcp; 3], rpc, loss, account, frames }
    }

    fn run(&self, spec: &Trial, turn: usize) -> TrialResult {
        let mut result = TrialResult { trial: spec.clone(), ..trial(0, 0) };
        let ends = &mut paths_of(&mut result)[0];
        match spec.task() {
            Task::Stream(stream) => {
                let bps = if stream.net.transport == Transport::Udp { self.udp[turn] } else { self.tcp[turn] };
                let received = ends.server.received.as_mut().expect("a stream");
                received.payload_bytes = (bps / 8.0) as u64;
                if stream.net.transport == Transport::Udp {
                    ends.forward_loss = self.loss;
                } else {
                    let flow = FlowCounts { tcp: Some(self.account.clone()), ..FlowCounts::default() };
                    (ends.client.flows, ends.server.flows) = (vec![flow.clone()], vec![flow]);
                }
            }
            Task::Rpc(_) => {
                let bytes = (self.rpc[turn] / 8.0) as u64;
                let window = Nanos::from_secs(1);
                let received = ends.server.received.as_mut().expect("it is there");
                (received.payload_bytes, received.messages) = (bytes, bytes / 8_192);
                let mut done = Transactions { completed: 1_000, window, ..Transactions::default() };
                done.latency.record_many(40_000, 1_000);
                ends.client.transactions = Some(done);
                let flow = FlowCounts { tcp: Some(self.account.clone()), ..FlowCounts::default() };
                ends.client.flows = vec![flow];
            }
            Task::Nfs(_) => {
                let window = Nanos::from_secs(1);
                let moved = OperationCounts { bytes: (self.rpc[turn] / 8.0) as u64, ..OperationCounts::default() };
                let mut done = Transactions { completed: 1_000, window, ..Transactions::default() };
                done.latency.record_many(90_000, 1_000);
                ends.client.transactions = Some(done);
                ends.client.operations.insert(NfsOperation::Read, moved);
                let flow = FlowCounts { tcp: Some(self.account.clone()), ..FlowCounts::default() };
                ends.client.flows = vec![flow];
            }
            Task::Transact(transact) => {
                let mut done =
                    Transactions { completed: 1_000, window: Nanos::from_secs(1), ..Transactions::default() };
                let nanos = if transact.net.transport == Transport::Udp { 20_000 } else { 30_000 };
                done.latency.record_many(nanos, 1_000);
                ends.client.transactions = Some(done);
            }
            other => panic!("no cell of a ladder: {other:?}"),
        }
        result
    }

    /// A record of every trial of the plan's cells, in the order in which the method asks for them, and of the raw frames.
    fn measured(&self) -> Record {
        self.measured_over(Transport::Tcp)
    }

    /// The same with calls over this transport.
    fn measured_over(&self, calls_over: Transport) -> Record {
        let full = self.frames.first().map(|run| Planned::Trial(Box::new(run.trial.clone())));
        let plan = plan(&LadderRequest { frames: full.unwrap_or(request().frames), calls_over, ..request() });
        let (mut method, mut trials) = (crate::of(&plan, &[]), Vec::new());
        while let Step::Run { trial: spec, again } = method.next() {
            if spec.net().is_none() {
                break;
            }
            assert_eq!(again, Again::Search);
            let turn = trials.iter().filter(|known: &&TrialResult| known.trial.name == spec.name).count();
            trials.push(self.run(&spec, turn));
            assert_eq!(method.record(trials.last().expect("just added")), After::GoOn);
        }
        trials.extend(self.frames.clone());
        let hosts = vec![host("a", self.line), host("b", self.line)];
        replayed(Record { hosts, trials, ..Record::new(RecordId("r".into()), plan) })
    }

    fn ladder(&self) -> Ladder {
        self.measured().ladder().cloned().expect("a ladder")
    }
}

fn replayed(mut record: Record) -> Record {
    crate::replay(&mut record);
    record
}

/// The next trial of a record's method.
fn next(record: &Record) -> Option<Trial> {
    let mut method = crate::of(&record.plan, &record.hosts);
    assert!(record.trials.iter().all(|result| method.record(result) == After::GoOn));
    match method.next() {
        Step::Run { trial, .. } => Some(*trial),
        Step::Done => None,
    }
}

/// Three trials of raw frames: so many sent in a second, so many received.
fn frames(sent: u64, received: u64) -> Vec<TrialResult> {
    let size = FrameSize::with_fcs(1518).expect("a size");
    let headers = FrameHeaders {
        source_mac: Mac::default(),
        destination_mac: Mac::default(),
        vlans: Vec::new(),
        priority: 0,
        dscp: 0,
        source: [198, 18, 0, 1].into(),
        destination: [198, 18, 0, 2].into(),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    };
    let stream = FrameStream {
        from: 0,
        to: 1,
        copies_to: Vec::new(),
        size,
        rate: Some(FrameRate::per_second(sent)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers,
        form: FrameForm::default(),
    };
    let task = FramesTask {
        home: "a".into(),
        ports: vec!["a:eth0".into(), "b:eth0".into()],
        streams: vec![stream],
        time: Nanos::from_secs(1),
        settle: Nanos::default(),
        engine: FrameEngine::Auto,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: Vec::new(),
    };
    let second = Nanos::from_secs(1);
    let counts = FrameStreamCounts {
        intended: sent,
        sent,
        send_time: second,
        received,
        receive_time: second,
        ..FrameStreamCounts::default()
    };
    let result = counted(Trial::new("frames 1518", Task::Frames(task), Timing::UntilDone), vec![counts]);
    vec![result; 3]
}

fn layer(ladder: &Ladder, name: LayerName) -> &LadderLayer {
    ladder.layers.iter().find(|layer| layer.name == name).expect("every layer is listed")
}

/// The layer below, the layer above, and the part of the gap that is not headers.
fn named(ladder: &Ladder) -> Option<(LayerName, LayerName, f64)> {
    ladder.widest_gap.as_ref().map(|gap| (gap.below, gap.above, gap.rest))
}

fn close(value: f64, truth: f64) {
    assert!((value / truth - 1.0).abs() < 1e-4, "{value} is not {truth}");
}

#[test]
fn a_path_that_loses_nothing_is_full_at_every_layer() {
    let ladder = Planted::full(UDP, TCP).ladder();
    assert_eq!(ladder.widest_gap, None);
    assert_eq!(ladder.line_bps, Some(BitRate::per_second(GIGABIT)));
    let udp = layer(&ladder, LayerName::Udp);
    close(udp.share_of_line.expect("the line is known"), 1.0);
    close(udp.share_of_layer_below.expect("it stands on the line"), 1.0);
    // TCP has what its header leaves: 1448 of UDP's 1472 bytes.
    let tcp = layer(&ladder, LayerName::Tcp);
    close(tcp.share_of_layer_below.expect("it stands on UDP"), 1448.0 / 1472.0);
    close(tcp.limit_bps.map_or(0.0, |limit| limit.get() as f64), TCP);
    assert_eq!(tcp.results, ["tcp", "tcp transactions"]);
    let latency = tcp.latency_ns.expect("it was timed");
    assert!((29_900..30_100).contains(&latency.p50) && latency.count == 3_000, "{latency:?}");
}

/// Calls that move half of what TCP does: their own loss, and no other layer's.
#[test]
fn what_calls_lose_is_named_as_theirs() {
    let planted = Planted::full(UDP, TCP);
    let rpc = layer(&planted.ladder(), LayerName::Rpc).clone();
    close(rpc.share_of_layer_below.expect("it stands on TCP"), 8_192.0 / 8_256.0);
    assert_eq!(rpc.results, ["rpc tcp write 8192", "rpc tcp null"]);
    assert_eq!(rpc.latency_ns.map(|latency| latency.count), Some(3_000));
    let ladder = Planted { rpc: planted.rpc.map(|bps| bps / 2.0), ..planted }.ladder();
    let (below, above, rest) = named(&ladder).expect("half is lost");
    assert_eq!((below, above), (LayerName::Tcp, LayerName::Rpc));
    close(rest, 2.0);
    assert!(ladder.widest_gap.expect("half is lost").advice.expect("advice").contains("--outstanding"));
}

#[test]
fn a_planted_gap_is_named_wherever_it_is() {
    use LayerName::{Limit, Tcp as TcpLayer, Udp as UdpLayer};
    for (udp, tcp, below, above, rest) in [
        (UDP / 2.0, TCP / 2.0, Limit, UdpLayer, 2.0),
        (UDP, TCP / 1.5, UdpLayer, TcpLayer, 1.5),
        // Both lose: the one that loses more.
        (UDP / 1.2, TCP / 1.2 / 3.0, UdpLayer, TcpLayer, 3.0),
        (UDP / 3.0, TCP / 3.0 / 1.2, Limit, UdpLayer, 3.0),
    ] {
        let ladder = Planted::full(udp, tcp).ladder();
        let gap = ladder.widest_gap.as_ref().expect("there is a gap");
        assert_eq!((gap.below, gap.above), (below, above));
        close(gap.rest, rest);
        close(gap.factor, gap.headers * gap.rest);
        close(gap.headers, if above == TcpLayer { 1472.0 / 1448.0 } else { 1.0 });
        assert!(gap.advice.is_some());
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
    let why = layer(&ladder, LayerName::Limit).missing.as_ref().expect("the ground is missing");
    assert!(why.contains("--link-speed"), "{why}");
    assert_eq!((ladder.line_bps, layer(&ladder, LayerName::Udp).share_of_layer_below), (None, None));
    assert!(ladder.layers.iter().all(|layer| layer.share_of_line.is_none() && layer.limit_bps.is_none()));
    let (below, above, rest) = named(&ladder).expect("three quarters are lost");
    assert_eq!((below, above), (LayerName::Udp, LayerName::Tcp));
    close(rest, 4.0 * 1448.0 / 1472.0);
}

/// Offload may carry TCP past UDP, whose datagrams are a packet each: that is no loss.
#[test]
fn a_layer_that_rises_is_no_gap() {
    let ladder = Planted { line: None, ..Planted::full(1e9, 8e9) }.ladder();
    close(layer(&ladder, LayerName::Tcp).share_of_layer_below.expect("it stands on UDP"), 8.0);
    assert_eq!(ladder.widest_gap, None);
}

#[test]
fn the_advice_follows_what_tcp_says_of_itself() {
    let flow = |change: fn(&mut TcpFlow)| {
        let mut planted = Planted::full(UDP, TCP / 2.0);
        planted.account.busy = Nanos::from_secs(1);
        change(&mut planted.account);
        planted.ladder().widest_gap.expect("half is lost").advice.expect("advice")
    };
    for (change, words) in [
        (
            (|flow| flow.receive_window_limited = Nanos::from_millis(600)) as fn(&mut TcpFlow),
            "window stalled TCP for 60 %",
        ),
        (|flow| flow.send_buffer_limited = Nanos::from_millis(300), "--send-buffer"),
        (|flow| flow.retransmits = 2_000, "retransmitted 2.0 % of its segments"),
        (|flow| flow.retransmits = 2_000, "Also try --congestion bbr"),
        (|_| (), "neither window nor loss"),
    ] {
        let said = flow(change);
        assert!(said.contains(words), "{words}: {said}");
    }
    // What was measured with BBR is not advised to be measured with it.
    let bbr = flow(|flow| (flow.retransmits, flow.congestion) = (2_000, "bbr".to_owned()));
    assert!(bbr.contains("TCP (bbr) retransmitted 2.0 %") && !bbr.contains("--congestion"), "{bbr}");
}

#[test]
fn the_advice_follows_where_udp_loses() {
    let advice = |places: LossPlaces| {
        let loss = Loss { lost: places.sum(), of: 100_000, places, ..Loss::default() };
        let planted = Planted { loss: Some(loss), ..Planted::full(UDP / 2.0, TCP / 2.0) };
        planted.ladder().widest_gap.expect("half is lost").advice.expect("advice")
    };
    for (places, words) in [
        (LossPlaces { socket_buffer: 30_000, unaccounted: 10, ..LossPlaces::default() }, "--receive-buffer"),
        (LossPlaces { receiver_queue: 30_000, ..LossPlaces::default() }, "netdev_max_backlog"),
        (LossPlaces { unaccounted: 30_000, ..LossPlaces::default() }, "lost on the way"),
        // Too few to account for half.
        (LossPlaces { unaccounted: 30, ..LossPlaces::default() }, "work for each packet"),
    ] {
        let said = advice(places);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_layer_that_was_not_measured_says_why_and_the_next_stands_on_what_is_left() {
    let plan = plan(&request());
    let planted = Planted::full(UDP, TCP);
    let named = |name: &str| plan.cells().iter().find(|cell| cell.name == name).expect("it is a cell").clone();
    let failed = TrialResult::failed(named("rpc tcp write 8192"), 0, "the port is barred");
    let mut method = crate::of(&plan, &[]);
    assert_eq!(method.record(&failed), After::GoOn, "the others are measured all the same");
    let hosts = vec![host("a", Some(GIGABIT)), host("b", Some(GIGABIT))];
    let trials = vec![planted.run(&named("tcp"), 0), failed];
    let record = replayed(Record { hosts, trials, ..Record::new(RecordId("r".into()), plan.clone()) });
    let ladder = record.ladder().expect("a ladder");
    assert_eq!(layer(ladder, LayerName::Frames).missing.as_deref(), Some("no port"));
    assert!(layer(ladder, LayerName::Udp).missing.as_ref().is_some_and(|why| why.contains("ended before")));
    assert_eq!(layer(ladder, LayerName::Rpc).missing.as_deref(), Some("the port is barred"));
    assert!(record.caveats.iter().any(|doubt| doubt.kind == CaveatKind::NotMeasured && doubt.text.contains("barred")));
    close(layer(ladder, LayerName::Tcp).share_of_layer_below.expect("it stands on the line"), 1448.0 / 1472.0);
    assert_eq!(ladder.widest_gap, None, "headers alone are no gap");
}

#[test]
fn nothing_that_arrived_has_no_share() {
    let ladder = Planted::full(0.0, TCP).ladder();
    assert!(layer(&ladder, LayerName::Udp).missing.as_ref().is_some_and(|why| why.contains("nothing arrived")));
    assert_eq!(ladder.widest_gap, None);
}

#[test]
fn each_layer_has_its_trials() {
    let plan = plan(&request());
    let names: Vec<&str> = plan.cells().iter().map(|cell| cell.name.as_str()).collect();
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
    assert!(plan.cells().iter().all(|cell| cell.paths() == [Path::between("a", "b")]));
    let six = super::plan(&LadderRequest { ip: IpVersion::V6, mtu: 9000, ..request() });
    assert_eq!(six.cells()[0].task().message_bytes().map(|bytes| bytes.get()), Some(9000 - 48));
}

#[test]
fn probes_run_next_to_streams_and_alone_before_them() {
    let plan = plan(&LadderRequest { hops: true, ..request() });
    let probed = |cell: &&Trial| cell.loads.iter().any(|load| matches!(load.task, Task::Hops(_)));
    let names: Vec<&str> = plan.cells().iter().filter(probed).map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["udp 1472", "tcp"]);
    let Step::Run { trial, .. } = crate::of(&plan, &[]).next() else { panic!("nothing to run") };
    assert_eq!((trial.name.as_str(), trial.loads.len()), ("idle path", 1));
}

/// Frames a second that a line of 1 Gbit/s carries at 1518 bytes.
const FRAMES: u64 = 81_274;

#[test]
fn raw_frames_are_a_layer_in_the_same_unit() {
    let ladder = Planted { frames: frames(FRAMES, FRAMES), ..Planted::full(UDP, TCP) }.ladder();
    let raw = layer(&ladder, LayerName::Frames);
    close(raw.share_of_line.expect("the line is known"), 1.0);
    assert_eq!(raw.verdict.as_ref().map(|verdict| verdict.limit), Some(LimitedBy::Wire));
    assert_eq!((raw.below, layer(&ladder, LayerName::Udp).below), (Some(LayerName::Limit), Some(LayerName::Frames)));
    assert_eq!(ladder.widest_gap, None);
}

#[test]
fn gaps_below_and_above_raw_frames_are_told_apart() {
    let half = FRAMES / 2;
    let lossy = Planted { frames: frames(FRAMES, half), ..Planted::full(UDP / 2.0, TCP / 2.0) }.ladder();
    assert_eq!(
        lossy.widest_gap.as_ref().map(|gap| (gap.below, gap.above)),
        Some((LayerName::Limit, LayerName::Frames))
    );
    let slow = Planted { frames: frames(FRAMES, FRAMES), ..Planted::full(UDP / 2.0, TCP / 2.0) }.ladder();
    assert_eq!(slow.widest_gap.as_ref().map(|gap| (gap.below, gap.above)), Some((LayerName::Frames, LayerName::Udp)));
}

/// A port that gives less than sockets do, or less than the line without any loss, says nothing of the path.
#[test]
fn what_the_testers_ports_lack_is_no_gap() {
    for (sent, received) in [(FRAMES / 3, FRAMES / 3), (FRAMES, FRAMES / 3)] {
        let ladder = Planted { frames: frames(sent, received), ..Planted::full(UDP, TCP) }.ladder();
        let raw = layer(&ladder, LayerName::Frames);
        assert_eq!(raw.verdict.as_ref().map(|verdict| verdict.limit), Some(LimitedBy::Tester));
        close(raw.share_of_line.expect("the line is known"), 1.0 / 3.0);
        assert_eq!(layer(&ladder, LayerName::Udp).below, Some(LayerName::Limit), "it stands on the line");
        assert_eq!(ladder.widest_gap, None);
    }
}

#[test]
fn trials_of_frames_that_were_held_up_are_excluded() {
    let mut held_up = frames(FRAMES, FRAMES / 2);
    for trial in &mut held_up {
        let stream = &mut streams_of(trial)[0];
        (stream.sent, stream.held_up) = (FRAMES / 2, Nanos::from_millis(500));
    }
    let ladder = Planted { frames: held_up, ..Planted::full(UDP, TCP) }.ladder();
    let why = layer(&ladder, LayerName::Frames).missing.as_ref().expect("none was sound");
    assert!(why.contains("held up"), "{why}");
}

#[test]
fn frames_are_sent_and_timed_as_often_as_the_plan_repeats_and_not_where_they_cannot_be() {
    let full = &frames(FRAMES, FRAMES)[0];
    let mut record = Planted::full(UDP, TCP).measured();
    let cells = record.trials.clone();
    record.plan = plan(&LadderRequest { frames: Planned::Trial(Box::new(full.trial.clone())), ..request() });
    let mut order = Vec::new();
    while let Some(trial) = next(&record).filter(|trial| matches!(trial.task(), Task::Frames(_))) {
        order.push(trial.name.clone());
        record.trials.push(TrialResult { trial, ..full.clone() });
    }
    assert_eq!(order, ["frames 1518", "echo of frames"].repeat(3));
    let untimed = |echo: TrialResult| {
        let trials = cells.iter().cloned().chain([full.clone(), echo]).collect();
        replayed(Record { trials, ..record.clone() })
    };
    let echoes = record.plan.ladder().and_then(|plan| plan.echoes.clone()).expect("echoes");
    let mut unanswered = TrialResult { trial: echoes.clone(), ..full.clone() };
    streams_of(&mut unanswered)[0].received = 0;
    for (echo, why) in [(TrialResult::failed(echoes, 0, "barred"), "barred"), (unanswered, "answers no echo requests")]
    {
        let record = untimed(echo);
        assert_eq!(next(&record).map(|trial| trial.name), Some(full.trial.name.clone()), "untimed");
        assert!(record.caveats.iter().any(|doubt| doubt.text.ends_with(why)), "{:?}", record.caveats);
        assert_eq!(layer(record.ladder().expect("a ladder"), LayerName::Frames).latency_ns, None);
    }
    let barred = TrialResult::failed(full.trial.clone(), 0, "refused");
    let without = untimed(barred);
    assert_eq!(next(&without).map(|trial| trial.name).as_deref(), Some("copy"));
    let missing = |record: &Record| layer(record.ladder().expect("a ladder"), LayerName::Frames).missing.clone();
    assert_eq!(missing(&without).as_deref(), Some("refused"));
    assert_eq!(next(&Planted::full(UDP, TCP).measured()).map(|trial| trial.name).as_deref(), Some("copy"));
}

/// Only the sending port has a part in it, and nothing of it is in the layer's rate.
#[test]
fn frames_are_timed_there_and_back_by_one_port() {
    let mut trials = frames(FRAMES, FRAMES);
    let echoes = super::frames::echoes(&trials[0].trial).expect("a stream");
    let task = frames_of(&echoes);
    let [stream] = &task.streams[..] else { panic!("{echoes:?}") };
    assert_eq!((&task.ports[..], stream.from, stream.to), (&["a:eth0".into()][..], 0, 0));
    assert_eq!((stream.headers.payload, stream.size.get()), (FramePayload::Echo, 64));
    // A tenth of the line is 148,809 a second.
    assert_eq!(stream.rate, Some(FrameRate::per_second(10_000)));
    let mut slow = frames_of(&trials[0].trial).clone();
    slow.streams[0].rate = Some(FrameRate::per_second(812));
    let slow = Trial::new("slow", Task::Frames(slow), Timing::UntilDone);
    let slow = super::frames::echoes(&slow).expect("a stream");
    assert_eq!(frames_of(&slow).streams[0].rate, Some(FrameRate::per_second(812 * 1538 / 84 / 10)));
    assert_eq!(stream.headers.destination, frames_of(&trials[0].trial).streams[0].headers.destination);
    let mut timed = TrialResult { trial: echoes.clone(), ..trials[0].clone() };
    let counts = &mut streams_of(&mut timed)[0];
    counts.received = 1_000;
    counts.latency.record_many(12_000, 500);
    counts.latency.record_many(40_000, 500);
    trials.extend([timed.clone(), timed]);
    let ladder = Planted { frames: trials, ..Planted::full(UDP, TCP) }.ladder();
    let raw = layer(&ladder, LayerName::Frames);
    close(raw.share_of_line.expect("the line is known"), 1.0);
    let LayerLatency { p50, p99, count } = raw.latency_ns.expect("it was timed");
    assert_eq!(count, 2_000);
    assert!((11_900..=12_100).contains(&p50) && (39_700..=40_300).contains(&p99), "{p50} {p99}");
}

/// NFS stands on RPC, and its layers have what file data their calls moved.
#[test]
fn nfs_stands_on_rpc() {
    let ladder = Planted::full(UDP, TCP).ladder();
    let names: Vec<LayerName> = ladder.layers.iter().rev().map(|layer| layer.name).take(3).collect();
    assert_eq!(names, [LayerName::Copy, LayerName::NfsWrite, LayerName::NfsRead]);
    let read = ladder.layers.iter().find(|layer| layer.name == LayerName::NfsRead).expect("a layer");
    assert_eq!(read.below, Some(LayerName::Rpc));
    assert!((read.share_of_layer_below.expect("RPC was measured") - 1.0).abs() < 1e-3);
    assert_eq!((read.results.as_slice(), read.latency_ns), (["nfs tcp read".to_owned()].as_slice(), None));
}

/// TCP says how large the tree is; the copies are as many as the plan has repeats, and their median is the layer's figure.
#[test]
fn calls_over_udp_stand_on_udp_and_not_on_tcp() {
    // TCP gets half of what UDP and the calls do: with calls over TCP they would seem to rise.
    let planted = Planted { tcp: [400e6; 3], ..Planted::full(950e6, 950e6) };
    let record = planted.measured_over(Transport::Udp);
    let ladder = record.ladder().expect("a ladder");
    let below = |name| layer(ladder, name).below;
    assert_eq!(below(LayerName::Tcp), Some(LayerName::Udp));
    assert_eq!(below(LayerName::Rpc), Some(LayerName::Udp));
    assert_eq!(below(LayerName::NfsRead), Some(LayerName::Rpc));
    assert_eq!(layer(ladder, LayerName::Rpc).results, ["rpc udp write 8192", "rpc udp null"]);
    let nets = record.plan.cells().iter().filter(|cell| matches!(cell.task(), Task::Rpc(_) | Task::Nfs(_)));
    assert!(nets.filter_map(|cell| cell.net()).all(|net| net.transport == Transport::Udp));
    assert_eq!(named(ladder).map(|(below, above, _)| (below, above)), Some((LayerName::Udp, LayerName::Tcp)));
    // A record of an earlier version has no such field.
    let mut plan = serde_json::to_value(&planted.measured().plan).expect("JSON");
    assert!(!plan.to_string().contains("calls_over"));
    plan = serde_json::to_value(&record.plan).expect("JSON");
    assert!(plan.to_string().contains("\"calls_over\":\"udp\""));
}

#[test]
fn a_copy_stands_on_top_sized_by_what_tcp_carries() {
    let mut record = Planted::full(UDP, TCP).measured();
    let copy = next(&record).expect("a copy");
    let Task::Copy(task) = copy.task() else { panic!("{copy:?}") };
    let linerate_model::CopyTree::Made(tree) = &task.tree else { panic!("made") };
    assert_eq!(tree.bytes.get(), (TCP / 8.0) as u64, "a second's worth");
    assert!(tree.files >= 100 && task.sources[0].0 == "a" && task.destinations[0].0 == "b", "{copy:?}");
    let copied = |seconds, complete| {
        let time = Nanos::from_secs(seconds);
        let side = CopySide { time, bytes: 120_000_000, complete, ..CopySide::default() };
        let part = |host: &str| vec![part(host, vec![side.clone()])];
        made(&copy, CopyParts { sources: part("a"), destinations: part("b"), servers: Vec::new() })
    };
    for seconds in [2, 4, 3] {
        assert_eq!(next(&record).as_ref(), Some(&copy));
        record.trials.push(copied(seconds, true));
    }
    assert_eq!(next(&record), None, "three are enough");
    let record = replayed(record);
    let top = record.ladder().and_then(|ladder| ladder.layers.last()).expect("layers");
    assert_eq!((top.name, top.below), (LayerName::Copy, Some(LayerName::NfsWrite)), "{top:?}");
    assert_eq!(top.payload_bps.as_ref().map(|runs| (runs.median, runs.runs)), Some((120e6 * 8.0 / 3.0, 3)));
    assert!(record.copies().next().is_none(), "its figures stand in its layer");
    for (last, why) in [
        (TrialResult::failed(copy.clone(), 0, "no folder"), "no folder"),
        (copied(2, false), "it did not come to its end"),
    ] {
        let mut without = record.clone();
        without.trials.push(last);
        assert_eq!(next(&without), None);
        let without = replayed(without);
        assert_eq!(layer(without.ladder().expect("a ladder"), LayerName::Copy).missing.as_deref(), Some(why));
    }
    // Without TCP there is no size.
    let mut untold = Planted::full(UDP, TCP).measured();
    untold.trials.iter_mut().filter(|run| run.trial.name == "tcp").for_each(|run| {
        *run = TrialResult::failed(run.trial.clone(), 0, "refused");
    });
    assert_eq!(next(&untold), None);
    let untold = replayed(untold);
    let missing = layer(untold.ladder().expect("a ladder"), LayerName::Copy).missing.clone();
    assert!(missing.is_some_and(|why| why.contains("what TCP carries")));
}
