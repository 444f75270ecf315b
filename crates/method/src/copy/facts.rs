//! The facts about a copy that the rules of the verdict weigh: those of its slowest pair.

use super::{Copied, LastPair, last_pair, shares};
use crate::outage;
use crate::tcp_summary::tcp_summary;
use crate::validity::steal;
use crate::verdict::{BusUse, CopyEnd, CopyFacts, ServerEnd, ServerLoad, Tcp, WindowFacts};
use linerate_model::{
    CopyFrom, CopyInto, CopySync, CopyVerify, CopyWay, Host, HostName, InterfaceCounters, Observation, TcpFlow,
};
use std::collections::BTreeSet;

/// What a frame takes on an Ethernet wire beside the bytes that an interface counts: FCS 4, preamble 8, gap 12.
const UNCOUNTED: u64 = 24;

impl CopyFacts {
    /// Returns the facts of a copy. Returns `None` if no host counted anything.
    pub(super) fn of(&Copied { result, task, parts }: &Copied<'_>, hosts: &[Host]) -> Option<Self> {
        let pair = last_pair(task, parts)?;
        let (source, destination) = (pair.source.unwrap_or(pair.destination), pair.destination);
        let seconds = pair.time.as_secs_f64();
        let unseen = Observation::default();
        let seen = |host: &HostName| result.hosts.get(host).unwrap_or(&unseen);
        let used = |name: &HostName, of: fn(&InterfaceCounters) -> (u64, u64)| {
            let nics = &hosts.iter().find(|host| host.name == *name)?.nics;
            let shares = seen(name).carried.iter().filter_map(|counted| {
                let nic = nics.iter().find(|nic| nic.name == counted.name)?;
                let speed = nic.speed?;
                let (mut bytes, mut packets) = of(counted);
                // Both directions share a half-duplex line.
                if nic.is_half_duplex() {
                    bytes = counted.tx_bytes + counted.rx_bytes;
                    packets = counted.tx_packets + counted.rx_packets;
                }
                let bits = (bytes + packets * UNCOUNTED) as f64 * 8.0;
                Some((speed, bits / seconds.max(f64::MIN_POSITIVE) / speed.get().max(1) as f64))
            });
            shares.max_by(|l, r| l.1.total_cmp(&r.1))
        };
        let sent = used(source, |counted| (counted.tx_bytes, counted.tx_packets));
        let got = used(destination, |counted| (counted.rx_bytes, counted.rx_packets));
        let line = [sent, got].into_iter().flatten().max_by(|l, r| l.1.total_cmp(&r.1));
        let crosses = task.way != CopyWay::Path;
        let server = match (task.way, &task.from) {
            (CopyWay::Linerate | CopyWay::Path, _) => None,
            (_, CopyFrom::Server(_)) => Some(ServerEnd::Read),
            _ => Some(ServerEnd::Written),
        };
        Some(Self {
            window: window(result, &pair),
            reads: task.from == CopyFrom::Files,
            writes: task.into != CopyInto::Discard && server != Some(ServerEnd::Written),
            server,
            server_load: ServerLoad::of(&[result]).filter(|_| server.is_some()),
            crosses,
            in_turn: task.way == CopyWay::Path,
            reads_back: task.options.verify == CopyVerify::ReadBack,
            syncs_each: task.options.sync == CopySync::Each,
            stages: shares(pair.sides.iter().copied()),
            source: CopyEnd::of(seen(source)),
            destination: CopyEnd::of(seen(destination)),
            line: line.filter(|_| crosses),
            bus: [(source, true), (destination, false)]
                .into_iter()
                .filter_map(|(name, sends)| {
                    let host = hosts.iter().find(|host| host.name == *name)?;
                    BusUse::of(host, seen(name), sends, seconds)
                })
                .max_by(|l, r| l.share.total_cmp(&r.share)),
            tcp: tcp(&pair),
            outage: outage::share(result),
            steal: [source, destination].into_iter().map(|host| steal(seen(host))).fold(0.0, f64::max),
        })
    }
}

/// Returns the observation of a copy. A copy has no window: its whole time is observed.
fn window(run: &linerate_model::TrialResult, pair: &LastPair<'_>) -> WindowFacts {
    let hosts: BTreeSet<&HostName> = pair.source.into_iter().chain([pair.destination]).collect();
    let bytes: Vec<f64> = pair.sides.iter().map(|side| (side.bytes + side.hole_bytes) as f64).collect();
    let difference = match bytes[..] {
        [sent, received] => Some((sent - received).abs() / sent.max(received).max(1.0)),
        _ => None,
    };
    WindowFacts::of_whole(run, &hosts, pair.time.as_secs_f64(), difference)
}

/// Returns the facts of the pair's TCP connections, each of which had the whole time.
fn tcp(pair: &LastPair<'_>) -> Option<Tcp> {
    let side = pair.sides.iter().find(|side| !side.tcp.is_empty())?;
    let (flows, seconds): (Vec<&TcpFlow>, _) = (side.tcp.iter().collect(), pair.time.as_secs_f64());
    let each = side.bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE) / flows.len() as f64;
    Some(Tcp::of(&tcp_summary(&flows)?, &flows, seconds * flows.len() as f64, each))
}
