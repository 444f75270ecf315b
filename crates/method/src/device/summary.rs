//! The one figure that stands for a device test in lists.

use linerate_model::{
    DeviceFound, Firmness, Headline, HeadlineVerdict, MeasureUnit, Quantity, RunSummary, Throughput, Verdict,
};

/// What a test amounts to so far. Its first rate stands for it: the highest without loss, of echo requests the highest that is
/// answered, of latency and bursts the rate that they were measured at.
pub(super) fn of(found: &DeviceFound) -> RunSummary {
    let DeviceFound { throughput, latency, loss, burst, recovery, echo, addresses, hosts, .. } = found;
    let results = throughput.len()
        + latency.len()
        + loss.len()
        + burst.len()
        + recovery.len()
        + echo.len()
        + usize::from(addresses.is_some())
        + usize::from(hosts.is_some())
        + found.forwarding.len()
        + found.congestion.len()
        + found.forward_pressure.len()
        + found.faults.len()
        + found.broadcast.len();
    let rate = || {
        let Throughput { frame_bytes, frames_per_s, firmness, verdict, .. } = throughput.first()?;
        Some((format!("throughput {frame_bytes}"), *frames_per_s, *firmness, Some(verdict)))
    };
    let echoes = || {
        let first = echo.first()?;
        Some((format!("echo {}", first.frame_bytes), first.answers_per_s, first.firmness, Some(&first.verdict)))
    };
    let timed = || {
        let first = latency.first()?;
        let verdict = first.verdict.as_ref();
        Some((format!("latency {}", first.frame_bytes), first.frames_per_s, first.firmness, verdict))
    };
    let lost = || {
        let (first, point) = (loss.first()?, loss.first()?.points.first()?);
        let verdict = first.verdict.as_ref();
        Some((format!("loss {}", first.frame_bytes), point.offered_frames_per_s, point.firmness, verdict))
    };
    let congested = || {
        let first = found.congestion.first()?;
        let rate = first.groups.iter().map(|group| group.uncongested_frames_per_s).sum();
        Some((format!("congestion {}", first.frame_bytes), rate, first.firmness, Some(&first.verdict)))
    };
    let pressed = || {
        let first = found.forward_pressure.first()?;
        let name = format!("forward pressure {}", first.frame_bytes);
        Some((name, first.forwarded_frames_per_s, Firmness::Firm, Some(&first.verdict)))
    };
    let told: Option<(String, f64, Firmness, Option<&Verdict>)> =
        rate().or_else(echoes).or_else(timed).or_else(lost).or_else(congested).or_else(pressed);
    let verdict = told.as_ref().and_then(|(.., verdict)| *verdict);
    RunSummary {
        results: u32::try_from(results).unwrap_or(u32::MAX),
        verdict: verdict
            .map(|Verdict { limit, confidence, .. }| HeadlineVerdict { limit: *limit, confidence: *confidence }),
        headline: told.map(|(result, value, firmness, _)| Headline {
            result,
            quantity: Quantity::FramesPerS,
            value,
            unit: MeasureUnit::PerS,
            firmness,
            range: None,
            link_share: throughput.first().and_then(|first| first.line_share),
        }),
    }
}
