//! Figures that the repeats of a trial amount to, with a file for each task.

mod copy;
mod flow;
mod frames;
mod hops;
mod loaded_latency;
mod nfs;
mod requests;
mod rpc;
mod stream;
mod transact;

pub use copy::{CopyClient, CopyFigures, SizeClass, StageShare, WorkShare};
pub use flow::{CpuCost, CpuCosts, FlowFigures, RateRange, ReceivedRates, SentRates, Share, TcpSummary};
pub use frames::{AddressIteration, AddressTable, FlowRate, FrameFlow, LearningRate};
pub use hops::{DelayChange, HopDelay, HopFigures, OneWayDelay, OneWayFigures, WayFigures};
pub use loaded_latency::{AddedDelay, DelayGrade, LoadedLatency, RoundTripsPerMinute};
pub use nfs::{NfsFigures, OperationFigures};
pub use requests::{Latency, RequestFigures};
pub use rpc::RpcFigures;
pub use stream::StreamFigures;
pub use transact::TransactFigures;
