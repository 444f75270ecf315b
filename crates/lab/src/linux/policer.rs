//! A policer: what exceeds a rate is dropped at once, and nothing waits (bpf/police.bpf.c).
//!
//! The program is the interface's own and goes with it; no process holds it.

use crate::linux::load_failure::{incomplete, object_failed, program_failed};
use aya::programs::SchedClassifier;
use aya::{EbpfLoader, include_bytes_aligned};
use linerate_sys::Error;
use linerate_sys::netlink::Route;
use linerate_sys::shaping::Way;
use linerate_units::{BitRate, FrameRate};
use std::os::fd::AsFd as _;

/// The compiled program.
const OBJECT: &[u8] = include_bytes_aligned!("../../bpf/police.bpf.o");
/// Name in errors.
const WHAT: &str = "the policer";
/// Burst after a pause, as time at the rate: TCP needs some of it, and a tenth of a second would pass for a higher rate
/// in a short trial.
const BURST_NS: u64 = 10_000_000;
/// Smallest burst, in longest frames.
const BURST_FRAMES: u64 = 2;
/// Ethernet header, FCS, preamble and gap.
const AROUND: u64 = 14 + 24;
/// Parts of a nanosecond in which the program keeps the cost of a byte, and moments.
const BYTE_PARTS: u128 = 1 << 28;
const MOMENT_PARTS: u64 = 1 << 12;
const SECOND: u128 = 1_000_000_000;

/// Limits, by the program's names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    byte_cost: u64,
    frame_cost: u64,
    burst: u64,
}

impl Limit {
    /// Frames of an MTU at a rate counted as on the wire.
    pub(crate) fn bits(rate: BitRate, mtu: u32) -> Self {
        let bits = u128::from(rate.get());
        let byte_cost = u64::try_from((SECOND * 8 * BYTE_PARTS + bits / 2) / bits).unwrap_or(u64::MAX);
        // The frame that takes the last of the burst goes through whole, so one less is waited for.
        let frames = (BURST_FRAMES - 1) * (u64::from(mtu) + AROUND);
        let frames_ns = u64::try_from(u128::from(frames) * 8 * SECOND / bits).unwrap_or(u64::MAX);
        Self { byte_cost, frame_cost: 0, burst: BURST_NS.max(frames_ns) * MOMENT_PARTS }
    }

    /// Frames at a rate of their own, `burst` of them back to back.
    pub(crate) fn frames(rate: FrameRate, burst: u32) -> Self {
        let frame_cost = u64::try_from(SECOND * u128::from(MOMENT_PARTS) / u128::from(rate.get().max(1)));
        let frame_cost = frame_cost.unwrap_or(u64::MAX);
        Self { byte_cost: 0, frame_cost, burst: u64::from(burst.saturating_sub(1)).saturating_mul(frame_cost) }
    }
}

/// Polices to `limit` what goes that way through interface `link` of the calling thread's namespace.
pub(crate) fn install(link: u32, way: Way, limit: &Limit) -> Result<(), Error> {
    let mut loader = EbpfLoader::new();
    loader.override_global("byte_cost", &limit.byte_cost, true);
    loader.override_global("frame_cost", &limit.frame_cost, true);
    loader.override_global("burst", &limit.burst, true);
    let mut object = loader.load(OBJECT).map_err(object_failed(WHAT))?;
    let found = object.program_mut("police").ok_or_else(|| incomplete("police"))?;
    let classifier: &mut SchedClassifier = found.try_into().map_err(program_failed(WHAT))?;
    classifier.load().map_err(program_failed(WHAT))?;
    let program = classifier.fd().map_err(program_failed(WHAT))?;
    Route::open()?.filter_by(link, way, program.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_costs_its_time_and_the_burst_is_ten_milliseconds_or_two_frames() {
        let settings = |rate| Limit::bits(BitRate::per_second(rate), 1500);
        assert_eq!(settings(1_000_000_000).byte_cost, 8 << 28);
        assert_eq!(settings(300_000_000).burst, 10_000_000 << 12);
        // A frame of 1,538 bytes takes 192.25 ms.
        assert_eq!(settings(64_000).burst, 192_250_000 << 12);
    }

    #[test]
    fn the_slowest_rate_and_the_longest_train_fit() {
        let settings = Limit::bits(BitRate::per_second(64_000), 65_535);
        assert!(settings.byte_cost.checked_mul(2 * 65_535).is_some());
        assert!(settings.burst < 1 << 62);
    }

    #[test]
    fn a_frame_costs_its_time_whatever_its_length() {
        let limit = Limit::frames(FrameRate::per_second(20_000), 200);
        assert_eq!((limit.byte_cost, limit.frame_cost), (0, 50_000 << 12));
        // What is let through last makes the burst full.
        assert_eq!(limit.burst, 199 * (50_000 << 12));
        let slowest = Limit::frames(FrameRate::per_second(1), 5);
        assert!(slowest.burst < 1 << 62, "{slowest:?}");
    }
}
