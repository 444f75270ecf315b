//! The reference device: an XDP program on each of its ports (bpf/reference.bpf.c).
//!
//! The program is the interfaces' own and goes with them; no process holds it.
//!
//! Its limits follow from the clock alone, so a pause costs nothing as long as frames wait at its ports. `watch.rs`
//! says when they could not.

mod watch;

pub(crate) use watch::Counters;
pub use watch::{ReferenceCounts, ReferenceWatch};

use crate::linux::load_failure::{incomplete, map_failed, object_failed, program_failed};
use crate::linux::reference_limits::ReferenceLimits;
use aya::maps::{Array, DevMapHash, MapData};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use linerate_sys::Error;
use linerate_sys::netlink::Route;
use std::os::fd::AsFd;

/// The compiled program.
const OBJECT: &[u8] = include_bytes_aligned!("../../bpf/reference.bpf.o");
/// Name in errors.
const WHAT: &str = "the reference device";
/// Parts of a nanosecond in which the program keeps the cost of a frame.
const FRAME_PARTS: u128 = 1 << 12;
/// Parts of a nanosecond in which it keeps that of a byte.
const BYTE_PARTS: u128 = 1 << 28;
const SECOND: u128 = 1_000_000_000;
/// Burst of echoes, as a part of a second, and its minimum: a longer burst would pass for a higher limit in a short
/// trial.
const ECHO_BUNCH_SHARE: u64 = 500;
const ECHO_BUNCH_MINIMUM: u64 = 8;

/// The program's settings, by its names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Settings {
    frame_cost: u64,
    byte_cost: u64,
    queue: u64,
    loss_part: u64,
    loss_of: u64,
    echo_cost: u64,
    echo_wait: u64,
}

impl Settings {
    fn of(limits: &ReferenceLimits) -> Self {
        let cost = |per_second: u64, parts: u128| {
            // To the nearest; the slowest rate that can be a limit fits with room to spare.
            let rate = u128::from(per_second);
            u64::try_from((SECOND * parts + rate / 2) / rate).unwrap_or(u64::MAX)
        };
        let echo = limits.echo.map(u64::from);
        let echo_cost = echo.map_or(0, |rate| cost(rate, FRAME_PARTS));
        let bunch = echo.map_or(0, |rate| (rate / ECHO_BUNCH_SHARE).max(ECHO_BUNCH_MINIMUM));
        Self {
            frame_cost: limits.max_frames.map_or(0, |rate| cost(rate, FRAME_PARTS)),
            byte_cost: limits.max_rate.map_or(0, |rate| cost(rate.get(), 8 * BYTE_PARTS)),
            queue: limits.queue.into(),
            loss_part: limits.loss.map_or(0, |loss| loss.part),
            loss_of: limits.loss.map_or(0, |loss| loss.of),
            echo_cost,
            echo_wait: bunch * echo_cost,
        }
    }
}

/// Number of frames that the program of a reference device dropped because it was delayed.
pub(crate) struct HeldUp(Array<MapData, u64>);

impl HeldUp {
    /// Returns the number so far.
    pub(crate) fn frames(&self) -> Result<u64, Error> {
        self.0.get(&0, 0).map_err(|error| map_failed("held_up", &error))
    }
}

/// Makes the interfaces of the calling thread's namespace the ports of a reference device.
pub(crate) fn install(limits: &ReferenceLimits) -> Result<HeldUp, Error> {
    let mut route = Route::open()?;
    let ports: Vec<_> = route.links()?.into_iter().filter(|link| !link.loopback).map(|link| link.index).collect();
    let mut loaded = load(limits)?;
    let map = loaded.map_mut("ports").ok_or_else(|| incomplete("ports"))?;
    let mut members = DevMapHash::<&mut MapData>::try_from(map).map_err(|error| map_failed("ports", &error))?;
    for port in &ports {
        members.insert(*port, *port, None, 0).map_err(|error| map_failed("ports", &error))?;
    }
    let xdp_program = loaded.program_mut("reference").ok_or_else(|| incomplete("reference"))?;
    let xdp: &mut Xdp = xdp_program.try_into().map_err(program_failed(WHAT))?;
    xdp.load().map_err(program_failed(WHAT))?;
    let program = xdp.fd().map_err(program_failed(WHAT))?;
    for port in ports {
        route.set_xdp(port, program.as_fd())?;
    }
    let held_up = loaded.take_map("held_up").ok_or_else(|| incomplete("held_up"))?;
    Array::try_from(held_up).map(HeldUp).map_err(|error| map_failed("held_up", &error))
}

/// The object with its settings.
fn load(limits: &ReferenceLimits) -> Result<Ebpf, Error> {
    let settings = Settings::of(limits);
    let mut loader = EbpfLoader::new();
    for (name, value) in [
        ("frame_cost", &settings.frame_cost),
        ("byte_cost", &settings.byte_cost),
        ("queue", &settings.queue),
        ("loss_part", &settings.loss_part),
        ("loss_of", &settings.loss_of),
        ("echo_cost", &settings.echo_cost),
        ("echo_wait", &settings.echo_wait),
    ] {
        loader.override_global(name, value, true);
    }
    loader.map_max_entries("addresses", limits.addresses);
    loader.load(OBJECT).map_err(object_failed(WHAT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_rates() {
        let limits: ReferenceLimits = "max-frames=200000,max-rate=1Gbit/s,echo=5000".parse().expect("limits");
        let settings = Settings::of(&limits);
        assert_eq!(settings.frame_cost, 5_000 << 12);
        assert_eq!(settings.byte_cost, 8 << 28);
        assert_eq!((settings.echo_cost, settings.echo_wait), (200_000 << 12, (10 * 200_000) << 12));
        assert_eq!(Settings::of(&ReferenceLimits::default()).loss_part, 0);
    }

    #[test]
    fn the_slowest_rate_with_the_longest_queue_fits() {
        let limits: ReferenceLimits = "max-rate=64kbit/s,queue=1000000".parse().expect("limits");
        let settings = Settings::of(&limits);
        let frame = settings.byte_cost.checked_mul(3_500).expect("the cost of a frame fits") >> 16;
        assert!(settings.queue.checked_mul(frame).expect("the wait fits") < 1 << 63);
    }
}
