//! The ladder: what each layer of one path delivers, in one unit, so that the layer that loses the most can be named.

use crate::checked::{OutOfRange, check_when_read, within};
use crate::named;
use crate::trial::check_names;
use crate::{Firmness, IpVersion, Message, Path, Repeats, Summary, Transport, Trial, Verdict};
use linerate_units::BitRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
    /// A layer of a path, from the lowest up. Each stands on the one before it.
    pub enum LayerName as "ladder-layer" {
        /// Capacity of the line, by calculation.
        Limit = "limit", "line";
        /// Raw frames from port to port.
        Frames = "frames", "raw frames";
        /// A UDP stream of the largest datagrams that travel whole, each a packet of its own.
        Udp = "udp", "UDP";
        /// A TCP stream.
        Tcp = "tcp", "TCP";
        /// RPC calls that write.
        Rpc = "rpc", "RPC";
        /// NFS reads of large transfers.
        NfsRead = "nfs-read", "NFS read";
        /// NFS writes of large transfers.
        NfsWrite = "nfs-write", "NFS write";
        /// A copy of files from one host's storage to the other's.
        Copy = "copy", "copy";
    }
}

/// A ladder to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct LadderPlan {
    /// The trials that layers draw their figures from, but for those of `frames`, `echoes` and the copy. The copy is chosen once
    /// TCP has been measured, and stands in the trials.
    pub cells: Vec<Trial>,
    /// How often each cell is run, and likewise the frames, the echoes and the copy.
    pub repeats: Repeats,
    /// From which host to which.
    pub path: Path,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// The path's MTU, by which the size of the datagrams was chosen.
    pub mtu: u32,
    /// What carries RPC and NFS. Over UDP they stand on the layer of UDP, and the copy on that of TCP.
    #[serde(default = "tcp", skip_serializing_if = "is_tcp")]
    pub calls_over: Transport,
    /// The trial of the raw-frame layer.
    pub frames: Planned,
    /// The trial that times what raw frames take there and back: a few echo requests; none if it is not to be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echoes: Option<Trial>,
}

impl LadderPlan {
    /// IPv4 has no smaller MTU (RFC 791 section 3.2), and no interface of Linux a larger one.
    const MTU: std::ops::RangeInclusive<u32> = 68..=i32::MAX as u32;

    fn check(&self) -> Result<(), OutOfRange> {
        within("bytes of MTU", self.mtu, Self::MTU)?;
        check_names(&self.cells)
    }
}

check_when_read!(LadderPlan);

fn tcp() -> Transport {
    Transport::Tcp
}

fn is_tcp(transport: &Transport) -> bool {
    *transport == Transport::Tcp
}

/// A trial, or why there can be none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Planned {
    /// The trial.
    Trial(Box<Trial>),
    /// Why there can be none.
    Missing(String),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ladder {
    /// What the path's line carries, all bits on the wire; none where no link speed is known.
    pub line_bps: Option<BitRate>,
    /// The path's MTU.
    pub mtu: u32,
    /// What the rate of every layer counts: `payload bit/s`.
    pub unit: String,
    /// The layers, from the lowest up.
    pub layers: Vec<LadderLayer>,
    /// The widest gap between neighbouring layers; none if no gap is wider than the layers' own spread.
    pub widest_gap: Option<Gap>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LadderLayer {
    /// Which.
    pub name: LayerName,
    /// Payload that arrived, bit/s; of the line by calculation, with no runs. None if it was not measured.
    pub payload_bps: Option<Summary>,
    /// Whether it is firm: raw frames are not where their sender gave less than the line takes. It is a lower bound then.
    pub firmness: Firmness,
    /// The payload that the line can carry with this layer's headers, bit/s; none where no link speed is known.
    pub limit_bps: Option<BitRate>,
    /// The layer below: the next one down that was measured and that the tester itself did not limit.
    pub below: Option<LayerName>,
    /// Its payload as a share of that layer's.
    pub share_of_layer_below: Option<f64>,
    /// Its payload as a share of the line's; none where no link speed is known.
    pub share_of_line: Option<f64>,
    /// From a request of one byte to its answer of one byte, one at a time; of raw frames from an echo request (RFC 792, RFC 4443 section
    /// 4.1) to its reply. None where it was not measured.
    pub latency_ns: Option<LayerLatency>,
    /// What limited it; none for the line, and where it was not measured.
    pub verdict: Option<Verdict>,
    /// The entries of `results` that its figures come from, by name: its stream, then its transactions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
    /// Why it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Message>,
}

/// Time of a request and its response, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerLatency {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// How many were timed.
    pub count: u64,
}

/// The loss between two neighbouring layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The layer that delivers less.
    pub above: LayerName,
    /// The layer below it.
    pub below: LayerName,
    /// So many times as much arrives below as above: `headers` times `rest`.
    pub factor: f64,
    /// The part of it that the larger headers of the upper layer take, which no host can win back.
    pub headers: f64,
    /// The rest, by which gaps are compared.
    pub rest: f64,
    /// What to try next; none where nothing is known to help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Message>,
}
