//! The reference device: an XDP program on each of its ports (bpf/reference.bpf.c).
//!
//! The program is the interfaces' own and goes with them; no process holds it. PAUSE frames are sent by a process
//! (`pause.rs`), because programs cannot make frames.
//!
//! Its limits follow from the clock alone, so a pause costs nothing as long as frames wait at its ports. `watch.rs`
//! says when they could not.

pub mod pause;
mod watch;

pub(crate) use watch::Counters;
pub use watch::{ReferenceCounts, ReferenceWatch};

use crate::linux::load_failure::{incomplete, map_failed, object_failed, program_failed};
use crate::linux::reference_limits::{Queues, ReferenceLimits, Treatment};
use aya::maps::{Array, DevMapHash, HashMap, MapData, RingBuf};
use aya::programs::Xdp;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use linerate_sys::Error;
use linerate_sys::netlink::Route;
use linerate_units::BitRate;
use std::os::fd::{AsFd, OwnedFd};

/// The compiled program.
const OBJECT: &[u8] = include_bytes_aligned!("../../bpf/reference.bpf.o");
/// Name in errors.
const WHAT: &str = "the reference device";
/// Parts of a nanosecond in which the program keeps the cost of a frame.
const FRAME_PARTS: u128 = 1 << 12;
/// Parts of a nanosecond in which it keeps that of a byte.
const BYTE_PARTS: u128 = 1 << 28;
const SECOND: u128 = 1_000_000_000;
/// Burst of echoes or broadcasts, as a part of a second, and its minimum: a longer burst would pass for a higher limit in a short
/// trial.
const BUNCH_SHARE: u64 = 500;
const BUNCH_MINIMUM: u64 = 8;
/// Bytes on the wire around a frame: FCS, preamble and gap.
const AROUND: u64 = 24;
/// Bytes by which forward pressure shortens the gap.
const PRESSURE: u64 = 1;
/// Bytes of a pause quantum, 512 bit times.
const QUANTUM: u128 = 64;
/// Lengths of the shortest and the longest frame without a tag, in bytes without the FCS.
const SHORTEST: u64 = 60;
const LONGEST: u64 = 1_514;
/// Number of the FIFO of a device without FIFOs, and of one with: as many as ports.
const NO_FIFO: u32 = 1;
const FIFOS: u32 = 64;
/// Causes of losses that no limit plants, as the program numbers them.
const HELD_UP: u32 = 0;
const PAUSED_LATE: u32 = 1;

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
    port_byte_cost: u64,
    port_around: u64,
    fifo_frames: u64,
    quantum: u64,
    uplink_byte_cost: u64,
    broadcast_cost: u64,
    broadcast_wait: u64,
    shortest: u64,
    longest: u64,
    port_count: u64,
}

/// Returns the cost of one of `per_second`, in parts of a nanosecond, to the nearest.
fn cost(per_second: u64, parts: u128) -> u64 {
    let rate = u128::from(per_second);
    // The slowest rate that can be a limit fits with room to spare.
    u64::try_from((SECOND * parts + rate / 2) / rate).unwrap_or(u64::MAX)
}

/// Returns the cost of a byte of a line, or zero without a rate.
fn byte_cost(rate: Option<BitRate>) -> u64 {
    rate.map_or(0, |rate| cost(rate.get(), 8 * BYTE_PARTS))
}

/// Returns the cost of one of `rate` per second, and the time that one may wait in a burst; zeros without a rate.
fn turn(rate: Option<u32>) -> (u64, u64) {
    let Some(rate) = rate.map(u64::from) else { return (0, 0) };
    let cost = cost(rate, FRAME_PARTS);
    (cost, cost * (rate / BUNCH_SHARE).max(BUNCH_MINIMUM))
}

impl Settings {
    fn of(limits: &ReferenceLimits, ports: usize) -> Self {
        let (echo_cost, echo_wait) = turn(limits.echo);
        let (broadcast_cost, broadcast_wait) = turn(limits.broadcast);
        let pausing_rate = limits.port_rate.filter(|_| limits.pause);
        Self {
            frame_cost: limits.max_frames.map_or(0, |rate| cost(rate, FRAME_PARTS)),
            byte_cost: byte_cost(limits.max_rate),
            queue: limits.queue.into(),
            loss_part: limits.loss.map_or(0, |loss| loss.part),
            loss_of: limits.loss.map_or(0, |loss| loss.of),
            echo_cost,
            echo_wait,
            port_byte_cost: byte_cost(limits.port_rate),
            port_around: if limits.forward_pressure { AROUND - PRESSURE } else { AROUND },
            fifo_frames: if limits.queues == Queues::Input { limits.queue.into() } else { 0 },
            quantum: pausing_rate.map_or(0, |rate| cost(rate.get(), 8 * QUANTUM * FRAME_PARTS)),
            uplink_byte_cost: byte_cost(limits.uplink),
            broadcast_cost,
            broadcast_wait,
            shortest: if limits.undersize == Treatment::Drop { SHORTEST } else { 0 },
            longest: if limits.oversize == Treatment::Drop { LONGEST } else { 0 },
            port_count: ports as u64,
        }
    }
}

/// Numbers of frames that the program of a reference device dropped although no limit drops them.
pub(crate) struct Unplanned(Array<MapData, u64>);

impl Unplanned {
    /// Returns the frames dropped so far because the program was delayed.
    pub(crate) fn held_up(&self) -> Result<u64, Error> {
        self.frames(HELD_UP)
    }

    /// Returns the frames dropped so far because a PAUSE frame was late or not obeyed.
    pub(crate) fn paused_late(&self) -> Result<u64, Error> {
        self.frames(PAUSED_LATE)
    }

    fn frames(&self, cause: u32) -> Result<u64, Error> {
        self.0.get(&cause, 0).map_err(|error| map_failed("unplanned", &error))
    }
}

/// An installed reference device.
pub(crate) struct Installed {
    /// Its losses that no limit plants.
    pub(crate) unplanned: Unplanned,
    /// The pauses that it asks for, or `None` if it asks for none.
    pub(crate) pauses: Option<OwnedFd>,
}

/// Makes the interfaces of the calling thread's namespace the ports of a reference device.
pub(crate) fn install(limits: &ReferenceLimits) -> Result<Installed, Error> {
    let mut route = Route::open()?;
    let mut ports: Vec<_> = route.links()?.into_iter().filter(|link| !link.loopback).map(|link| link.index).collect();
    ports.sort_unstable();
    let mut loaded = load(limits, ports.len())?;
    let map = loaded.map_mut("ports").ok_or_else(|| incomplete("ports"))?;
    let mut members = DevMapHash::<&mut MapData>::try_from(map).map_err(|error| map_failed("ports", &error))?;
    for port in &ports {
        members.insert(*port, *port, None, 0).map_err(|error| map_failed("ports", &error))?;
    }
    let map = loaded.map_mut("numbers").ok_or_else(|| incomplete("numbers"))?;
    let mut numbers =
        HashMap::<&mut MapData, u32, u32>::try_from(map).map_err(|error| map_failed("numbers", &error))?;
    for (number, port) in (0..).zip(&ports) {
        numbers.insert(port, number, 0).map_err(|error| map_failed("numbers", &error))?;
    }
    let xdp_program = loaded.program_mut("reference").ok_or_else(|| incomplete("reference"))?;
    let xdp: &mut Xdp = xdp_program.try_into().map_err(program_failed(WHAT))?;
    xdp.load().map_err(program_failed(WHAT))?;
    let program = xdp.fd().map_err(program_failed(WHAT))?;
    for port in ports {
        route.set_xdp(port, program.as_fd())?;
    }
    let map = loaded.take_map("unplanned").ok_or_else(|| incomplete("unplanned"))?;
    let unplanned = Array::try_from(map).map(Unplanned).map_err(|error| map_failed("unplanned", &error))?;
    let pauses = if limits.pause { Some(pauses(&mut loaded)?) } else { None };
    Ok(Installed { unplanned, pauses })
}

/// Takes the descriptor of the pauses that the program asks for.
fn pauses(loaded: &mut Ebpf) -> Result<OwnedFd, Error> {
    let map = loaded.take_map("pauses").ok_or_else(|| incomplete("pauses"))?;
    let ring = RingBuf::<MapData>::try_from(map).map_err(|error| map_failed("pauses", &error))?;
    ring.as_fd().try_clone_to_owned().map_err(|error| Error::new("dup", "the pauses of the reference device", error))
}

/// The object with its settings.
fn load(limits: &ReferenceLimits, ports: usize) -> Result<Ebpf, Error> {
    let settings = Settings::of(limits, ports);
    let mut loader = EbpfLoader::new();
    for (name, value) in [
        ("frame_cost", &settings.frame_cost),
        ("byte_cost", &settings.byte_cost),
        ("queue", &settings.queue),
        ("loss_part", &settings.loss_part),
        ("loss_of", &settings.loss_of),
        ("echo_cost", &settings.echo_cost),
        ("echo_wait", &settings.echo_wait),
        ("port_byte_cost", &settings.port_byte_cost),
        ("port_around", &settings.port_around),
        ("fifo_frames", &settings.fifo_frames),
        ("quantum", &settings.quantum),
        ("uplink_byte_cost", &settings.uplink_byte_cost),
        ("broadcast_cost", &settings.broadcast_cost),
        ("broadcast_wait", &settings.broadcast_wait),
        ("shortest", &settings.shortest),
        ("longest", &settings.longest),
        ("port_count", &settings.port_count),
    ] {
        loader.override_global(name, value, true);
    }
    loader.map_max_entries("addresses", limits.addresses);
    loader.map_max_entries("fifos", if limits.queues == Queues::Input { FIFOS } else { NO_FIFO });
    loader.load(OBJECT).map_err(object_failed(WHAT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_rates() {
        let limits: ReferenceLimits = "max-frames=200000,max-rate=1Gbit/s,echo=5000".parse().expect("limits");
        let settings = Settings::of(&limits, 4);
        assert_eq!(settings.frame_cost, 5_000 << 12);
        assert_eq!(settings.byte_cost, 8 << 28);
        assert_eq!((settings.echo_cost, settings.echo_wait), (200_000 << 12, (10 * 200_000) << 12));
        assert_eq!(Settings::of(&ReferenceLimits::default(), 4).loss_part, 0);
    }

    #[test]
    fn ports_cost_what_their_lines_do() {
        let limits =
            "port-rate=10Mbit/s,uplink=20Mbit/s,forward-pressure=true,pause=true,broadcast=1000,undersize=drop";
        let settings = Settings::of(&limits.parse().expect("limits"), 4);
        assert_eq!((settings.port_byte_cost, settings.uplink_byte_cost), (800 << 28, 400 << 28));
        assert_eq!((settings.port_around, settings.quantum), (23, 51_200 << 12));
        assert_eq!((settings.broadcast_cost, settings.broadcast_wait), (1_000_000 << 12, (8 * 1_000_000) << 12));
        assert_eq!((settings.shortest, settings.longest, settings.fifo_frames), (60, 0, 0));
        let limits = "port-rate=10Mbit/s,queues=input,queue=64,oversize=drop";
        let settings = Settings::of(&limits.parse().expect("limits"), 4);
        assert_eq!((settings.fifo_frames, settings.quantum, settings.port_around), (64, 0, 24));
        assert_eq!((settings.shortest, settings.longest, settings.port_count), (0, 1_514, 4));
    }

    #[test]
    fn the_slowest_rate_with_the_longest_queue_fits() {
        let limits: ReferenceLimits = "max-rate=64kbit/s,queue=1000000".parse().expect("limits");
        let settings = Settings::of(&limits, 4);
        let frame = settings.byte_cost.checked_mul(3_500).expect("the cost of a frame fits") >> 16;
        assert!(settings.queue.checked_mul(frame).expect("the wait fits") < 1 << 63);
    }
}
