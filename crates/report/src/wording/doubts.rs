//! Doubts in a few words each, for the heading above their sentences and for the short answer in a terminal.

use crate::language::Language;
use linerate_model::{Caveat, CaveatKind};

/// The doubts in a few words, each kind once, in the order of `caveats`.
pub(crate) fn in_short<'a>(lang: Language, caveats: impl Iterator<Item = &'a Caveat>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for caveat in caveats {
        let short = lang.tell(key(caveat.kind), &[]);
        if !all.contains(&short) {
            all.push(short);
        }
    }
    all
}

/// The message that says a kind of doubt in a few words.
fn key(kind: CaveatKind) -> &'static str {
    match kind {
        CaveatKind::SharedMachine => "doubt-shared-machine",
        CaveatKind::OffloadNotOnWire => "doubt-offload-not-on-wire",
        CaveatKind::CpuStolen => "doubt-cpu-stolen",
        CaveatKind::BelowOfferedRate => "doubt-below-offered-rate",
        CaveatKind::WideSpread => "doubt-wide-spread",
        CaveatKind::FewRuns => "doubt-few-runs",
        CaveatKind::NotConverged => "doubt-not-converged",
        CaveatKind::IdleWakeup => "doubt-idle-wakeup",
        CaveatKind::Discarded => "doubt-discarded",
        CaveatKind::UnknownLinkSpeed => "doubt-unknown-link-speed",
        CaveatKind::AboveLimit => "doubt-above-limit",
        CaveatKind::OffWindow => "doubt-off-window",
        CaveatKind::FewRoundTrips => "doubt-few-round-trips",
        CaveatKind::Outage => "doubt-outage",
        CaveatKind::FewPackets => "doubt-few-packets",
        CaveatKind::ProbeShare => "doubt-probe-share",
        CaveatKind::Fragments => "doubt-fragments",
        CaveatKind::NotSteady => "doubt-not-steady",
        CaveatKind::BenchLimits => "doubt-bench-limits",
        CaveatKind::OneSided => "doubt-one-sided",
        CaveatKind::OtherTraffic => "doubt-other-traffic",
        CaveatKind::PlaceUnsure => "doubt-place-unsure",
        CaveatKind::CutShort => "doubt-cut-short",
        CaveatKind::VolumeNotSent => "doubt-volume-not-sent",
        CaveatKind::LeftOut => "doubt-left-out",
        CaveatKind::LeftBehind => "doubt-left-behind",
        CaveatKind::Interrupted => "doubt-interrupted",
        CaveatKind::TesterLimit => "doubt-tester-limit",
        CaveatKind::Fallback => "doubt-fallback",
        CaveatKind::ShortTrial => "doubt-short-trial",
        CaveatKind::OldCalibration => "doubt-old-calibration",
        CaveatKind::LoopbackCalibration => "doubt-loopback-calibration",
        CaveatKind::NotCalibrated => "doubt-not-calibrated",
        CaveatKind::Repeated => "doubt-repeated",
        CaveatKind::NotMeasured => "doubt-not-measured",
        CaveatKind::PortCountersOnly => "doubt-port-counters-only",
        CaveatKind::DeviceLoad => "doubt-device-load",
    }
}
