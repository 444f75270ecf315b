//! Tests of a device with raw frames: what is asked and what was found.

mod found;
mod pattern;
mod switching;

pub use found::{BackToBack, BufferTime, BurstLengths, EchoRate, GoalBounds, Recovery, SearchGoal};
pub use pattern::{PortPairs, PortPattern};
pub use switching::{
    Broadcast, BroadcastPort, Congestion, CongestionGroup, FaultOutcome, FaultResult, ForwardPressure, Forwarding,
    ForwardingPoint, FrameFault, Presence,
};

use crate::checked::{HIGHEST_RATE, OutOfRange, check_when_read, within};
use crate::{
    AddressTable, Caveat, DeviceLoad, Firmness, FrameEngine, FrameHeaders, FrameStream, FramesTask, HostName, Latency,
    NeighbourTable, PortName, RecordId, Verdict, Window,
};
use linerate_units::{BitRate, FrameRate, FrameSize, Nanos, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What a device is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct DevicePlan {
    /// Which test.
    pub test: DeviceTest,
    /// The host whose ports test the device; of several hosts that of the first port.
    pub host: HostName,
    /// The ports, each with its host where they are of several.
    pub ports: Vec<PortName>,
    /// Pattern of the streams.
    #[serde(default)]
    pub pattern: PortPattern,
    /// Streams that are sent at the same time.
    pub directions: Vec<PortPair>,
    /// Frame sizes, FCS counted (RFC 2544 section 9.1).
    pub sizes: Vec<FrameSize>,
    /// What the ports' line carries; none where no port knows its speed.
    pub line: Option<BitRate>,
    /// Length of the trials of a search.
    pub search_time: Nanos,
    /// Length of the trial that decides (RFC 2544 section 24: at least 60 s).
    pub final_time: Nanos,
    /// Each trial is over when no frame has arrived for this long; 2 s at least where none has arrived yet (RFC 2544 section 23).
    pub settle: Nanos,
    /// Loss ratio tolerated; zero for throughput (RFC 1242 section 3.17).
    pub loss: Ratio,
    /// Search resolution, as a share of the load.
    pub width: Ratio,
    /// By which means frames are sent.
    pub engine: FrameEngine,
}

impl DevicePlan {
    /// Most frame sizes, and most ways through the device.
    const MOST: usize = 1_024;

    fn check(&self) -> Result<(), OutOfRange> {
        within("ways through the device", self.directions.len(), 1..=Self::MOST)?;
        let named =
            self.directions.iter().flat_map(|pair| [pair.from, pair.to].into_iter().chain(pair.copies_to.clone()));
        FramesTask::check_ports(self.ports.len(), named)?;
        within("frame sizes", self.sizes.len(), 1..=Self::MOST)?;
        self.sizes.iter().try_for_each(|size| FrameStream::check_size(*size))?;
        let line = self.line.map_or(0, BitRate::get);
        within("bits per second of a line", line, 0..=HIGHEST_RATE)?;
        for time in [self.search_time, self.final_time, self.settle] {
            within("of a trial with frames", time, Nanos::default()..=Window::LONGEST)?;
        }
        self.test.check()
    }

    /// Returns the highest frame rate of all streams together that the lines allow at a size, with equal shares.
    /// Returns `None` if the rate of the lines is unknown.
    pub fn line_frames(&self, size: FrameSize) -> Option<u64> {
        let busiest = |end: fn(&PortPair) -> u16| {
            let mut streams = vec![0_u64; self.ports.len().max(1)];
            for pair in &self.directions {
                streams[usize::from(end(pair))] += 1;
            }
            streams.into_iter().max().unwrap_or_default()
        };
        let at_one_port = busiest(|pair| pair.from).max(busiest(|pair| pair.to)).max(1);
        Some(size.line_rate(self.line?).get() * self.directions.len() as u64 / at_one_port)
    }

    /// The ports are of several hosts, each of which has its own clock.
    pub fn has_several_hosts(&self) -> bool {
        self.ports.iter().any(|port| port.host.as_ref().is_some_and(|host| *host != self.host))
    }
}

check_when_read!(DevicePlan);

/// A way through the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortPair {
    /// Index of the sending port.
    pub from: u16,
    /// Index of the receiving port.
    pub to: u16,
    /// Indices of further ports that are to receive each frame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies_to: Vec<u16>,
    /// The headers of its frames.
    pub headers: FrameHeaders,
}

/// A test of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum DeviceTest {
    /// The highest rate without loss (RFC 2544 section 26.1).
    Throughput,
    /// The same with the device bypassed: the tester's own limit.
    Calibrate,
    /// Latency of every frame at a set rate, or at the throughput (RFC 2544 section 26.2).
    Latency {
        /// Frames per second of each direction; none searches the throughput first.
        rate: Option<FrameRate>,
    },
    /// Loss against load, in steps down from the highest rate (RFC 2544 section 26.3).
    Loss {
        /// Steps of the load as a share of the highest, in percent; the RFC allows 10 at most.
        step_percent: u32,
    },
    /// The highest rates that meet several goals, found in one search (RFC 9971).
    Goals {
        /// The goals, the one to be found first first; without any it is a throughput test like the other.
        goals: Vec<SearchGoal>,
    },
    /// The longest burst that comes back whole (RFC 2544 section 26.4, RFC 9004).
    Burst {
        /// How often it is searched for; the RFC asks for 50.
        repeats: u32,
    },
    /// How long frames go on being lost after an overload (RFC 2544 section 26.5).
    Recovery {
        /// How often it is measured.
        repeats: u32,
    },
    /// The highest rate of ICMP echo requests that are all answered. The direction leads from the port to itself.
    Echo {
        /// Who is to answer.
        target: IpAddr,
    },
    /// Throughput, latency, loss, burst and recovery.
    All {
        /// Steps of the load in the loss test, percent.
        step_percent: u32,
        /// How often burst and recovery are measured.
        repeats: u32,
    },
    /// How many addresses a switch keeps, and how fast it learns them (RFC 2889 sections 5.7 and 5.8). Of three ports the
    /// first tests, the second is where addresses are learned, the third listens for what floods.
    Addresses {
        /// At most so many addresses.
        most: u32,
        /// Addresses a second that the device surely learns.
        learn_rate: FrameRate,
        /// How long it keeps an address that is silent; zero if that is not waited for, and so the learning rate cannot be
        /// measured.
        ageing: Nanos,
    },
    /// Forwarding rates between many ports (RFC 2889 sections 5.1 to 5.4, by the pattern of the plan).
    Forwarding {
        /// Step of the load from the throughput to the maximum, in percent of the maximum.
        step_percent: u32,
    },
    /// Head-of-line blocking and back pressure (RFC 2889 section 5.5). Each group of four ports has two senders, an
    /// uncongested and a congested receiver.
    Congestion,
    /// Forwarding faster than the medium allows (RFC 2889 section 5.6). The last port receives, the others send.
    ForwardPressure,
    /// Errored frames (RFC 2889 section 5.9).
    Errors {
        /// Whether a cable is in the device's place, to find out which errors the ports can send.
        cable: bool,
    },
    /// Rate and latency of broadcasts (RFC 2889 section 5.10). The first port sends.
    Broadcast,
    /// How many neighbours a router holds, and what happens past that. The first port sends through the router to hosts in a
    /// row behind the second, from the address after the direction's destination on; a third listens for what floods.
    Hosts {
        /// At most so many hosts.
        most: u32,
        /// Hosts a second whose Ethernet addresses the router surely finds.
        learn_rate: FrameRate,
        /// Frames a second that the router surely carries.
        rate: FrameRate,
    },
}

impl DeviceTest {
    /// Most repeats of a part.
    const MOST_REPEATS: u32 = 1_000;
    /// Most addresses, those of the range that they are taken from; hosts are fewer.
    const MOST_ADDRESSES: u32 = 1 << 24;

    fn check(&self) -> Result<(), OutOfRange> {
        let frames = |rate: FrameRate| within("frames per second", rate.get(), 0..=HIGHEST_RATE);
        let step = |percent: u32| within("% as a step of the load", percent, 1..=100);
        let repeats = |times: u32| within("repeats", times, 1..=Self::MOST_REPEATS);
        match self {
            Self::Throughput | Self::Calibrate | Self::Latency { rate: None } | Self::Echo { .. } => Ok(()),
            Self::Congestion | Self::ForwardPressure | Self::Errors { .. } | Self::Broadcast => Ok(()),
            Self::Forwarding { step_percent } => step(*step_percent),
            Self::Latency { rate: Some(rate) } => frames(*rate),
            Self::Loss { step_percent } => step(*step_percent),
            Self::Goals { goals } => within("search goals", goals.len(), 0..=SearchGoal::ALL.len()),
            Self::Burst { repeats: times } | Self::Recovery { repeats: times } => repeats(*times),
            Self::All { step_percent, repeats: times } => step(*step_percent).and_then(|()| repeats(*times)),
            Self::Addresses { most, learn_rate, ageing } => {
                within("addresses", *most, 1..=Self::MOST_ADDRESSES)?;
                within("of ageing", *ageing, Nanos::default()..=Window::LONGEST)?;
                frames(*learn_rate)
            }
            Self::Hosts { most, learn_rate, rate } => {
                within("hosts", *most, 1..=Self::MOST_ADDRESSES)?;
                frames(*learn_rate).and_then(|()| frames(*rate))
            }
        }
    }
}

/// What was found, by test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceFound {
    /// The highest rate without loss, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throughput: Vec<Throughput>,
    /// Latency, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<FrameLatency>,
    /// Loss against load, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<LossCurve>,
    /// The longest burst that came back whole, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub burst: Vec<BackToBack>,
    /// Recovery from overload, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Recovery>,
    /// The highest rate of answered echo requests, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub echo: Vec<EchoRate>,
    /// Forwarding rates between many ports, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forwarding: Vec<Forwarding>,
    /// Congestion control, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<Congestion>,
    /// Forward pressure, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forward_pressure: Vec<ForwardPressure>,
    /// Errored frames, by kind of error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultResult>,
    /// Broadcasts, by frame size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broadcast: Vec<Broadcast>,
    /// The address table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressTable>,
    /// The neighbour table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<NeighbourTable>,
}

/// The highest rate without loss at one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// The search goal it meets (RFC 9971); none if it was halved for, with no loss allowed but the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalBounds>,
    /// Frames per second that were offered, all directions together; zero if the device lost frames at every rate tried. Of a
    /// goal: its conditional throughput. What is not firm is a lower bound.
    pub frames_per_s: f64,
    /// Whether it is firm: the tester offered this rate, and the lowest one at which frames were lost.
    pub firmness: Firmness,
    /// The same in bits per second of frames, FCS counted, preamble and gap not (RFC 2544 section 26.1).
    pub bits_per_s: f64,
    /// Share of what the lines of all directions carry, 0 to 1; none where the line's rate is unknown.
    pub line_share: Option<f64>,
    /// The lowest rate at which frames were lost in a trial that the tester offered; none if there was no such trial.
    pub lost_at_frames_per_s: Option<f64>,
    /// Each direction of the trial that decided.
    pub directions: Vec<DirectionCounts>,
    /// What the tester reaches with the device bypassed; none if it was not calibrated.
    pub tester_limit: Option<FrameTesterLimit>,
    /// Trials this took.
    pub trials: u32,
    /// Length of the trial that decided.
    pub trial_time: Nanos,
    /// The device's own load in the trial that decided; none if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// What limited it, in one word: the verdict's.
    pub limit: crate::Limit,
    /// What limited it, and why.
    pub verdict: Verdict,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// The tester's own limit at one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameTesterLimit {
    /// The calibration's record.
    pub record: RecordId,
    /// Its trials alternated with those of this result, under the same conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interleaved: bool,
    /// Frames per second, all directions together, without loss.
    pub frames_per_s: f64,
    /// This result as a share of it.
    pub share: f64,
}

/// One direction of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectionCounts {
    /// The sending port.
    pub from: String,
    /// The receiving port.
    pub to: String,
    /// Frames that were due.
    pub intended: u64,
    /// Frames given to the sending port.
    pub sent: u64,
    /// Frames that arrived, duplicates left out.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Frames that arrived late.
    pub reordered: u64,
    /// Frames received per second of the trial.
    pub frames_per_s: f64,
}

/// Latency of every frame at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameLatency {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// Frames per second offered, all directions together.
    pub frames_per_s: f64,
    /// Whether that is the rate asked for; the latency of a lower one is not firm.
    pub firmness: Firmness,
    /// Frames that did not arrive.
    pub lost: u64,
    /// From the moment a frame is given to the sending port to the moment the receiving port has it, nanoseconds: the
    /// device's store-and-forward time (RFC 1242 section 3.8) and what the two ports add. None if no frame arrived.
    pub latency_ns: Option<Latency>,
    /// The device's own load meanwhile; none if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// Loss against load at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossCurve {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// From the highest load down.
    pub points: Vec<LossPoint>,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// One load of a loss curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossPoint {
    /// Frames per second intended, all directions together.
    pub intended_frames_per_s: f64,
    /// Frames per second the tester really sent.
    pub offered_frames_per_s: f64,
    /// Whether that is the load intended; the loss at a lower one is not firm.
    pub firmness: Firmness,
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// Share of the frames sent that did not arrive (RFC 1242 section 3.6), 0 to 1.
    pub loss_ratio: f64,
    /// The device's own load meanwhile; none if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
}
