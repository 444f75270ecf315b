//! What a load counts: one file for each shape of counts.

mod copy;
mod flows;
mod frames;
mod hops;

pub use copy::{CopyCounts, CopyFault, CopyPart, CopyParts, CopySide, CopyStage, SizeClassTimes, StageTime, WorkTime};
pub use flows::{EndCounts, FlowCounts, PathCounts, Received, ReceivedDscp, Sent, TcpFlow, Transactions};
pub use frames::{
    FrameCounts, FramePartCounts, FrameStreamCounts, FrameStreamPart, FramesArrived, FramesSent, PortArrivals,
    PortFlood, ToSocket,
};
pub use hops::{
    BlackHole, Hop, HopAddress, HopSample, HopsCounts, HopsEnd, MplsLabel, MtuProof, PathMtu, ProbedWay, TooBig,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a load counted, all its hosts together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Streams, transactions, RPC and NFS: each path, in the task's order.
    Flows(Vec<PathCounts>),
    /// Raw frames.
    Frames(FrameCounts),
    /// A copy.
    Copy(CopyParts),
    /// Probes: each path, in the task's order.
    Hops(Vec<HopsCounts>),
}
