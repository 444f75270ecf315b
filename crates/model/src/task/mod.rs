//! What a load does: one file for each task.

mod copy;
mod file_server;
mod frame_form;
mod frames;
mod hops;
mod iperf3;
mod net;
mod nfs;
mod nfs_mix;
mod rpc;
mod stream;
mod transact;

pub use copy::{
    BadTree, CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTask,
    CopyTree, CopyVerify, CopyWay, MadeTree, TreeKind,
};
pub use file_server::{FileServer, Password, SMB_PORT, SmbServer, SmbVersion, UnknownSmbVersion};
pub use frame_form::{
    BadFrame, BadMix, BadVary, FrameBytes, FrameForm, FrameMix, MIX_PERIOD, MOST_VARIED, MixPart, RawFrame, Vary,
    VaryField, VaryOrder,
};
pub use frames::{
    BadMac, FrameEngine, FrameHeaders, FramePayload, FrameReceiver, FrameStream, FramesTask, Mac, MacRule, PortInfo,
    SIGNATURE_BYTES, SimulatedHosts,
};
pub use hops::{FarEnd, HopsTask, ProbePacket};
pub use iperf3::{Iperf3Client, Iperf3End, Iperf3Login, Iperf3Server};
pub use net::{Net, Path, Server, SocketOptions};
pub use nfs::{FileSet, IoSizes, NfsClass, NfsMix, NfsOperation, NfsServer, NfsTask, OperationCounts, Service};
pub use nfs_mix::MixError;
pub use rpc::{RpcCall, RpcTask};
pub use stream::{Direction, Offered, ReceiveBy, ReceiveWake, SendBy, StreamTask};
pub use transact::{Arrivals, TransactStyle, TransactTask};

use crate::HostName;
use linerate_units::{ByteCount, Nanos, OpRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a load does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Task {
    /// Bulk data one way or both ways.
    Stream(StreamTask),
    /// Requests and responses, timed.
    Transact(TransactTask),
    /// ONC RPC calls.
    Rpc(RpcTask),
    /// NFS operations.
    Nfs(NfsTask),
    /// Raw frames from port to port.
    Frames(FramesTask),
    /// A folder tree that is copied.
    Copy(CopyTask),
    /// Probes of the routers of a path.
    Hops(HopsTask),
}

/// The tasks by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    Stream,
    Transact,
    Rpc,
    Nfs,
    Frames,
    Copy,
    Hops,
}

impl TaskKind {
    /// All of them, in the order of the layers they load.
    pub const ALL: [Self; 7] =
        [Self::Hops, Self::Frames, Self::Stream, Self::Transact, Self::Rpc, Self::Nfs, Self::Copy];

    /// The name in records, as in `stream`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Transact => "transact",
            Self::Rpc => "rpc",
            Self::Nfs => "nfs",
            Self::Frames => "frames",
            Self::Copy => "copy",
            Self::Hops => "hops",
        }
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Task {
    /// Which task it is.
    pub fn kind(&self) -> TaskKind {
        match self {
            Self::Stream(_) => TaskKind::Stream,
            Self::Transact(_) => TaskKind::Transact,
            Self::Rpc(_) => TaskKind::Rpc,
            Self::Nfs(_) => TaskKind::Nfs,
            Self::Frames(_) => TaskKind::Frames,
            Self::Copy(_) => TaskKind::Copy,
            Self::Hops(_) => TaskKind::Hops,
        }
    }

    /// Transport, flows and sockets; none for frames and copies.
    pub fn net(&self) -> Option<&Net> {
        match self {
            Self::Stream(task) => Some(&task.net),
            Self::Transact(task) => Some(&task.net),
            Self::Rpc(task) => Some(&task.net),
            Self::Nfs(task) => Some(&task.net),
            Self::Hops(task) => Some(&task.net),
            Self::Frames(_) | Self::Copy(_) => None,
        }
    }

    /// Most flows of one path and direction.
    pub fn most_flows(&self) -> u16 {
        if matches!(self, Self::Stream(_)) { Net::MOST_FLOWS } else { Net::MOST_FLOWS_WITH_THREADS }
    }

    /// Transport, flows and sockets, to be changed; none for frames and copies.
    pub fn net_mut(&mut self) -> Option<&mut Net> {
        match self {
            Self::Stream(task) => Some(&mut task.net),
            Self::Transact(task) => Some(&mut task.net),
            Self::Rpc(task) => Some(&mut task.net),
            Self::Nfs(task) => Some(&mut task.net),
            Self::Hops(task) => Some(&mut task.net),
            Self::Frames(_) | Self::Copy(_) => None,
        }
    }

    /// Who talks to whom; empty for frames and copies.
    pub fn paths(&self) -> &[Path] {
        match self {
            Self::Stream(task) => &task.paths,
            Self::Transact(task) => &task.paths,
            Self::Rpc(task) => &task.paths,
            Self::Nfs(task) => &task.paths,
            Self::Hops(task) => &task.paths,
            Self::Frames(_) | Self::Copy(_) => &[],
        }
    }

    /// The paths, to be changed; none for frames and copies.
    pub fn paths_mut(&mut self) -> Option<&mut Vec<Path>> {
        match self {
            Self::Stream(task) => Some(&mut task.paths),
            Self::Transact(task) => Some(&mut task.paths),
            Self::Rpc(task) => Some(&mut task.paths),
            Self::Nfs(task) => Some(&mut task.paths),
            Self::Hops(task) => Some(&mut task.paths),
            Self::Frames(_) | Self::Copy(_) => None,
        }
    }

    /// Hosts with agents that take part; a host may come more than once.
    pub fn hosts(&self) -> Vec<&HostName> {
        match self {
            Self::Frames(task) => task.ports.iter().map(|port| task.host(port)).collect(),
            Self::Copy(task) => task.sources.iter().chain(&task.destinations).collect(),
            _ => {
                self.paths().iter().flat_map(|path| std::iter::once(&path.client).chain(path.server.agent())).collect()
            }
        }
    }

    /// Bytes of one message: of a stream's message, a transaction's request, or the data of an RPC call or NFS transfer. None
    /// for frames and copies.
    pub fn message_bytes(&self) -> Option<ByteCount> {
        match self {
            Self::Stream(task) => Some(task.message_bytes),
            Self::Transact(task) => Some(task.request_bytes),
            Self::Rpc(task) => Some(task.unit_bytes),
            Self::Nfs(task) => Some(task.transfer_bytes),
            Self::Frames(_) | Self::Copy(_) | Self::Hops(_) => None,
        }
    }

    /// Requests per second that are asked for, each timed from when it is due; none in a closed loop and for other tasks.
    pub fn requests_per_s(&self) -> Option<OpRate> {
        match self {
            Self::Transact(task) => task.rate,
            Self::Rpc(task) => task.rate,
            Self::Nfs(task) => task.rate,
            Self::Stream(_) | Self::Frames(_) | Self::Copy(_) | Self::Hops(_) => None,
        }
    }

    /// Calls that may be in flight at a time on each path; none where nothing is called.
    pub fn outstanding(&self) -> Option<u32> {
        let (flows, each) = match self {
            Self::Rpc(task) => (task.net.flows, task.outstanding),
            Self::Nfs(task) => (task.net.flows, task.outstanding),
            Self::Stream(_) | Self::Transact(_) | Self::Frames(_) | Self::Copy(_) | Self::Hops(_) => return None,
        };
        Some(u32::from(flows) * u32::from(each))
    }

    /// When the requests of an open loop are due; none where there are no requests.
    pub fn arrivals(&self) -> Option<Arrivals> {
        match self {
            Self::Transact(task) => Some(task.arrivals),
            Self::Rpc(task) => Some(task.arrivals),
            Self::Nfs(task) => Some(task.arrivals),
            Self::Stream(_) | Self::Frames(_) | Self::Copy(_) | Self::Hops(_) => None,
        }
    }

    /// Whether it is made of requests that are answered.
    pub fn is_requests(&self) -> bool {
        matches!(self, Self::Transact(_) | Self::Rpc(_) | Self::Nfs(_))
    }

    /// Time that making what the load needs on the server, and very many connections, may take beyond what connecting usually takes, and
    /// removing it again.
    pub fn set_up(&self) -> Nanos {
        match self {
            Self::Nfs(task) if task.mix.needs_files() => task.files.set_up_timeout(),
            // Flows are connected a few at a time, which takes round trips.
            Self::Stream(task) => {
                let beyond_usual = task.net.flows.saturating_sub(Net::MOST_FLOWS_WITH_THREADS);
                Nanos::from_millis(10 * u64::from(beyond_usual))
            }
            _ => Nanos::default(),
        }
    }
}
