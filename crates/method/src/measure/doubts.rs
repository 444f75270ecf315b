//! The doubts about a result.

use super::path::PathFacts;
use super::{main_figure, nfs};
use crate::loaded_latency::doubts;
use crate::transfer::transfers;
use crate::validity::{off_window, shortfall, spoilt};
use linerate_model::{
    Caveat, CaveatKind, Direction, Measurement, Nic, ProbeResult, ReceiveBy, Repeats, Transport, TrialResult,
    TrialSpec, Workload, WorkloadKind, ip_packets,
};

/// Runs that differ by more than this share of their median cannot carry a decision.
const SPREAD_BEARABLE: f64 = 0.1;
/// A share of the limit above this is more than the clocks' error.
const ABOVE_LIMIT: f64 = 1.005;
/// Below this busy share of the busiest core, cores halt between requests and waking them is in every latency.
const AWAKE: f64 = 0.9;

/// The doubts about a result: those of its trials, each kind once, and those that only the whole shows.
pub(super) fn caveats(
    result: &Measurement,
    cell: &TrialSpec,
    repeats: &Repeats,
    path: &PathFacts<'_>,
    runs: &[&TrialResult],
) -> Vec<Caveat> {
    let mut found: Vec<Caveat> = runs.iter().flat_map(|run| run.caveats.clone()).collect();
    found.extend(runs.iter().filter_map(|run| spoilt(run)));
    found.extend(runs.iter().find_map(|run| shortfall(run)));
    found.extend(runs.iter().find_map(|run| off_window(run)));
    found.extend(result.loaded_latency.iter().flat_map(|probed| doubts(probed, runs)));
    found.extend(nfs::doubts(runs));
    let mut add = |kind, text: &str| found.push(Caveat::new(kind, text));

    if path.shared_machine {
        add(
            CaveatKind::SharedMachine,
            "both ends ran on one machine and shared its cores: two machines may reach more; CPU use of the whole host is \
             that of both ends",
        );
    }
    let made_up = |nic: &&&Nic| nic.speed.is_none() && !nic.driver.is_empty();
    if let Some(nic) = path.nics.iter().find(made_up) {
        let joins = match &cell.workload {
            Workload::Stream(stream) => match stream.transport {
                Transport::Udp => stream.offload && result.sent.as_ref().is_some_and(|s| s.means.contains("SEGMENT")),
                Transport::Tcp => nic.offloads.get("tx-tcp-segmentation").copied().unwrap_or(false),
            },
            Workload::Transact(_) | Workload::Rpc(_) | Workload::Nfs(_) => false,
        };
        if joins {
            let text = format!(
                "interface {} ({}) passes joined segments on whole and never cuts them into packets: the rate is one of memory, not \
                 of packets on a wire; give the lab link a rate (--link) or measure with --no-offload",
                nic.name, nic.driver
            );
            add(CaveatKind::OffloadNotOnWire, &text);
        }
    }
    if path.line.is_none() && result.received.is_some() && result.workload != WorkloadKind::Nfs {
        add(
            CaveatKind::UnknownLinkSpeed,
            "no link speed is known on this path, so no share of it can be given; tell the agents with --link-speed \
             IF=RATE",
        );
    }
    if result.limit.as_ref().is_some_and(|limit| limit.share > ABOVE_LIMIT) {
        add(
            CaveatKind::AboveLimit,
            "more was delivered in the window than the line carries in that time: data that had waited for a retransmission \
             before the window was delivered within it, or a lab's link made up for a rest before it; measure longer (--time)",
        );
    }
    match &cell.workload {
        Workload::Stream(stream) if stream.receive_by == ReceiveBy::Discard => add(
            CaveatKind::Discarded,
            "the receiver let the kernel throw its data away uncopied: a program that uses its data gets less",
        ),
        Workload::Transact(transact) if !transact.busy_poll && result.cpu.receiver.busiest_core < AWAKE => add(
            CaveatKind::IdleWakeup,
            "cores slept between requests, so the time to wake them is in every latency; compare only with runs made the \
             same way, or measure with --busy-poll",
        ),
        _ => {}
    }
    if let Some(figure) = main_figure(result) {
        if figure.spread() > SPREAD_BEARABLE {
            let text = format!(
                "the runs differ by {:.0} % of their median: ask for more (--repeats, or --confidence 95 --within 2.5%) or \
                 longer ones (--time)",
                figure.spread() * 100.0
            );
            add(CaveatKind::WideSpread, &text);
        }
        if figure.runs < 3 {
            let text = format!(
                "{} only: nothing is known of the spread; three runs or more tell",
                if figure.runs == 1 { "one run" } else { "two runs" }
            );
            add(CaveatKind::FewRuns, &text);
        }
        if let crate::repeat::Need::Exhausted(width) = crate::repeat::need(repeats, &figure.values) {
            let text = format!(
                "after {} runs the mean is known to +-{:.1} % only, not as narrowly as asked; ask for longer runs (--time)",
                figure.runs,
                width * 100.0
            );
            add(CaveatKind::NotConverged, &text);
        }
    }
    if let Some(direction) = result.direction
        && direction != Direction::Both
        && other_traffic(cell, path.mtu, runs)
    {
        let text = "other traffic crossed the receiving interface during the window: the path was shared, and its capacity \
                    with it; measure when it is quiet";
        found.push(Caveat::new(CaveatKind::OtherTraffic, text));
    }
    found.sort();
    found.dedup_by_key(|caveat| caveat.kind);
    found
}

/// A UDP stream of one datagram a packet accounts for every packet its receiver's interface should have seen.
fn other_traffic(cell: &TrialSpec, mtu: u32, runs: &[&TrialResult]) -> bool {
    let Workload::Stream(stream) = &cell.workload else { return false };
    if stream.transport != Transport::Udp || stream.offload || cell.paths.len() > 1 {
        return false;
    }
    runs.iter().any(|run| {
        let asked = |probe: &ProbeResult| probe.loaded.iter().map(|asked| asked.completed + asked.failed).sum::<u64>();
        let probes = run.probe.as_ref().map_or(0, asked);
        transfers(run).iter().any(|transfer| {
            let counters = run.hosts.get(transfer.to).and_then(|observation| {
                observation.interfaces.iter().find(|i| Some(&i.name) == transfer.receiver.interface.as_ref())
            });
            let sent = transfer.sender.sent.as_ref().map_or(0, |sent| sent.messages);
            let fragments = ip_packets(stream.transport, stream.ip, stream.message_bytes.get(), mtu).len() as u64;
            counters.is_some_and(|counters| counters.rx_packets > sent * fragments * 11 / 10 + probes + 1_000)
        })
    })
}
