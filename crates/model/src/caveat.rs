//! A doubt about a result: not an error, but something its reader must know.

use crate::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A typed doubt, in words that end with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// What kind of doubt.
    pub kind: CaveatKind,
    /// The doubt with its numbers, and what to do about it.
    #[serde(flatten)]
    pub text: Message,
}

impl Caveat {
    /// A doubt of `kind`.
    pub fn new(kind: CaveatKind, text: Message) -> Self {
        Self { kind, text }
    }
}

/// The kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaveatKind {
    /// Both ends ran on one machine and shared its cores.
    SharedMachine,
    /// The kernel moved joined segments that were never cut into packets: rates are not packets on a wire.
    OffloadNotOnWire,
    /// The hypervisor took CPU time from this host during the window.
    CpuStolen,
    /// Fewer datagrams were offered than asked for.
    BelowOfferedRate,
    /// The runs differ more than the figure can bear.
    WideSpread,
    /// Too few runs for a spread.
    FewRuns,
    /// Repeats stopped at their bound before the interval was as narrow as asked.
    NotConverged,
    /// Cores sleep between requests, so wake-up time is in every latency.
    IdleWakeup,
    /// The receiver let the kernel throw its data away uncopied.
    Discarded,
    /// The link's speed is unknown, so no share of it can be given.
    UnknownLinkSpeed,
    /// More arrived in the window than the line carries in that time: data held back before it counted in it.
    AboveLimit,
    /// A host counted over a time well apart from the window asked for: it was kept from its cores at the window's edges.
    OffWindow,
    /// The window was too few round trips long.
    FewRoundTrips,
    /// The path carried nothing for a part of the window.
    Outage,
    /// The window held too few packets for an exact rate.
    FewPackets,
    /// The requests that time the path took a visible share of it.
    ProbeShare,
    /// Datagrams were larger than the path's MTU and left in fragments.
    Fragments,
    /// The rate went up or down within the window.
    NotSteady,
    /// The lab's path or reference device did not keep its limits: frames left late, or were lost for want of time.
    BenchLimits,
    /// One end ran no agent: it counted by itself, and its host was not watched.
    OneSided,
    /// Other traffic crossed the interface during the window.
    OtherTraffic,
    /// A loss could not be told apart between places.
    PlaceUnsure,
    /// A flow ended before its window did; what it had counted until then is kept.
    CutShort,
    /// The window's longest time ended it before all of its volume was sent; what was counted until then is kept.
    VolumeNotSent,
    /// A copy is without something that its tree has, as was asked.
    LeftOut,
    /// Something that was made on a server could not be removed.
    LeftBehind,
    /// The run was interrupted; what was measured until then is kept.
    Interrupted,
    /// This is the tester's own limit, measured without the device.
    TesterLimit,
    /// A feature was not available here and something slower stood in.
    Fallback,
    /// The trial that decided was shorter than the standard asks.
    ShortTrial,
    /// The tester's limit is not known.
    NotCalibrated,
    /// The tester's limit was measured long before this run.
    OldCalibration,
    /// The tester's limit is an upper estimate: each host was measured against itself.
    LoopbackCalibration,
    /// Trials were run again because this host had spoilt them.
    Repeated,
    /// Something was not measured, because it does not apply or could not be brought about.
    NotMeasured,
    /// Frames without a signature were counted by the ports' own counters only.
    PortCountersOnly,
    /// What the device says of its own load is missing, or is not of the trial alone.
    DeviceLoad,
}
