//! The doubts about a result.

use super::path::PathFacts;
use crate::context::Context;
use crate::hops;
use crate::loaded_latency::{doubts, probe_share, probes_beside};
use crate::repeat::{Need, need};
use crate::transfer::transfers;
use crate::validity::{
    dscp_changed, few_packets, few_round_trips, not_all_sent, off_window, shortfall, smaller_segments, stolen,
    window_edges,
};
use crate::within_window::unsteady;
use linerate_model::{
    Caveat, CaveatKind, Direction, Measurement, Message, MessageValue, Nic, ReceiveBy, Task, TaskKind, Transport,
    Trial, TrialResult, ip_packets, message,
};

/// Runs that differ by more than this share of their median cannot carry a decision.
const SPREAD_BEARABLE: f64 = 0.1;
/// A share of the limit above this is more than the clocks' error.
const ABOVE_LIMIT: f64 = 1.005;
/// Every path of IPv6 carries packets of this size (RFC 8200 section 5), and hardly any of IPv4 does not.
const MINIMUM_MTU: u32 = 1280;
/// Below this busy share of the busiest core, cores halt between requests and waking them is in every latency.
const AWAKE: f64 = 0.9;

/// The doubts about a result: those of its trials, each kind once, and those that only the whole shows.
pub(super) fn caveats(
    result: &Measurement,
    cell: &Trial,
    path: &PathFacts<'_>,
    runs: &[&TrialResult],
    with: &Context<'_>,
) -> Vec<Caveat> {
    let mut found: Vec<Caveat> = runs.iter().flat_map(|run| run.caveats.clone()).collect();
    found.extend(runs.iter().filter_map(|run| stolen(run)));
    found.extend(runs.iter().find_map(|run| shortfall(run)));
    found.extend(runs.iter().find_map(|run| off_window(run)));
    found.extend(runs.iter().find_map(|run| window_edges(run)));
    found.extend(runs.iter().find_map(|run| not_all_sent(run)));
    found.extend(runs.iter().find_map(|run| few_round_trips(run)));
    found.extend(runs.iter().find_map(|run| few_packets(run)));
    found.extend(runs.iter().find_map(|run| dscp_changed(run)));
    found.extend(in_fragments(cell, path.mtu, runs));
    found.extend(runs.iter().find_map(|run| unsteady(run)));
    found.extend(result.loaded_latency().into_iter().flat_map(|probed| doubts(probed, runs, with.idle)));
    if let (Some(flows), Some(received)) = (result.flows(), result.received())
        && let Some(wire_bps) = &received.wire_bps
    {
        found.extend(probe_share(flows.ip, wire_bps.median, runs));
        found.extend(hops::probe_share(&flows.ways, wire_bps.median));
    }
    if let Some(flows) = result.flows() {
        found.extend(hops::caveats(&flows.ways));
    }
    found.extend(runs.iter().find_map(|run| smaller_segments(run)));
    found.extend(runs.iter().find_map(|run| flow_ended(run)));
    let mut add = |kind, text: Message| found.push(Caveat::new(kind, text));

    if path.shared_machine {
        add(
            CaveatKind::SharedMachine,
            message!(
                "caveat-shared-machine",
                "both ends ran on one machine and shared its cores: two machines may reach more; CPU use of the \
                 whole host is that of both ends"
            ),
        );
    }
    let made_up = |nic: &&&Nic| nic.speed.is_none() && !nic.driver.is_empty();
    if let Some(nic) = path.nics.iter().find(made_up) {
        let joins = match cell.task() {
            Task::Stream(stream) => match stream.net.transport {
                Transport::Udp => stream.offload && result.sent().is_some_and(|s| s.io_method.contains("SEGMENT")),
                Transport::Tcp => nic.offloads.get("tx-tcp-segmentation").copied().unwrap_or(false),
            },
            _ => false,
        };
        if joins {
            let text = message!(
                "caveat-offload-not-on-wire",
                "interface {interface} ({driver}) passes joined segments on whole and never cuts them into \
                 packets: the rate is one of memory, not of packets on a wire; give the lab link a rate (--link) \
                 or measure with --no-offload",
                interface = &nic.name,
                driver = &nic.driver
            );
            add(CaveatKind::OffloadNotOnWire, text);
        }
    }
    if path.line.is_none() && result.received().is_some() && result.task() != TaskKind::Nfs {
        add(
            CaveatKind::UnknownLinkSpeed,
            message!(
                "caveat-unknown-link-speed",
                "no link speed is known on this path, so no share of it can be given; tell the agents with \
                 --link-speed IF=RATE"
            ),
        );
    }
    if let Some(limit) = result.limit().filter(|limit| limit.share > ABOVE_LIMIT) {
        let text = match cell.volume() {
            None if limit.is_declared_too_slow() => message!(
                "caveat-above-declared-speed",
                "more was delivered than a line of {line} can carry: the declared speed of an interface is wrong; tell \
                 the agents the real one with --link-speed IF=RATE",
                line = limit.line_bps
            ),
            None => message!(
                "caveat-above-limit",
                "more was delivered in the window than the line carries in that time: data held up before it, as for \
                 a retransmission, arrived within it; measure longer (--time)"
            ),
            Some(_) => message!(
                "caveat-above-limit-of-volume",
                "more was delivered than the line carries in that time: the path was idle before, and a rate limiter \
                 may have let a burst through; send more (--bytes)"
            ),
        };
        add(CaveatKind::AboveLimit, text);
    }
    let receiver_sleeps = result.flows().is_some_and(|flows| flows.cpu.receiver.busiest_core < AWAKE);
    match cell.task() {
        Task::Stream(stream) if stream.receive_by == ReceiveBy::Discard => add(
            CaveatKind::Discarded,
            message!(
                "caveat-discarded",
                "the receiver let the kernel throw its data away uncopied: a program that uses its data gets less"
            ),
        ),
        Task::Transact(transact) if !transact.busy_poll && receiver_sleeps => add(
            CaveatKind::IdleWakeup,
            message!(
                "caveat-idle-wakeup",
                "cores slept between requests, so the time to wake them is in every latency; compare only with \
                 runs made the same way, or measure with --busy-poll"
            ),
        ),
        _ => {}
    }
    if let Task::Stream(stream) = cell.task()
        && let Some(path) = stream.paths.iter().find(|path| path.server.agent().is_none())
    {
        let text = message!(
            "caveat-one-sided",
            "{server} runs no agent: it reported its own counts over its own window, and its host was not \
             watched, so the verdict rests on one end; run `linerate serve` there to see both",
            server = path.server.name()
        );
        add(CaveatKind::OneSided, text);
    }
    if result.main.spread() > SPREAD_BEARABLE {
        let text = message!(
            "caveat-wide-spread",
            "the runs differ by {spread} of their median: ask for more (--repeats, or --confidence 95 --within \
             2.5%) or longer ones (--time)",
            spread = MessageValue::percent(result.main.spread(), 0)
        );
        add(CaveatKind::WideSpread, text);
    }
    if result.main.runs < 3 {
        let text = match result.main.runs {
            1 => message!("caveat-one-run", "one run only: too few to know the spread; make three runs or more"),
            _ => message!("caveat-two-runs", "two runs only: too few to know the spread; make three runs or more"),
        };
        add(CaveatKind::FewRuns, text);
    }
    if let Need::Exhausted(width) = need(&with.repeats, &result.main.values) {
        let text = message!(
            "caveat-not-converged",
            "after {runs} runs the mean is known to +-{width} only, not as narrowly as asked; ask for longer runs \
             (--time)",
            runs = result.main.runs,
            width = MessageValue::percent(width, 1)
        );
        add(CaveatKind::NotConverged, text);
    }
    if result.stream().is_some_and(|stream| stream.direction != Direction::Both) && other_traffic(cell, path.mtu, runs)
    {
        let text = message!(
            "caveat-other-traffic",
            "other traffic crossed the receiving interface during the window: the path was shared, and its \
             capacity with it; measure when it is quiet"
        );
        found.push(Caveat::new(CaveatKind::OtherTraffic, text));
    }
    found.sort();
    found.dedup_by_key(|caveat| caveat.kind);
    found
}

/// Datagrams of a stream that left in fragments, in words.
fn in_fragments(cell: &Trial, mtu: u32, runs: &[&TrialResult]) -> Option<Caveat> {
    let Task::Stream(stream) = cell.task() else { return None };
    let ends = runs.iter().flat_map(|run| transfers(run));
    let count = ends.filter_map(|transfer| transfer.sender.sent.as_ref()).map(|sent| sent.fragments).max()?;
    let size = stream.message_bytes.get();
    // A sender may know of a smaller MTU on the path than its interface has.
    let fits = [mtu, MINIMUM_MTU].map(|mtu| stream.net.ip.datagram_within(mtu));
    let fits = fits.into_iter().find(|fits| *fits < size)?;
    (count > 1).then(|| {
        let text = message!(
            "caveat-fragments",
            "each datagram of {size} bytes left in {count} fragments, and the loss of one fragment loses all of it; {fits} \
             bytes or fewer fit into one packet (--size)",
            size = MessageValue::Count(size),
            count = MessageValue::Count(count),
            fits = MessageValue::Count(fits)
        );
        Caveat::new(CaveatKind::Fragments, text)
    })
}

/// A UDP stream of one datagram a packet accounts for every packet its receiver's interface should have seen.
fn other_traffic(cell: &Trial, mtu: u32, runs: &[&TrialResult]) -> bool {
    let Task::Stream(stream) = cell.task() else { return false };
    if stream.net.transport != Transport::Udp || stream.offload || stream.paths.len() > 1 {
        return false;
    }
    runs.iter().any(|run| {
        let probes = probes_beside(run);
        transfers(run).iter().any(|transfer| {
            let counters = run.hosts.get(transfer.to).and_then(|observation| {
                observation.interfaces.iter().find(|i| Some(&i.name) == transfer.receiver.interface.as_ref())
            });
            let sent = transfer.sender.sent.as_ref().map_or(0, |sent| sent.messages);
            let fragments =
                ip_packets(stream.net.transport, stream.net.ip, stream.message_bytes.get(), mtu).len() as u64;
            counters.is_some_and(|counters| counters.rx_packets > sent * fragments * 11 / 10 + probes + 1_000)
        })
    })
}

/// Returns the caveat of flows that ended before their window did.
fn flow_ended(run: &TrialResult) -> Option<Caveat> {
    let why = run.paths().iter().find_map(|path| path.client.broken.as_ref())?;
    let text = message!(
        "caveat-flow-ended",
        "a flow ended before its window did, and what was due later counts as not sent: {why}",
        why
    );
    Some(Caveat::new(CaveatKind::CutShort, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::{host, measure};
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_units::ByteCount;

    #[test]
    fn datagrams_above_the_mtu_of_a_tunnel_have_a_caveat() {
        let mut tunnel = [host("a", None), host("b", None)];
        tunnel[0].nics[0].mtu = 1420;
        let mut run = trial(1_000, 0);
        stream_of(&mut run.trial).message_bytes = ByteCount::new(1_472);
        let caveat = |run: &TrialResult| {
            let result = measure(&tunnel, std::slice::from_ref(run));
            result.caveats.into_iter().find(|caveat| caveat.kind == CaveatKind::Fragments)
        };
        assert_eq!(caveat(&run), None, "they left whole");
        paths_of(&mut run)[0].client.sent.as_mut().expect("it sent").fragments = 2;
        let text = caveat(&run).expect("two fragments").text;
        assert!(text.contains("1,472 bytes left in 2 fragments") && text.contains("1,392 bytes or fewer"), "{text}");
    }
}
