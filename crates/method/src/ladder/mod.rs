//! The ladder: each layer of one path in the same unit, and the gap between neighbours that loses the most. One file for
//! each rung, in one list.
//!
//! A rung says which trials it wants of the ordinary plan, and draws its figure from their results. All rungs count the
//! payload of their packets, so full frames, the line in full frames and UDP in the largest datagrams compare as they
//! are. TCP's larger header is told apart from the rest of its gap.

mod copy;
mod frames;
mod gap;
mod limit;
mod nfs;
mod nfs_read;
mod nfs_write;
mod rpc;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use linerate_model::{
    CopyOutcome, FrameTrial, FrameTrialResult, IpVersion, Ladder, LadderPlan, Latency, Measurement, Path, PathLimit,
    Plan, Record, Rung, RungLatency, RungName, SocketOptions, StreamSpec, Summary, Timing, Transport, TrialSpec,
    Verdict, Workload, layer_bytes,
};
use linerate_units::BitRate;
use std::collections::BTreeMap;

pub use copy::next_copy;
pub use frames::next_frames;

/// What all rungs' rates count.
const UNIT: &str = "payload bit/s";

/// The rungs, from the ground up.
const LAYERS: [&dyn Layer; 8] = [
    &limit::Limit,
    &frames::Frames,
    &udp::Udp,
    &tcp::Tcp,
    &rpc::Rpc,
    &nfs_read::NfsRead,
    &nfs_write::NfsWrite,
    &copy::Copy,
];

/// What a ladder is to be measured on, and how.
#[derive(Debug, Clone)]
pub struct Asked {
    /// From which host to which.
    pub path: Path,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// The path's MTU.
    pub mtu: u32,
    /// Connections (UDP: sockets) of each stream.
    pub flows: u16,
    /// Socket settings.
    pub socket: SocketOptions,
    /// Length of each trial.
    pub timing: Timing,
    /// The trial of the raw-frame rung, or why there can be none.
    pub frames: Result<FrameTrial, String>,
}

/// One rung.
trait Layer: Sync {
    /// Its name.
    fn name(&self) -> RungName;

    /// The trials it wants, each by a name of its own.
    fn trials(&self, _asked: &Asked) -> Vec<(String, Workload)> {
        Vec::new()
    }

    /// What it came to, or why it has no figure.
    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String>;

    /// What to try where it delivers less than the rung below.
    fn advice(&self, facts: &Facts<'_>) -> String;
}

/// What a rung draws its figure from.
struct Facts<'a> {
    plan: &'a LadderPlan,
    results: &'a [Measurement],
    frame_trials: &'a [FrameTrialResult],
    copy: Option<CopyOutcome>,
}

/// A rung's figure.
struct Figure {
    payload_bps: Summary,
    /// Payload as a share of what it occupies on an Ethernet wire, 0 to 1.
    efficiency: f64,
    latency: Option<RungLatency>,
    verdict: Option<Verdict>,
    results: Vec<String>,
    /// Something may stand on it: it is the path's, not the tester's own limit.
    bears: bool,
}

/// `plan` with the trials that a ladder wants. A cell of the plan that has the name of one of them gives way to it.
pub fn onto(mut plan: Plan, asked: &Asked) -> Plan {
    for (name, workload) in LAYERS.iter().flat_map(|layer| layer.trials(asked)) {
        let cell = TrialSpec {
            name,
            paths: vec![asked.path.clone()],
            workload,
            timing: asked.timing,
            probe: None,
            proves: None,
        };
        match plan.cells.iter_mut().find(|known| known.name == cell.name) {
            Some(known) => *known = cell,
            None => plan.cells.push(cell),
        }
    }
    let Asked { path, ip, mtu, frames, .. } = asked.clone();
    let (frames, without) = match frames {
        Ok(trial) => (Some(trial), BTreeMap::new()),
        Err(why) => (None, BTreeMap::from([(RungName::Frames, why)])),
    };
    let echoes = frames.as_ref().and_then(frames::echoes);
    plan.ladder = Some(LadderPlan { path, ip, mtu, frames, echoes, copy: None, without });
    plan
}

/// The ladder of a record whose results stand; none if its plan asks for none, or nothing was measured.
pub fn found(record: &Record) -> Option<Ladder> {
    let plan = record.plan.ladder.as_ref()?;
    let copy = plan.copy.as_ref().and_then(|copied| copy::found(copied, record));
    let facts = Facts { plan, results: &record.results, frame_trials: &record.frame_trials, copy };
    if record.results.is_empty() { None } else { Some(climb(&facts)) }
}

/// Every rung in turn, each beside the one below, and the widest gap between them.
fn climb(facts: &Facts<'_>) -> Ladder {
    let line_bps = facts.line();
    let figures: Vec<Result<Figure, String>> = LAYERS.iter().map(|layer| figure(*layer, facts)).collect();
    // The ground's payload, where the line's speed is known.
    let ground = LAYERS.iter().zip(&figures).find_map(|(layer, figure)| {
        let figure = figure.as_ref().ok().filter(|_| layer.name() == RungName::Limit)?;
        Some(figure.payload_bps.median)
    });
    let (mut rungs, mut standing): (Vec<Rung>, Vec<gap::Standing<'_>>) = (Vec::new(), Vec::new());
    for (layer, figure) in LAYERS.iter().zip(&figures) {
        rungs.push(match figure {
            Ok(figure) => {
                let own = figure.payload_bps.median;
                let below = standing.last().map(|below| (below.name, own / below.payload_bps.median));
                if figure.bears {
                    standing.push(gap::Standing {
                        name: layer.name(),
                        payload_bps: &figure.payload_bps,
                        efficiency: figure.efficiency,
                    });
                }
                Rung {
                    name: layer.name(),
                    payload_bps: Some(figure.payload_bps.clone()),
                    limit_bps: line_bps.map(|line| BitRate::per_second((line.get() as f64 * figure.efficiency) as u64)),
                    below: below.map(|(name, _)| name),
                    share_of_below: below.map(|(_, share)| share),
                    share_of_line: ground.map(|ground| own / ground),
                    latency_ns: figure.latency,
                    verdict: figure.verdict.clone(),
                    results: figure.results.clone(),
                    missing: None,
                }
            }
            Err(why) => Rung {
                name: layer.name(),
                payload_bps: None,
                limit_bps: None,
                below: None,
                share_of_below: None,
                share_of_line: None,
                latency_ns: None,
                verdict: None,
                results: Vec::new(),
                missing: Some(why.clone()),
            },
        });
    }
    let widest_gap = gap::widest(&standing, |above| {
        LAYERS.iter().find(|layer| layer.name() == above).map_or_else(String::new, |layer| layer.advice(facts))
    });
    Ladder { line_bps, mtu: facts.plan.mtu, unit: UNIT.to_owned(), rungs, widest_gap }
}

/// A rung's figure. Of nothing that arrived there is no share.
fn figure(layer: &dyn Layer, facts: &Facts<'_>) -> Result<Figure, String> {
    if let Some(why) = facts.plan.without.get(&layer.name()) {
        return Err(why.clone());
    }
    let figure = layer.figure(facts)?;
    if figure.payload_bps.median > 0.0 { Ok(figure) } else { Err("nothing arrived at the receiver".to_owned()) }
}

impl Facts<'_> {
    /// What the path's line carries, if its speed is known.
    fn line(&self) -> Option<BitRate> {
        self.results.iter().filter_map(|result| Some(result.limit.as_ref()?.line_bps)).min()
    }

    fn result(&self, name: &str) -> Option<&Measurement> {
        self.results.iter().find(|result| result.name == name)
    }

    /// The figure of a rung that has a stream and transactions.
    fn streamed(
        &self,
        stream: &str,
        transactions: &str,
        efficiency: impl Fn(&Measurement) -> f64,
    ) -> Result<Figure, String> {
        let unmeasured = || "the run ended before it was measured".to_owned();
        let result = self.result(stream).ok_or_else(unmeasured)?;
        let received = result.received.as_ref().ok_or_else(unmeasured)?;
        let timed = self.result(transactions);
        let latency = timed.and_then(|timed| timed.latency_ns.as_ref()).filter(|latency| latency.count > 0);
        Ok(Figure {
            payload_bps: received.payload_bps.clone(),
            efficiency: efficiency(result),
            latency: latency.map(|Latency { p50, p99, count, .. }| RungLatency { p50: *p50, p99: *p99, count: *count }),
            verdict: Some(result.verdict.clone()),
            results: [Some(result), timed].into_iter().flatten().map(|result| result.name.clone()).collect(),
            bears: true,
        })
    }
}

/// Bytes of the largest datagram that a path of this MTU carries whole: the MTU less the IP header and UDP's 8 bytes
/// (RFC 768).
fn largest_datagram(ip: IpVersion, mtu: u32) -> u64 {
    u64::from(mtu.saturating_sub(ip.header() + 8)).clamp(StreamSpec::UDP_MINIMUM, StreamSpec::UDP_MAXIMUM)
}

/// What the line carries in full frames, payload bit/s.
fn line_payload(line: BitRate, ip: IpVersion, mtu: u32) -> f64 {
    PathLimit::payload_of(line, Transport::Udp, ip, largest_datagram(ip, mtu), mtu).get() as f64
}

/// Payload as a share of what messages of this size, or TCP's full segments in packets of `packet` bytes, occupy on a wire.
fn efficiency(transport: Transport, ip: IpVersion, message_bytes: u64, packet: u32) -> f64 {
    let (payload, _, wire) = layer_bytes(transport, ip, message_bytes, packet);
    payload as f64 / wire as f64
}
