//! Results of a run: what the repeats of each trial amount to.

use crate::{
    Bypass, Caveat, CopyFigures, Firmness, FlowFigures, FrameFlow, Latency, LoadedLatency, Loss, NfsFigures, PathLimit,
    Quantity, ReceivedRates, RecordId, RequestFigures, RpcFigures, SentRates, Share, StreamFigures, Summary, TaskKind,
    TcpSummary, TransactFigures, Verdict, WayFigures,
};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The repeats of one trial as one result. The head is the same for every task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Name of the trial, as in `udp 1472`.
    pub name: String,
    /// Quantity of the main figure.
    pub quantity: Quantity,
    /// The main figure: payload at the receivers of a stream, transactions per second, payload of copied files, frames
    /// received per second.
    pub main: Summary,
    /// Figure that the tester itself reached with the device bypassed. `None` if it was not calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tester_limit: Option<TesterLimit>,
    /// Verdict on what limited the result.
    pub verdict: Verdict,
    /// Caveats, each kind once.
    pub caveats: Vec<Caveat>,
    /// Figures of the task. In JSON its fields are next to these.
    #[serde(flatten)]
    pub detail: Detail,
}

/// Figures of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "task")]
pub enum Detail {
    /// Streams.
    Stream(Box<StreamFigures>),
    /// Transactions.
    Transact(Box<TransactFigures>),
    /// RPC calls.
    Rpc(Box<RpcFigures>),
    /// NFS operations.
    Nfs(Box<NfsFigures>),
    /// Raw frames.
    Frames {
        /// Figures of each flow of frames.
        flows: Vec<FrameFlow>,
    },
    /// A copy.
    Copy(Box<CopyFigures>),
    /// Probes along a path.
    Hops {
        /// Figures of each way.
        ways: Vec<WayFigures>,
    },
}

/// The tester's own limit: the same measurement with the device bypassed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TesterLimit {
    /// Record of the calibration.
    pub record: RecordId,
    /// What stood in the device's place.
    #[serde(default)]
    pub bypass: Bypass,
    /// Time from the start of the calibration to that of the run; zero if it was made for the run.
    #[serde(default)]
    pub age: Nanos,
    /// Whether its trials alternated with those of this result, under the same conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interleaved: bool,
    /// Figure that it reached: payload bit/s of a stream, transactions per second otherwise.
    pub reached: Summary,
    /// This result's median as a share of the limit's.
    pub share: f64,
}

impl Detail {
    /// Returns the figures that streams, transactions, RPC and NFS have alike, to be changed. `None` for other tasks.
    pub fn flow_mut(&mut self) -> Option<&mut FlowFigures> {
        match self {
            Self::Stream(figures) => Some(&mut figures.flow),
            Self::Transact(figures) => Some(&mut figures.flow),
            Self::Rpc(figures) => Some(&mut figures.flow),
            Self::Nfs(figures) => Some(&mut figures.flow),
            Self::Frames { .. } | Self::Copy(_) | Self::Hops { .. } => None,
        }
    }
}

impl Measurement {
    /// Returns the task that the result is of.
    pub fn task(&self) -> TaskKind {
        match &self.detail {
            Detail::Stream(_) => TaskKind::Stream,
            Detail::Transact(_) => TaskKind::Transact,
            Detail::Rpc(_) => TaskKind::Rpc,
            Detail::Nfs(_) => TaskKind::Nfs,
            Detail::Frames { .. } => TaskKind::Frames,
            Detail::Copy(_) => TaskKind::Copy,
            Detail::Hops { .. } => TaskKind::Hops,
        }
    }

    /// Returns the figures of a stream, or `None` for other tasks.
    pub fn stream(&self) -> Option<&StreamFigures> {
        if let Detail::Stream(figures) = &self.detail { Some(figures) } else { None }
    }

    /// Returns the figures of transactions, or `None` for other tasks.
    pub fn transact(&self) -> Option<&TransactFigures> {
        if let Detail::Transact(figures) = &self.detail { Some(figures) } else { None }
    }

    /// Returns the figures of RPC calls, or `None` for other tasks.
    pub fn rpc(&self) -> Option<&RpcFigures> {
        if let Detail::Rpc(figures) = &self.detail { Some(figures) } else { None }
    }

    /// Returns the figures of NFS operations, or `None` for other tasks.
    pub fn nfs(&self) -> Option<&NfsFigures> {
        if let Detail::Nfs(figures) = &self.detail { Some(figures) } else { None }
    }

    /// Returns the figures of raw frames, one for each frame size and direction. Empty for other tasks.
    pub fn frames(&self) -> &[FrameFlow] {
        if let Detail::Frames { flows } = &self.detail { flows } else { &[] }
    }

    /// Returns the figures of a copy, or `None` for other tasks.
    pub fn copy(&self) -> Option<&CopyFigures> {
        if let Detail::Copy(figures) = &self.detail { Some(figures) } else { None }
    }

    /// Returns the figures that streams, transactions, RPC and NFS have alike, or `None` for other tasks.
    pub fn flows(&self) -> Option<&FlowFigures> {
        match &self.detail {
            Detail::Stream(figures) => Some(&figures.flow),
            Detail::Transact(figures) => Some(&figures.flow),
            Detail::Rpc(figures) => Some(&figures.flow),
            Detail::Nfs(figures) => Some(&figures.flow),
            Detail::Frames { .. } | Detail::Copy(_) | Detail::Hops { .. } => None,
        }
    }

    /// Returns the figures that transactions, RPC and NFS have alike, or `None` for other tasks.
    pub fn requests(&self) -> Option<&RequestFigures> {
        match &self.detail {
            Detail::Transact(figures) => Some(&figures.requests),
            Detail::Rpc(figures) => Some(&figures.requests),
            Detail::Nfs(figures) => Some(&figures.requests),
            Detail::Stream(_) | Detail::Frames { .. } | Detail::Copy(_) | Detail::Hops { .. } => None,
        }
    }

    /// Returns the figures of the probed ways. Empty if the path was not probed.
    pub fn ways(&self) -> &[WayFigures] {
        match &self.detail {
            Detail::Hops { ways } => ways,
            _ => self.flows().map_or(&[], |flows| &flows.ways),
        }
    }

    /// Returns the capacity of the path and the share of it that was used, or `None` if no link speed is known.
    pub fn limit(&self) -> Option<&PathLimit> {
        self.flows()?.limit.as_ref()
    }

    /// Returns the figures of each path and direction. Empty if there is only one.
    pub fn shares(&self) -> &[Share] {
        self.flows().map_or(&[], |flows| &flows.shares)
    }

    /// Returns TCP's counters at the data senders, or `None` over UDP.
    pub fn tcp(&self) -> Option<&TcpSummary> {
        self.flows()?.tcp.as_ref()
    }

    /// Returns the rates of data at the receivers of a stream, of RPC or of NFS, or `None` if they carry no data.
    pub fn received(&self) -> Option<&ReceivedRates> {
        match &self.detail {
            Detail::Stream(figures) => Some(&figures.received),
            Detail::Rpc(figures) => figures.received.as_ref(),
            Detail::Nfs(figures) => figures.received.as_ref(),
            Detail::Transact(_) | Detail::Frames { .. } | Detail::Copy(_) | Detail::Hops { .. } => None,
        }
    }

    /// Returns the rates of data at the senders of a stream or of RPC, or `None` if they carry no data.
    pub fn sent(&self) -> Option<&SentRates> {
        match &self.detail {
            Detail::Stream(figures) => Some(&figures.sent),
            Detail::Rpc(figures) => figures.sent.as_ref(),
            _ => None,
        }
    }

    /// Returns the losses of a UDP stream.
    pub fn loss(&self) -> Option<&Loss> {
        self.stream()?.loss.as_ref()
    }

    /// Returns the latency of a probed stream's path, idle and under load.
    pub fn loaded_latency(&self) -> Option<&LoadedLatency> {
        self.stream()?.loaded_latency.as_ref()
    }

    /// Returns the latency of requests, or `None` if none was timed.
    pub fn latency(&self) -> Option<&Latency> {
        self.requests()?.latency_ns.as_ref().filter(|latency| latency.count > 0)
    }

    /// Returns the time that RPC or NFS calls took within a server that measures it.
    pub fn service(&self) -> Option<&Latency> {
        match &self.detail {
            Detail::Rpc(figures) => figures.service_ns.as_ref(),
            Detail::Nfs(figures) => figures.service_ns.as_ref(),
            _ => None,
        }
    }

    /// Returns the number of RPC or NFS calls that were sent again, or `None` for other tasks.
    pub fn retransmitted(&self) -> Option<u64> {
        match &self.detail {
            Detail::Rpc(figures) => Some(figures.retransmitted),
            Detail::Nfs(figures) => Some(figures.retransmitted),
            _ => None,
        }
    }

    /// Returns whether the figures are firm by themselves. Those of raw frames are if the tester sent all that were due.
    pub fn firmness(&self) -> Firmness {
        self.frames().iter().map(|flow| flow.firmness).fold(Firmness::Firm, Firmness::and)
    }
}
