//! The ladder: each layer of one path in the same unit, and the gap between neighbours that loses the most. One file for
//! each layer, in one list.
//!
//! A layer says which trials it wants of the ordinary plan, and draws its figure from their results. All layers count the
//! payload of their packets, so full frames, the line in full frames and UDP in the largest datagrams compare as they
//! are. TCP's larger header is told apart from the rest of its gap.

mod beside;
mod climb;
mod copy;
mod frames;
mod gap;
mod limit;
mod nfs;
mod rpc;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

pub use climb::Climb;

use crate::beside::with_load;
use beside::Beside;
use linerate_model::{
    Firmness, FlowFigures, Goal, HopsTask, Host, IpVersion, Ladder, LadderLayer, LadderPlan, Latency, LayerLatency,
    LayerName, Measurement, Message, Net, Path, PathLimit, Plan, Planned, Repeats, SocketOptions, Summary, Task,
    Timing, Transport, Trial, TrialResult, Verdict, layer_bytes, message,
};
use linerate_units::BitRate;
use std::collections::BTreeMap;

/// What all layers' rates count.
const UNIT: &str = "payload bit/s";
/// Why a layer has no figure where nothing went wrong with it.
fn unmeasured() -> Message {
    message!("ladder-not-reached", "the run ended before it was measured")
}

/// The layers, from the ground up.
const LAYERS: [&dyn Layer; 8] =
    [&limit::Limit, &frames::Frames, &udp::Udp, &tcp::Tcp, &rpc::Rpc, &nfs::READ, &nfs::WRITE, &copy::Copy];

/// What a ladder is to be measured on, and how.
#[derive(Debug, Clone)]
pub struct LadderRequest {
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
    /// What carries RPC and NFS.
    pub calls_over: Transport,
    /// Length of each trial.
    pub timing: Timing,
    /// How often each trial is run.
    pub repeats: Repeats,
    /// The trial of the raw-frame layer, or why there can be none.
    pub frames: Planned,
    /// Whether the path is probed next to the streams.
    pub hops: bool,
}

/// One layer.
trait Layer: Sync {
    /// Its name.
    fn name(&self) -> LayerName;

    /// The trials it wants, each by a name of its own.
    fn trials(&self, _request: &LadderRequest) -> Vec<(String, Task)> {
        Vec::new()
    }

    /// What it came to, or why it has no figure.
    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message>;

    /// What to try where it delivers less than the layer below.
    fn advice(&self, facts: &Facts<'_>) -> Option<Message>;
}

/// What a layer draws its figure from.
struct Facts<'a> {
    plan: &'a LadderPlan,
    results: &'a [Measurement],
    hosts: &'a [Host],
    beside: &'a Beside<'a>,
    /// Trials that failed, by name, and why.
    failed: &'a BTreeMap<String, String>,
}

/// A layer's figure.
struct Figure {
    payload_bps: Summary,
    /// Payload as a share of what it occupies on an Ethernet wire, 0 to 1.
    efficiency: f64,
    latency: Option<LayerLatency>,
    verdict: Option<Verdict>,
    results: Vec<String>,
    /// Something may stand on it: it is the path's, not the tester's limit.
    bears: bool,
    /// Whether its payload is firm.
    firmness: Firmness,
}

impl LadderRequest {
    /// Transport, flows and sockets of a trial.
    fn net(&self, transport: Transport, flows: u16) -> Net {
        let socket = match transport {
            Transport::Tcp => self.socket.clone(),
            // What only TCP knows is for its layers.
            Transport::Udp => SocketOptions { congestion: None, mss: None, ..self.socket.clone() },
        };
        Net { transport, ip: self.ip, flows, socket }
    }

    fn paths(&self) -> Vec<Path> {
        vec![self.path.clone()]
    }

    fn cell(&self, name: String, task: Task) -> Trial {
        let probes = match &task {
            Task::Stream(stream) if self.hops => Some(HopsTask::beside(&stream.paths, &stream.net, None)),
            _ => None,
        };
        let cell = Trial::new(name, task, self.timing);
        probes.map(Task::Hops).into_iter().fold(cell, with_load)
    }
}

/// Returns the plan of a ladder.
pub fn plan(request: &LadderRequest) -> Plan {
    let trials = LAYERS.iter().flat_map(|layer| layer.trials(request));
    let cells = trials.map(|(name, task)| request.cell(name, task)).collect();
    let LadderRequest { path, ip, mtu, calls_over, repeats, frames, .. } = request.clone();
    let echoes = match &frames {
        Planned::Trial(full) => frames::echoes(full),
        Planned::Missing(_) => None,
    };
    Plan::of(Goal::Ladder(LadderPlan { cells, repeats, path, ip, mtu, calls_over, frames, echoes }))
}

/// The ladder of `plan`, whose `results` stand; `trials` are all attempts.
fn found(plan: &LadderPlan, hosts: &[Host], results: &[Measurement], trials: &[TrialResult]) -> Ladder {
    let beside = Beside::of(plan, trials);
    let failed = trials.iter().filter_map(|run| Some((run.trial.name.clone(), run.failure()?.to_owned()))).collect();
    climb(&Facts { plan, results, hosts, beside: &beside, failed: &failed })
}

/// Every layer in turn, each beside the one below, and the widest gap between them.
fn climb(facts: &Facts<'_>) -> Ladder {
    let line_bps = facts.line();
    let figures: Vec<Result<Figure, Message>> = LAYERS.iter().map(|layer| figure(*layer, facts)).collect();
    // The ground's payload, where the line's speed is known.
    let ground = LAYERS.iter().zip(&figures).find_map(|(layer, figure)| {
        let figure = figure.as_ref().ok().filter(|_| layer.name() == LayerName::Limit)?;
        Some(figure.payload_bps.median)
    });
    let (mut layers, mut standing): (Vec<LadderLayer>, Vec<gap::Standing<'_>>) = (Vec::new(), Vec::new());
    // Each layer that another stands on, with that one.
    let mut pairs = Vec::new();
    for (layer, figure) in LAYERS.iter().zip(&figures) {
        layers.push(match figure {
            Ok(figure) => {
                let own = figure.payload_bps.median;
                let carries =
                    |below: &&gap::Standing<'_>| may_stand_on(facts.plan.calls_over, layer.name(), below.name);
                let on = standing.iter().rev().find(carries).copied();
                let below = on.map(|below| (below.name, own / below.payload_bps.median));
                if figure.bears {
                    let payload_bps = &figure.payload_bps;
                    let own = gap::Standing { name: layer.name(), payload_bps, efficiency: figure.efficiency };
                    pairs.extend(on.map(|below| (below, own)));
                    standing.push(own);
                }
                LadderLayer {
                    name: layer.name(),
                    payload_bps: Some(figure.payload_bps.clone()),
                    firmness: figure.firmness,
                    limit_bps: line_bps.map(|line| BitRate::per_second((line.get() as f64 * figure.efficiency) as u64)),
                    below: below.map(|(name, _)| name),
                    share_of_layer_below: below.map(|(_, share)| share),
                    share_of_line: ground.map(|ground| own / ground),
                    latency_ns: figure.latency,
                    verdict: figure.verdict.clone(),
                    results: figure.results.clone(),
                    missing: None,
                }
            }
            Err(why) => LadderLayer {
                name: layer.name(),
                payload_bps: None,
                firmness: Firmness::Firm,
                limit_bps: None,
                below: None,
                share_of_layer_below: None,
                share_of_line: None,
                latency_ns: None,
                verdict: None,
                results: Vec::new(),
                missing: Some(why.clone()),
            },
        });
    }
    let widest_gap = gap::widest(&pairs, |above| {
        LAYERS.iter().find(|layer| layer.name() == above).and_then(|layer| layer.advice(facts))
    });
    Ladder { line_bps, mtu: facts.plan.mtu, unit: UNIT.to_owned(), layers, widest_gap }
}

/// Whether a layer may stand on one further down. Calls over UDP do not stand on TCP, nor does the copy, which goes over TCP, on them.
fn may_stand_on(calls_over: Transport, layer: LayerName, below: LayerName) -> bool {
    let calls = |name| matches!(name, LayerName::Rpc | LayerName::NfsRead | LayerName::NfsWrite);
    let apart = calls(layer) && below == LayerName::Tcp || layer == LayerName::Copy && calls(below);
    calls_over == Transport::Tcp || !apart
}

/// A layer's figure. Of nothing that arrived there is no share.
fn figure(layer: &dyn Layer, facts: &Facts<'_>) -> Result<Figure, Message> {
    if let Some(why) = facts.beside.without.get(&layer.name()) {
        return Err(why.clone());
    }
    let figure = layer.figure(facts)?;
    if figure.payload_bps.median > 0.0 {
        Ok(figure)
    } else {
        Err(message!("ladder-nothing-arrived", "nothing arrived at the receiver"))
    }
}

impl Facts<'_> {
    /// What the path's line carries, if its speed is known.
    fn line(&self) -> Option<BitRate> {
        self.results.iter().filter_map(|result| Some(result.limit()?.line_bps)).min()
    }

    fn result(&self, name: &str) -> Option<&Measurement> {
        self.results.iter().find(|result| result.name == name)
    }

    fn flows(&self, name: &str) -> Option<&FlowFigures> {
        self.result(name)?.flows()
    }

    /// The figure of a layer that has a stream and transactions.
    fn streamed(
        &self,
        stream: &str,
        transactions: &str,
        efficiency: impl Fn(&FlowFigures) -> f64,
    ) -> Result<Figure, Message> {
        let unmeasured = || self.failed.get(stream).map_or_else(self::unmeasured, Message::untranslated);
        let result = self.result(stream).ok_or_else(unmeasured)?;
        let figures = result.flows().ok_or_else(unmeasured)?;
        let received = result.received().ok_or_else(unmeasured)?;
        let timed = self.result(transactions);
        let latency = timed.and_then(Measurement::latency);
        Ok(Figure {
            payload_bps: received.payload_bps.clone(),
            efficiency: efficiency(figures),
            latency: latency.map(|Latency { p50, p99, count, .. }| LayerLatency {
                p50: *p50,
                p99: *p99,
                count: *count,
            }),
            verdict: Some(result.verdict.clone()),
            results: [Some(result), timed].into_iter().flatten().map(|result| result.name.clone()).collect(),
            bears: true,
            firmness: Firmness::Firm,
        })
    }
}

/// What the line carries in full frames, payload bit/s.
fn line_payload(line: BitRate, ip: IpVersion, mtu: u32) -> f64 {
    PathLimit::payload_of(line, Transport::Udp, ip, ip.datagram_within(mtu), mtu).get() as f64
}

/// Payload as a share of what messages of this size, or TCP's full segments in packets of `packet` bytes, occupy on a wire.
fn efficiency(transport: Transport, ip: IpVersion, message_bytes: u64, packet: u32) -> f64 {
    let (payload, _, wire) = layer_bytes(transport, ip, message_bytes, packet);
    payload as f64 / wire as f64
}
