//! A policer at a port of the device: what exceeds a rate is dropped at once, and nothing waits (bpf/police.bpf.c).
//!
//! The program is the interface's own and goes with it; no process holds it.

use crate::load_failure::{incomplete, object_failed, program_failed};
use aya::programs::SchedClassifier;
use aya::{EbpfLoader, include_bytes_aligned};
use linerate_sys::Error;
use linerate_sys::netlink::Route;
use linerate_units::BitRate;
use std::os::fd::AsFd as _;

/// The compiled program.
const OBJECT: &[u8] = include_bytes_aligned!("../bpf/police.bpf.o");
/// What errors call it.
const WHAT: &str = "the policer";
/// What may pass at once after a pause, as time at the rate: TCP needs some of it, and a tenth of a second would pass for a
/// higher rate in a short trial.
const BURST_NS: u64 = 10_000_000;
/// So many of the longest frames may pass at once however slow it is.
const BURST_FRAMES: u64 = 2;
/// Ethernet header, FCS, preamble and gap.
const AROUND: u64 = 14 + 24;
/// Parts of a nanosecond in which the program keeps the cost of a byte, and moments.
const BYTE_PARTS: u128 = 1 << 28;
const MOMENT_PARTS: u64 = 1 << 12;
const SECOND: u128 = 1_000_000_000;

/// The program's settings, by its names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settings {
    byte_cost: u64,
    burst: u64,
}

impl Settings {
    fn of(rate: BitRate, mtu: u32) -> Self {
        let bits = u128::from(rate.get());
        let byte_cost = u64::try_from((SECOND * 8 * BYTE_PARTS + bits / 2) / bits).unwrap_or(u64::MAX);
        // The frame that takes the last of the burst goes through whole, so one less is waited for.
        let frames = (BURST_FRAMES - 1) * (u64::from(mtu) + AROUND);
        let frames_ns = u64::try_from(u128::from(frames) * 8 * SECOND / bits).unwrap_or(u64::MAX);
        Self { byte_cost, burst: BURST_NS.max(frames_ns) * MOMENT_PARTS }
    }
}

/// Polices to `rate`, counted as on the wire, what goes out by interface `link` of the calling thread's namespace.
pub(crate) fn install(link: u32, rate: BitRate, mtu: u32) -> Result<(), Error> {
    let settings = Settings::of(rate, mtu);
    let mut loader = EbpfLoader::new();
    loader.override_global("byte_cost", &settings.byte_cost, true);
    loader.override_global("burst", &settings.burst, true);
    let mut object = loader.load(OBJECT).map_err(object_failed(WHAT))?;
    let found = object.program_mut("police").ok_or_else(|| incomplete("police"))?;
    let classifier: &mut SchedClassifier = found.try_into().map_err(program_failed(WHAT))?;
    classifier.load().map_err(program_failed(WHAT))?;
    let program = classifier.fd().map_err(program_failed(WHAT))?;
    Route::open()?.police(link, program.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_costs_its_time_and_the_burst_is_ten_milliseconds_or_two_frames() {
        let settings = |rate| Settings::of(BitRate::per_second(rate), 1500);
        assert_eq!(settings(1_000_000_000).byte_cost, 8 << 28);
        assert_eq!(settings(300_000_000).burst, 10_000_000 << 12);
        // A frame of 1,538 bytes takes 192.25 ms.
        assert_eq!(settings(64_000).burst, 192_250_000 << 12);
    }

    #[test]
    fn the_slowest_rate_and_the_longest_train_fit() {
        let settings = Settings::of(BitRate::per_second(64_000), 65_535);
        assert!(settings.byte_cost.checked_mul(2 * 65_535).is_some());
        assert!(settings.burst < 1 << 62);
    }
}
