//! Each rule of copies against facts that are made up for it, and what the whole makes of them.

use super::super::facts::{CopyEnd, CopyFacts, ServerEnd, ServerLoad, Tcp};
use super::super::of_copy;
use linerate_model::{Confidence, CopyStage, Limit, StageShare, Support, Verdict, WorkShare};
use linerate_units::BitRate;
use std::collections::BTreeMap;

fn share(busy: f64, cpu: f64, waiting_for_next: f64) -> StageShare {
    let waiting_for_previous = 1.0 - busy - waiting_for_next;
    let busiest = WorkShare { busy, cpu, queued: 0.0 };
    StageShare { busy, waiting_for_previous, waiting_for_next, cpu, queued: 0.0, busiest, threads: 2 }
}

/// A copy from files to files over a path of unknown speed, in which all stages wait for each other.
fn facts() -> CopyFacts {
    CopyFacts {
        window: super::well_observed(),
        reads: true,
        writes: true,
        server: None,
        server_load: None,
        crosses: true,
        in_turn: false,
        reads_back: false,
        syncs_each: false,
        stages: CopyStage::ALL.into_iter().map(|stage| (stage, share(0.3, 0.2, 0.3))).collect(),
        source: CopyEnd::default(),
        destination: CopyEnd::default(),
        line: None,
        bus: None,
        tcp: None,
        outage: 0.0,
        steal: 0.0,
    }
}

fn with(stages: &[(CopyStage, StageShare)]) -> CopyFacts {
    let mut all: BTreeMap<_, _> = facts().stages;
    all.extend(stages.iter().copied());
    CopyFacts { stages: all, ..facts() }
}

#[track_caller]
fn is(facts: &CopyFacts, limit: Limit, confidence: Confidence) -> Verdict {
    let said = of_copy(facts);
    assert_eq!((said.limit, said.confidence), (limit, confidence), "{said:#?}");
    said
}

#[test]
fn what_is_busy_without_a_core_waits_for_storage_and_what_has_one_for_the_processor() {
    let (blocked, busy) = (share(0.97, 0.03, 0.0), share(0.97, 0.95, 0.0));
    is(&with(&[(CopyStage::Read, blocked)]), Limit::StorageRead, Confidence::High);
    is(&with(&[(CopyStage::Open, blocked)]), Limit::StorageRead, Confidence::High);
    is(&with(&[(CopyStage::Create, blocked)]), Limit::StorageWrite, Confidence::High);
    is(&with(&[(CopyStage::Write, blocked)]), Limit::StorageWrite, Confidence::High);
    is(&with(&[(CopyStage::Read, busy)]), Limit::SenderCpu, Confidence::High);
    is(&with(&[(CopyStage::Verify, busy)]), Limit::ReceiverCpu, Confidence::High);
    is(&facts(), Limit::CannotTell, Confidence::Low);
}

/// One thread reads and writes: no stage of its is busy all the time, whatever holds it up.
#[test]
fn what_one_thread_does_in_turn_adds_up() {
    let disk = [CopyStage::Open, CopyStage::Read].map(|stage| (stage, share(0.48, 0.01, 0.0)));
    let others = [CopyStage::Hash, CopyStage::Verify, CopyStage::Create, CopyStage::Write, CopyStage::Sync];
    let idle = others.map(|stage| (stage, share(0.01, 0.0, 0.0)));
    let waits = with(&[&disk[..], &idle].concat());
    assert_ne!(of_copy(&waits).limit, Limit::StorageRead);
    let in_turn = |facts: CopyFacts| CopyFacts { in_turn: true, crosses: false, ..facts };
    is(&in_turn(waits), Limit::StorageRead, Confidence::High);
    let works = CopyStage::ALL.map(|stage| (stage, share(0.0, 0.0, 0.0)));
    let busy = [(CopyStage::Read, 0.2), (CopyStage::Hash, 0.2), (CopyStage::Write, 0.4), (CopyStage::Verify, 0.18)];
    let busy = busy.map(|(stage, cpu)| (stage, share(cpu, cpu, 0.0)));
    is(&in_turn(with(&[&works[..], &busy].concat())), Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn what_waits_for_a_core_waits_for_no_disk() {
    let busiest = WorkShare { busy: 0.97, cpu: 0.36, queued: 0.6 };
    let crowded = StageShare { busiest, ..share(0.97, 0.36, 0.0) };
    is(&with(&[(CopyStage::Write, crowded)]), Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn the_lane_that_ends_last_counts_and_not_those_that_wait_for_it() {
    let one_of_two = StageShare { busiest: share(0.97, 0.02, 0.0).busiest, ..share(0.5, 0.01, 0.0) };
    is(&with(&[(CopyStage::Write, one_of_two)]), Limit::StorageWrite, Confidence::High);
}

#[test]
fn to_make_durable_at_the_end_adds_to_what_was_written() {
    let stages = [(CopyStage::Write, share(0.5, 0.02, 0.0)), (CopyStage::Sync, share(0.46, 0.0, 0.0))];
    is(&with(&stages), Limit::StorageWrite, Confidence::High);
    // Of each file it goes on beside the writing.
    let each = CopyFacts { syncs_each: true, ..with(&stages) };
    assert_ne!(of_copy(&each).limit, Limit::StorageWrite);
}

#[test]
fn what_the_disk_and_those_who_wait_for_it_show_is_said() {
    let disk = Some((String::from("vda"), 0.93));
    let blocked = [(CopyStage::Read, share(0.97, 0.03, 0.0))];
    let source = CopyEnd { disk, stalled: Some(0.88), ..CopyEnd::default() };
    let said = is(&CopyFacts { source, ..with(&blocked) }, Limit::StorageRead, Confidence::High);
    assert!(
        said.evidence[0].contains("vda was busy for 93 %. At least one task of that host waited for storage for 88 %")
    );
}

#[test]
fn an_end_that_has_no_storage_is_not_blamed() {
    let blocked = [(CopyStage::Read, share(0.97, 0.03, 0.0)), (CopyStage::Write, share(0.97, 0.03, 0.0))];
    let from_memory = CopyFacts { reads: false, ..with(&blocked) };
    let said = is(&from_memory, Limit::StorageWrite, Confidence::High);
    assert!(said.weighed.iter().all(|weighed| weighed.limit != Limit::StorageRead), "{said:#?}");
    let to_nowhere = CopyFacts { writes: false, ..with(&blocked) };
    is(&to_nowhere, Limit::StorageRead, Confidence::High);
    let both = CopyFacts { reads: false, writes: false, ..with(&blocked) };
    is(&both, Limit::CannotTell, Confidence::Low);
}

#[test]
fn a_quota_stops_threads_that_look_as_if_they_waited_for_storage() {
    let throttled = CopyEnd { throttled: Some((0.98, 0.1)), ..CopyEnd::default() };
    let stages = [(CopyStage::Read, share(0.97, 0.05, 0.0))];
    let said = is(&CopyFacts { source: throttled.clone(), ..with(&stages) }, Limit::SenderCpu, Confidence::High);
    assert!(said.weighed.iter().any(|w| (w.limit, w.support) == (Limit::StorageRead, Support::Unknown)), "{said:#?}");
    let stages = [(CopyStage::Send, share(0.97, 0.02, 0.0)), (CopyStage::Receive, share(0.05, 0.05, 0.0))];
    is(&CopyFacts { destination: throttled, ..with(&stages) }, Limit::ReceiverCpu, Confidence::High);
}

#[test]
fn data_that_waits_to_be_sent_while_none_arrives_is_held_up_on_the_path() {
    let stages = [(CopyStage::Send, share(0.98, 0.04, 0.0)), (CopyStage::Receive, share(0.04, 0.03, 0.0))];
    let held = with(&stages);
    is(&held, Limit::Shaper, Confidence::Medium);
    let line = |share| CopyFacts { line: Some((BitRate::per_second(100_000_000), share)), ..held.clone() };
    is(&line(0.97), Limit::Wire, Confidence::High);
    is(&line(0.4), Limit::Shaper, Confidence::Medium);
    // A destination that does not take what has come is no path.
    let slow = [(CopyStage::Send, share(0.98, 0.04, 0.0)), (CopyStage::Receive, share(0.04, 0.03, 0.96))];
    is(&with(&slow), Limit::CannotTell, Confidence::Low);
    is(&CopyFacts { crosses: false, ..held }, Limit::CannotTell, Confidence::Low);
}

/// What TCP says of the connections tells what it is on the path that holds the data up.
#[test]
fn what_holds_data_up_on_the_path_is_told_by_tcp() {
    let stages = [(CopyStage::Send, share(0.98, 0.04, 0.0)), (CopyStage::Receive, share(0.04, 0.03, 0.0))];
    let calm = Tcp {
        congestion: String::from("cubic"),
        rtt: 0.02,
        min_rtt: 0.02,
        segment_bits: 11_584.0,
        flow_bps: 7.1e6,
        ..Tcp::default()
    };
    let over = |tcp: &Tcp| CopyFacts { tcp: Some(tcp.clone()), ..with(&stages) };
    let queue = Tcp { min_rtt: 0.000_1, flow_bps: 50e6, ..calm.clone() };
    is(&over(&queue), Limit::Shaper, Confidence::High);
    is(&over(&Tcp { retransmitted: 0.01, ..queue.clone() }), Limit::Shaper, Confidence::Medium);
    is(&over(&Tcp { window_limited: 0.9, ..calm.clone() }), Limit::Window, Confidence::High);
    is(&over(&Tcp { buffer_limited: 0.4, ..calm.clone() }), Limit::SendBuffer, Confidence::Medium);
    // 7.1 Mbit/s over 20 ms are 17,750 bytes in flight.
    is(
        &over(&Tcp { peer_window: 18_000.0, congestion: "bbr".into(), ..calm.clone() }),
        Limit::Window,
        Confidence::High,
    );
    // Neither a queue nor a loss: a copy over a long round trip ends before TCP has met the path's limit.
    let long = over(&Tcp { peer_window: 36_000.0, congestion: "bbr".into(), ..calm.clone() });
    is(&long, Limit::CannotTell, Confidence::Low);
    // A share of losses that would allow far more: by chance, and the copy is too short, or by a policer.
    let lossy = over(&Tcp {
        retransmitted: 0.01,
        retransmits: 20.0,
        rtt: 0.006,
        min_rtt: 0.006,
        flow_bps: 2e6,
        ..calm.clone()
    });
    assert_ne!(of_copy(&lossy).limit, Limit::Shaper);
    // At 1 % and 20 ms TCP has 12.2 segments in flight: see the test of streams.
    let lossy = Tcp { retransmitted: 0.01, retransmits: 60.0, ..calm };
    is(&over(&lossy), Limit::PathLoss, Confidence::Medium);
    // A queue says nothing where a destination does not take what has come.
    let slow = [(CopyStage::Send, share(0.98, 0.04, 0.0)), (CopyStage::Receive, share(0.04, 0.03, 0.96))];
    is(&CopyFacts { tcp: Some(queue.clone()), ..with(&slow) }, Limit::CannotTell, Confidence::Low);
    // Nor where a host is stopped by its quota.
    let throttled = CopyEnd { throttled: Some((0.98, 0.1)), ..CopyEnd::default() };
    is(&CopyFacts { source: throttled, ..over(&queue) }, Limit::SenderCpu, Confidence::High);
}

#[test]
fn who_waits_for_a_file_server_is_not_limited_by_storage_of_its_own_and_never_surely() {
    let waits = [(CopyStage::Write, share(0.98, 0.05, 0.0)), (CopyStage::Create, share(0.3, 0.1, 0.6))];
    let written = CopyFacts { writes: false, server: Some(ServerEnd::Written), ..with(&waits) };
    let said = is(&written, Limit::Server, Confidence::Medium);
    assert!(said.weighed.iter().all(|one| one.limit != Limit::StorageWrite), "{said:#?}");
    let waits = [(CopyStage::Read, share(0.98, 0.05, 0.0))];
    is(&CopyFacts { reads: false, server: Some(ServerEnd::Read), ..with(&waits) }, Limit::Server, Confidence::Medium);
}

/// Who waits for a server does not know why: its agent does, if its disk or a core was full.
#[test]
fn a_server_whose_agent_saw_its_disk_or_a_core_full_is_named_surely() {
    let waits = [(CopyStage::Write, share(0.98, 0.05, 0.0))];
    let disk = |busy| Some((String::from("sda"), busy));
    let idle = ServerLoad { disk: disk(0.3), core: Some(0.2), shared: false };
    let written = |load: &ServerLoad| CopyFacts {
        writes: false,
        server: Some(ServerEnd::Written),
        server_load: Some(load.clone()),
        ..with(&waits)
    };
    let full = ServerLoad { disk: disk(0.97), ..idle.clone() };
    let said = is(&written(&full), Limit::Server, Confidence::High);
    assert!(said.evidence[0].contains("its disk sda was busy for 97 %"), "{said:#?}");
    is(&written(&ServerLoad { core: Some(0.95), ..idle.clone() }), Limit::Server, Confidence::High);
    is(&written(&idle), Limit::Server, Confidence::Medium);
    // What is counted on a client's machine may be the client's own work.
    let said = is(&written(&ServerLoad { shared: true, ..full.clone() }), Limit::Server, Confidence::Medium);
    assert!(said.evidence[0].contains("shares its machine with a client"), "{said:#?}");
    // A full disk that nobody waits for limits nothing.
    is(&CopyFacts { stages: facts().stages, ..written(&full) }, Limit::CannotTell, Confidence::Low);
}
