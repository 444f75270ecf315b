//! The nouns of linerate: what is asked, what was counted, what a host saw, what is kept.
//!
//! Everything here is plain data, serialised and versioned. Nothing here opens a socket, reads a clock or decides.
//! docs/result-format.md describes the serialised form for readers of records.
#![forbid(unsafe_code)]

mod carried;
mod caveat;
mod comparison;
mod copy;
mod copy_found;
mod curve;
mod device;
mod device_found;
mod device_load;
mod encapsulation;
mod file_server;
mod finding;
mod findings;
mod frame_flow;
mod frame_form;
mod frame_half;
mod frames;
mod half;
mod histogram;
mod host;
mod ip_packet;
mod join;
mod ladder;
mod limits;
mod loaded_latency;
mod loss;
mod measurement;
mod medium;
mod neighbours;
mod nfs;
mod nfs_mix;
mod observation;
mod part;
mod port_name;
mod proof;
mod record;
mod rpc;
mod stack;
mod study;
mod summary;
mod trial;
mod verdict;
mod workload;

pub use carried::{Carried, Packet};
pub use caveat::{Caveat, CaveatKind};
pub use comparison::{Change, ComparedFigure, Comparison, Quantity};
pub use copy::{
    BadTree, CopyCache, CopyExisting, CopyFrom, CopyHalf, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopyOrigin,
    CopyPlan, CopyProgress, CopyRole, CopySync, CopyTree, CopyVerify, CopyWay, MadeTree, TreeKind,
};
pub use copy_found::{
    CopyClient, CopyFault, CopyHalfResult, CopyHalfStage, CopyOutcome, CopyPart, CopySide, CopyStage, CopyTrial,
    SizeClass, SizeClassTimes, StageShare, StageTime, WorkShare, WorkTime,
};
pub use curve::{ClassPoint, CurveMiss, CurvePeak, CurvePlan, CurvePoint, NfsOutcome};
pub use device::{
    DeviceOutcome, DevicePlan, DeviceTest, DirectionCounts, FrameCeiling, FrameLatency, LossCurve, LossPoint, PortPair,
    Throughput,
};
pub use device_found::{BackToBack, BufferTime, BurstLengths, EchoRate, GoalBounds, Recovery, SearchGoal};
pub use device_load::{DeviceInterface, DeviceLoad, HostCounters};
pub use encapsulation::{Encapsulation, UnknownEncapsulation};
pub use file_server::{FileServer, Password, SMB_PORT, SmbServer};
pub use finding::{Evidence, Finding, FindingKind};
pub use findings::Findings;
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
    Ceiling, CpuCost, CpuCosts, Latency, Measurement, OperationFigures, ReceivedRates, SentRates, Share, TcpSummary,
    WorkloadKind,
};
pub use medium::{AtmService, Medium, Sonet, UnknownMedium};
pub use neighbours::{NeighbourTable, PastNeighbours};
pub use nfs::{FileSet, IoSizes, NfsClass, NfsMix, NfsOperation, NfsServer, NfsSpec, OperationCounts, Service};
pub use nfs_mix::MixError;
pub use observation::{
    CoreUse, CpuQuota, DiskUse, InterfaceCounters, KernelThreadUse, Observation, Pressure, QdiscCounters, Softnet,
    Stall, ThreadUse,
};
pub use part::{Layer, LayerBytes, Part};
pub use port_name::PortName;
pub use proof::{CopyTest, Counterproof, Expects, Proof};
pub use record::{Plan, Record, RecordId, Repeats, SCHEMA};
pub use rpc::{RpcCall, RpcSpec};
pub use stack::{BadStack, Stack};
pub use study::{
    CellLimit, Conditions, Factor, FactorOf, Level, Measure, MeasurePair, MeasureUnit, Price, STUDY_SCHEMA, Study,
    StudyCell, StudyReport, StudyRun,
};
pub use summary::{Interval, Summary};
pub use trial::{HostName, Path, PathResult, Timing, TrialResult, TrialSpec};
pub use verdict::{Confidence, Limit, Stand, Verdict, Weighed};
pub use workload::{
    Arrivals, Direction, Offered, ReceiveBy, SendBy, SocketOptions, StreamSpec, TransactSpec, TransactStyle, Workload,
};
