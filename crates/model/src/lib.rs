//! The nouns of linerate: what is asked, what was counted, what a host saw, what is kept.
//!
//! Everything here is plain data, serialised and versioned. Nothing here opens a socket, reads a clock or decides.
//! docs/result-format.md describes the serialised form for readers of records.
#![forbid(unsafe_code)]

mod caveat;
mod device;
mod device_found;
mod device_load;
mod frame_flow;
mod frame_form;
mod frame_half;
mod frames;
mod half;
mod histogram;
mod host;
mod join;
mod ladder;
mod limits;
mod loaded_latency;
mod loss;
mod measurement;
mod neighbours;
mod observation;
mod port_name;
mod proof;
mod record;
mod summary;
mod trial;
mod verdict;
mod workload;

pub use caveat::{Caveat, CaveatKind};
pub use device::{
    DeviceOutcome, DevicePlan, DeviceTest, DirectionCounts, FrameCeiling, FrameLatency, LossCurve, LossPoint, PortPair,
    Throughput,
};
pub use device_found::{BackToBack, BufferTime, BurstLengths, EchoRate, GoalBounds, Recovery, SearchGoal};
pub use device_load::{DeviceInterface, DeviceLoad, HostCounters};
pub use frame_flow::{AddressTable, FlowRate, FrameFlow, LearningRate};
pub use frame_form::{
    BadFrame, BadMix, BadVary, FrameBytes, FrameForm, FrameMix, MIX_PERIOD, MOST_VARIED, MixPart, RawFrame, Vary,
    VaryField, VaryOrder,
};
pub use frame_half::{FrameHalf, FrameHalfResult, FramesArrived, FramesSent, StreamHalf};
pub use frames::{
    BadMac, FrameEngine, FrameHeaders, FramePayload, FrameStream, FrameStreamResult, FrameTrial, FrameTrialResult, Mac,
    MacRule, PortInfo, SIGNATURE_BYTES, SimulatedHosts,
};
pub use half::{
    Connect, EndResult, EndRole, EndSpec, FlowResult, HalfResult, HalfSpec, Prepared, Progress, Received, Sent,
    TcpFlow, Transactions, TrialId, TrialKey,
};
pub use histogram::{BadHistogram, Histogram};
pub use host::{Capability, Host, Nic};
pub use join::{BadJoin, Join};
pub use ladder::{Gap, Ladder, LadderPlan, Rung, RungLatency, RungName};
pub use limits::{IpVersion, PathLimit, Transport, ip_packets, layer_bytes, tcp_overhead, tcp_packet};
pub use loaded_latency::{AddedDelay, DelayGrade, LoadedLatency, ProbeResult, RoundTripsPerMinute};
pub use loss::{Loss, LossPlaces};
pub use measurement::{
    Ceiling, CpuCost, CpuCosts, Latency, Measurement, ReceivedRates, SentRates, Share, TcpSummary, WorkloadKind,
};
pub use neighbours::{NeighbourTable, PastNeighbours};
pub use observation::{
    CoreUse, CpuQuota, InterfaceCounters, KernelThreadUse, Observation, Pressure, QdiscCounters, Softnet, Stall,
    ThreadUse,
};
pub use port_name::PortName;
pub use proof::{Counterproof, Expects, Proof};
pub use record::{Plan, Record, RecordId, Repeats, SCHEMA};
pub use summary::{Interval, Summary};
pub use trial::{HostName, Path, PathResult, Timing, TrialResult, TrialSpec};
pub use verdict::{Confidence, Limit, Stand, Verdict, Weighed};
pub use workload::{
    Arrivals, Direction, Offered, ReceiveBy, SendBy, SocketOptions, StreamSpec, TransactSpec, TransactStyle, Workload,
};
