//! The nouns of linerate: what is asked, what was counted, what a host saw, what is kept.
//!
//! Everything here is plain data, serialised and versioned. Nothing here opens a socket, reads a clock or decides.
//! docs/result-format.md describes the serialised form for readers of records.
#![forbid(unsafe_code)]

mod agent_url;
mod bus;
mod calibration;
mod carried;
mod caveat;
mod checked;
mod clock;
mod comparison;
mod confidence;
mod counts;
mod curve;
mod device;
mod device_load;
mod encapsulation;
mod figures;
mod firmness;
mod header_field;
mod histogram;
mod host;
mod host_name;
mod ip_packet;
mod ladder;
mod limit;
mod link_id;
mod loss;
mod measure_unit;
mod measurement;
mod medium;
mod message;
mod named;
mod neighbours;
mod network_counters;
mod observation;
mod outage;
mod outcome;
mod path_limit;
mod path_section;
mod plan;
mod port_name;
mod power;
mod proof;
mod record;
mod record_id;
mod repeats;
mod result;
mod run_summary;
mod series;
mod session;
mod stack;
mod stream_event;
mod study_run;
mod summary;
mod task;
mod timing;
mod transport;
mod trial;
mod verdict;

pub use agent_url::{AgentUrl, BadAgentUrl};
pub use bus::{Bus, Slot, UnknownBus};
pub use calibration::{Bypass, Calibrated, CalibratedSubject, Calibration};
pub use carried::{Carried, Packet};
pub use caveat::{Caveat, CaveatKind};
pub use checked::OutOfRange;
pub use clock::{ClockExchange, ClockOffset};
pub use comparison::{Change, ComparedFigure, Comparison, Quantity, Samples};
pub use confidence::Confidence;
pub use counts::{
    BlackHole, CopyCounts, CopyFault, CopyPart, CopyParts, CopySide, CopyStage, Counts, EndCounts, FlowCounts,
    FrameCounts, FramePartCounts, FrameStreamCounts, FrameStreamPart, FramesArrived, FramesSent, Hop, HopAddress,
    HopSample, HopsCounts, HopsEnd, MplsLabel, MtuProof, PathCounts, PathMtu, PortArrivals, PortFlood, ProbedWay,
    Received, ReceivedDscp, Sent, SizeClassTimes, StageTime, TcpFlow, ToSocket, TooBig, Transactions, WorkTime,
};
pub use curve::{ClassPoint, CurveFound, CurveMiss, CurvePeak, CurvePlan, CurvePoint};
pub use device::{
    BackToBack, Broadcast, BroadcastPort, BufferTime, BurstLengths, Congestion, CongestionGroup, DeviceFound,
    DevicePlan, DeviceTest, DirectionCounts, EchoRate, FaultOutcome, FaultResult, ForwardPressure, Forwarding,
    ForwardingPoint, FrameFault, FrameLatency, FrameTesterLimit, GoalBounds, LossCurve, LossPoint, PortPair, PortPairs,
    PortPattern, Presence, Recovery, SearchGoal, Throughput,
};
pub use device_load::{DeviceInterface, DeviceLoad, HostCounters};
pub use encapsulation::{Encapsulation, UnknownEncapsulation};
pub use figures::{
    AddedDelay, AddressIteration, AddressTable, CopyClient, CopyFigures, CpuCost, CpuCosts, DelayChange, DelayGrade,
    FlowFigures, FlowRate, FrameFlow, HopDelay, HopFigures, Latency, LearningRate, LoadedLatency, NfsFigures,
    OneWayDelay, OneWayFigures, OperationFigures, RateRange, ReceivedRates, RequestFigures, RoundTripsPerMinute,
    RpcFigures, SentRates, Share, SizeClass, StageShare, StreamFigures, TcpSummary, TransactFigures, WayFigures,
    WorkShare,
};
pub use firmness::{Firmness, Known};
pub use header_field::{HeaderField, Layer, LayerBytes};
pub use histogram::{BadHistogram, Histogram};
pub use host::{Capability, Duplex, Host, Nic};
pub use host_name::HostName;
pub use ladder::{Gap, Ladder, LadderLayer, LadderPlan, LayerLatency, LayerName, Planned};
pub use limit::{Limit, LimitPlace};
pub use linerate_text::{TEXTS, Text, text};
pub use link_id::LinkId;
pub use loss::{Loss, LossPlaces};
pub use measure_unit::MeasureUnit;
pub use measurement::{Detail, Measurement, TesterLimit};
pub use medium::{AtmService, Medium, Sonet, UnknownMedium};
pub use message::{Message, MessagePart, MessageValue};
pub use neighbours::{NeighbourTable, PastNeighbours};
pub use network_counters::{ConntrackCounters, IpCounters, NetworkCounters, TcpCounters, UdpCounters};
pub use observation::{
    CoreUse, CpuQuota, DiskUse, DriverCounter, InterfaceCounters, KernelThreadUse, Observation, Pressure,
    QdiscCounters, Softnet, Stall, ThreadUse,
};
pub use outage::Outage;
pub use outcome::Outcome;
pub use path_limit::{PathLimit, ip_packets, layer_bytes, tcp_overhead, tcp_packet};
pub use path_section::{HopRef, PathEffect, PathSection};
pub use plan::{Goal, Plan, SweepPlan, Tuning};
pub use port_name::PortName;
pub use power::{Power, Powers, UnknownPower};
pub use proof::{Counterproof, Expects, PairPart, Proof};
pub use record::{Record, SCHEMA, from_command_name, shell_command, shell_word, typed};
pub use record_id::RecordId;
pub use repeats::Repeats;
pub use result::{AttemptSpan, FramesRun, Standing, TrialResult};
pub use run_summary::{Headline, HeadlineVerdict, RunSummary};
pub use series::{
    LatencyBuckets, Readings, Sampling, Series, SeriesBuilder, SeriesQuantity, SeriesUnit, SessionSeries, Span, Track,
};
pub use session::{
    Assignment, Endpoints, FailureKind, HostCounts, Listen, Meter, Order, Preparation, Ready, Role, RoleCounts,
    RoleKind, SessionFailure, SessionId, SessionKey, SessionProgress, Stage,
};
pub use stack::{BadStack, Stack};
pub use stream_event::{EndState, HostLoad, IntervalReport, STREAM_SCHEMA, StreamEvent, TrialState};
pub use study_run::StudyRun;
pub use summary::{Interval, Summary};
pub use task::{
    Arrivals, BadFrame, BadMac, BadMix, BadTree, BadVary, CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks,
    CopyOnError, CopyOptions, CopySync, CopyTask, CopyTree, CopyVerify, CopyWay, Direction, FarEnd, FileServer,
    FileSet, FrameBytes, FrameEngine, FrameForm, FrameHeaders, FrameMix, FramePayload, FrameReceiver, FrameStream,
    FramesTask, HopsTask, IoSizes, Iperf3Client, Iperf3End, Iperf3Login, Iperf3Server, MIX_PERIOD, MOST_VARIED, Mac,
    MacRule, MadeTree, MixError, MixPart, Net, NfsClass, NfsMix, NfsOperation, NfsServer, NfsTask, Offered,
    OperationCounts, Password, Path, PortInfo, ProbePacket, RawFrame, ReceiveBy, ReceiveWake, RpcCall, RpcTask,
    SIGNATURE_BYTES, SMB_PORT, SendBy, Server, Service, SimulatedHosts, SmbServer, SmbVersion, SocketOptions,
    StreamTask, Task, TaskKind, TransactStyle, TransactTask, TreeKind, UnknownSmbVersion, Vary, VaryField, VaryOrder,
};
pub use timing::{Timing, Warmup, Window};
pub use transport::{IpVersion, Transport};
pub use trial::{Load, Trial};
pub use verdict::{ConfidenceCheck, ConfidenceCondition, Steadiness, Support, Verdict, Weighed};
