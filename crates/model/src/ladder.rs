//! The ladder: what each layer of one path delivers, in one unit, so that the layer that loses the most can be named.

use crate::{CopyPlan, FrameTrial, IpVersion, Path, Summary, Verdict};
use linerate_units::BitRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A rung, from the ground up. One stands on the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RungName {
    /// What the line can carry: the ground, by calculation.
    Limit,
    /// Raw frames from port to port.
    Frames,
    /// A UDP stream of the largest datagrams that travel whole, each a packet of its own.
    Udp,
    /// A TCP stream.
    Tcp,
    /// RPC calls that write, over TCP.
    Rpc,
    /// NFS reads of large transfers, over TCP.
    NfsRead,
    /// NFS writes of large transfers, over TCP.
    NfsWrite,
    /// A copy of files from one host's storage to the other's.
    Copy,
}

impl fmt::Display for RungName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Limit => "line",
            Self::Frames => "raw frames",
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Rpc => "RPC",
            Self::NfsRead => "NFS read",
            Self::NfsWrite => "NFS write",
            Self::Copy => "copy",
        })
    }
}

/// What a ladder is asked, besides the plan's cells that its rungs are drawn from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LadderPlan {
    /// From which host to which.
    pub path: Path,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// The path's MTU, by which the size of the datagrams was chosen.
    pub mtu: u32,
    /// The trial of the raw-frame rung; none if it is not to be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameTrial>,
    /// The trial that times what this rung takes there and back: echo requests, a few; none if it is not to be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echoes: Option<FrameTrial>,
    /// The copy of its rung, known once TCP has been measured; its trials are the record's `copy_trials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyPlan>,
    /// Rungs that cannot be measured, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without: BTreeMap<RungName, String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ladder {
    /// What the path's line carries, all bits on the wire; none where no link speed is known.
    pub line_bps: Option<BitRate>,
    /// The path's MTU.
    pub mtu: u32,
    /// What every rung's rate counts: `payload bit/s`.
    pub unit: String,
    /// The rungs, from the ground up.
    pub rungs: Vec<Rung>,
    /// The widest gap between neighbouring rungs; none if no gap is wider than the rungs' own spread.
    pub widest_gap: Option<Gap>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// Which.
    pub name: RungName,
    /// Payload that arrived, bit/s; of the ground by calculation, with no runs. None if it was not measured.
    pub payload_bps: Option<Summary>,
    /// The payload that the line can carry with this rung's headers, bit/s; none where no link speed is known.
    pub limit_bps: Option<BitRate>,
    /// The rung it stands on: the next one below that was measured and was not held back by the tester itself.
    pub below: Option<RungName>,
    /// Its payload as a share of that rung's.
    pub share_of_below: Option<f64>,
    /// Its payload as a share of the ground's; none where no link speed is known.
    pub share_of_line: Option<f64>,
    /// From a request of one byte to its answer of one byte, one at a time; of raw frames from an echo request (RFC 792, RFC 4443 section
    /// 4.1) to its reply. None where it was not measured.
    pub latency_ns: Option<RungLatency>,
    /// What limited it; none for the ground, and where it was not measured.
    pub verdict: Option<Verdict>,
    /// The entries of `results` that it is drawn from, by name: its stream, then its transactions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
    /// Why it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// Time of a request and its response, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RungLatency {
    /// Half of all are at or below this.
    pub p50: u64,
    /// 99 %.
    pub p99: u64,
    /// How many were timed.
    pub count: u64,
}

/// The loss between two neighbouring rungs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The rung that delivers less.
    pub above: RungName,
    /// The rung that it stands on.
    pub below: RungName,
    /// So many times as much arrives below as above: `headers` times `rest`.
    pub factor: f64,
    /// The part of it that the upper rung's larger headers take, which no host can win back.
    pub headers: f64,
    /// The rest, by which gaps are compared.
    pub rest: f64,
    /// What to try next.
    pub advice: String,
}
