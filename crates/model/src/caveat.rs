//! Caveats: limitations of a result that its reader must know.

use crate::Message;
use crate::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A limitation of a result that its reader must know, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Caveat {
    /// Kind of the caveat.
    pub kind: CaveatKind,
    /// The caveat with its numbers, and what to do about it.
    #[serde(flatten)]
    pub text: Message,
}

impl Caveat {
    /// Returns a caveat of `kind`.
    pub fn new(kind: CaveatKind, text: Message) -> Self {
        Self { kind, text }
    }
}

named! {
    /// Kind of a caveat. The words are its heading.
    pub enum CaveatKind as "caveat-kind" {
        /// Both ends ran on one machine and shared its cores.
        SharedMachine = "shared-machine", "both ends on one machine";
        /// The kernel moved joined segments that were never cut into packets: rates are not packets on a wire.
        OffloadNotOnWire = "offload-not-on-wire", "rate of memory, not of a wire";
        /// The hypervisor took CPU time from this host during the window.
        CpuStolen = "cpu-stolen", "hypervisor took CPU time";
        /// Fewer datagrams were offered than asked for.
        BelowOfferedRate = "below-offered-rate", "less offered than asked for";
        /// The runs differ by more than a decision allows.
        WideSpread = "wide-spread", "runs differ widely";
        /// Too few runs for a spread.
        FewRuns = "few-runs", "too few runs for a spread";
        /// Repeats stopped at their bound before the interval was as narrow as asked.
        NotConverged = "not-converged", "interval wider than asked for";
        /// Cores sleep between requests, so wake-up time is in every latency.
        IdleWakeup = "idle-wakeup", "wake-up time in latencies";
        /// The receiver let the kernel throw its data away uncopied.
        Discarded = "discarded", "receiver discarded the data";
        /// The link's speed is unknown, so no share of it can be given.
        UnknownLinkSpeed = "unknown-link-speed", "link speed unknown";
        /// More arrived in the window than the line carries in that time: data held back before it counted in it.
        AboveLimit = "above-limit", "more than the line carries";
        /// A host counted over a time well apart from the window asked for: it was kept from its cores at the window's edges.
        OffWindow = "off-window", "window not kept";
        /// The receiver's rate is not the rate of what was sent and arrived: datagrams were delayed across an edge of the window.
        WindowEdges = "window-edges", "data delayed at a window's edge";
        /// The window was too few round trips long.
        FewRoundTrips = "few-round-trips", "window of few round trips";
        /// The path carried nothing for a part of the window.
        Outage = "outage", "outage";
        /// The window held too few packets for an exact rate.
        FewPackets = "few-packets", "window of few packets";
        /// The requests that time the path took a visible share of it.
        ProbeShare = "probe-share", "latency probes took a share";
        /// Datagrams were larger than the path's MTU and left in fragments.
        Fragments = "fragments", "datagrams in fragments";
        /// Datagrams arrived with another DSCP than they were sent with.
        DscpChanged = "dscp-changed", "DSCP changed on the path";
        /// Routers of the path were replaced by others while it was probed.
        PathChanged = "path-changed", "path changed";
        /// The rate went up or down within the window.
        NotSteady = "not-steady", "rate not steady";
        /// The lab's path or reference device did not keep its limits: frames left late, or were lost for want of time.
        BenchLimits = "bench-limits", "the lab's device missed its limits";
        /// One end ran no agent: it counted by itself, and its host was not watched.
        OneSided = "one-sided", "one end without an agent";
        /// Other traffic crossed the interface during the window.
        OtherTraffic = "other-traffic", "other traffic on the interface";
        /// The place of a loss is uncertain.
        PlaceUnsure = "place-unsure", "place of loss uncertain";
        /// A flow ended before its window did; what it had counted until then is kept.
        CutShort = "cut-short", "a flow ended early";
        /// The window's longest time ended it before all of its volume was sent; what was counted until then is kept.
        VolumeNotSent = "volume-not-sent", "not all bytes were sent";
        /// A copy is without something that its tree has, as was asked.
        LeftOut = "left-out", "not all was copied";
        /// Something that was made on a server could not be removed.
        LeftBehind = "left-behind", "something left on a server";
        /// The run was interrupted; what was measured until then is kept.
        Interrupted = "interrupted", "interrupted";
        /// This is the tester's own limit, measured without the device.
        TesterLimit = "tester-limit", "this is the tester's own limit";
        /// A feature was not available here and something slower stood in.
        Fallback = "fallback", "a slower method stood in";
        /// The trial that decided was shorter than the standard asks.
        ShortTrial = "short-trial", "trial shorter than the standard";
        /// The tester's limit is not known.
        NotCalibrated = "not-calibrated", "tester limit unknown";
        /// The tester's limit was measured long before this run.
        OldCalibration = "old-calibration", "tester limit measured long ago";
        /// The tester's limit is an upper estimate: each host was measured against itself.
        LoopbackCalibration = "loopback-calibration", "tester limit by loopback";
        /// Trials were run again because this host had spoilt them.
        Repeated = "repeated", "trials repeated";
        /// Something was not measured, because it does not apply or could not be brought about.
        NotMeasured = "not-measured", "something was not measured";
        /// Frames without a signature were counted by the ports' own counters only.
        PortCountersOnly = "port-counters-only", "counted by ports alone";
        /// What the device says of its own load is missing, or is not of the trial alone.
        DeviceLoad = "device-load", "device's load incomplete";
    }
}
