//! The XDP programs of the frame tester: loading, attaching, running, reading.
//!
//! The programs are crates/frames/bpf/*.bpf.c; the maps' layouts here are theirs. Every program is attached by a bpf_link,
//! which the kernel takes away with the last descriptor: nothing stays behind however the process ends.

use crate::Error;
use crate::namespace::NetNamespace;
use aya::maps::{Array, Map, MapData, MapError};
use aya::programs::{ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use std::io;

pub use aya::include_bytes_aligned;

/// Bytes of a frame that the program writes: headers, signature, filling.
pub const HEAD: usize = 88;
const HEAD_WORDS: usize = HEAD / 8;
/// struct stream of transmit.bpf.c, in words of 64 bits.
const STREAM_WORDS: usize = HEAD_WORDS + 14;
/// struct lane.
const LANE_WORDS: usize = 3;
/// struct counters of receive.bpf.c.
const COUNTER_WORDS: usize = 9;
/// Durations that are told apart by the nanosecond.
const FINEST: usize = 512;
const PER_OCTAVE: usize = 256;
const BUCKETS: usize = FINEST + 25 * PER_OCTAVE;
/// One call ends after so many turns, 20 to 200 ms. Each call has a pool of pages of its own, which a kernel thread takes down
/// later on the same core: a call of a millisecond made it hold up the sender for half of one, 20 times a second.
const TURNS: u32 = 1 << 18;

/// A stream to be sent.
#[derive(Debug, Clone)]
pub struct TransmitStream {
    /// The frame's first bytes.
    pub head: [u8; HEAD],
    /// Where the signature begins in it.
    pub signature_at: u32,
    /// Bytes of the frame, FCS not counted.
    pub length: u32,
    /// The number of the interface that sends.
    pub link: u32,
    /// When sending begins, on [`crate::clock::now`]'s clock.
    pub start: u64,
    /// Nothing is sent from here on.
    pub end: u64,
    /// Between frames, in 2^-32 ns; 0 sends without pause.
    pub gap: u128,
    /// So many frames at the most; 0 for no limit.
    pub limit: u64,
}

/// What was sent of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Frames given to the port.
    pub sent: u64,
    /// When the first was.
    pub first: u64,
    /// When the last was.
    pub last: u64,
}

/// A sending program and the streams that it sends in turn, frame by frame.
pub struct Lane {
    program: Ebpf,
    streams: Array<MapData, [u64; STREAM_WORDS]>,
    lane: Array<MapData, [u64; LANE_WORDS]>,
    count: u32,
    /// The longest frame; the program cuts it to each stream's.
    frame: Vec<u8>,
    /// Where the program is attached, see [`Lane::load`].
    _namespace: NetNamespace,
}

impl Lane {
    /// Loads the program for `streams`.
    pub fn load(object: &[u8], streams: &[TransmitStream]) -> Result<Self, Error> {
        let count = streams.len() as u32;
        let mut program = EbpfLoader::new()
            .map_max_entries("streams", count.max(1))
            .load(object)
            .map_err(|error| Error::new("bpf(BPF_MAP_CREATE)", "the sending program", cause(&error)))?;
        // A program that is attached nowhere costs two grace periods a call, 25 ms: the kernel builds its dispatcher anew
        // each time. Attached to the loopback interface of an empty namespace, a call costs 12 us.
        let namespace = NetNamespace::new()?;
        namespace.enter(|| {
            let xdp = xdp(&mut program, "transmit")?;
            xdp.load().map_err(|error| failed("bpf(BPF_PROG_LOAD)", "the sending program", error))?;
            xdp.attach("lo", XdpMode::Skb)
                .map_err(|error| failed("bpf(BPF_LINK_CREATE)", "lo of an empty namespace", error))
        })??;
        let mut map: Array<_, [u64; STREAM_WORDS]> = array(&mut program, "streams")?;
        for (index, stream) in (0..).zip(streams) {
            map.set(index, words(stream), 0).map_err(|error| map_failed("streams", error))?;
        }
        let mut lane: Array<_, [u64; LANE_WORDS]> = array(&mut program, "lanes")?;
        lane.set(0, [u64::from(count), 0, 0], 0).map_err(|error| map_failed("lanes", error))?;
        let longest = streams.iter().map(|stream| stream.length).max().unwrap_or_default();
        Ok(Self { program, streams: map, lane, count, frame: vec![0; longest as usize], _namespace: namespace })
    }

    /// Sends what is due for 20 to 200 ms, in batches of `batch` turns. False once all streams have ended.
    pub fn send(&self, batch: u32) -> Result<bool, Error> {
        // struct xdp_md: where the data begins and ends; the rest stays 0.
        let mut context = [0; 24];
        context[4..8].copy_from_slice(&(self.frame.len() as u32).to_ne_bytes());
        let xdp: &Xdp = self
            .program
            .program("transmit")
            .and_then(|program| program.try_into().ok())
            .ok_or_else(|| Error::new("bpf(BPF_PROG_TEST_RUN)", "transmit", io::ErrorKind::NotFound))?;
        let run = xdp.test_run(TestRunOptions {
            data_in: Some(&self.frame),
            ctx_in: Some(&context),
            repeat: TURNS,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::default()
        });
        match run.map_err(|error| failed("bpf(BPF_PROG_TEST_RUN)", "the sending program", error)) {
            Err(error) if error.source.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let [.., done] = self.lane.get(&0, 0).map_err(|error| map_failed("lanes", error))?;
        Ok(done < u64::from(self.count))
    }

    /// What was sent of the stream at `index`.
    pub fn sent(&self, index: u32) -> Result<Transmitted, Error> {
        let words = self.streams.get(&index, 0).map_err(|error| map_failed("streams", error))?;
        let [sent, first, last] = [10, 11, 12].map(|word| words[HEAD_WORDS + word]);
        Ok(Transmitted { sent, first, last })
    }
}

/// struct stream of transmit.bpf.c.
fn words(stream: &TransmitStream) -> [u64; STREAM_WORDS] {
    let mut words = [0; STREAM_WORDS];
    for (word, bytes) in words.iter_mut().zip(stream.head.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words[HEAD_WORDS..HEAD_WORDS + 9].copy_from_slice(&[
        u64::from(stream.signature_at),
        u64::from(stream.length),
        u64::from(stream.link),
        stream.start,
        stream.end,
        (stream.gap >> 32) as u64,
        (stream.gap & 0xffff_ffff) as u64,
        stream.limit,
        stream.start,
    ]);
    words
}

/// What arrived of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Frames at the port they were meant for, duplicates left out.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Frames behind one with a higher number.
    pub reordered: u64,
    /// Frames at other ports.
    pub flooded: u64,
    /// When the first arrived.
    pub first: u64,
    /// When the last arrived.
    pub last: u64,
    /// One above the highest number.
    pub expected: u64,
    /// When the last frame was sent before which numbers were missing.
    pub last_gap: Option<u64>,
}

/// The receiving program, attached to all ports of a trial until it is dropped.
pub struct Receiver {
    counters: Array<MapData, [u64; COUNTER_WORDS]>,
    latencies: Array<MapData, [u64; BUCKETS]>,
    generic: Vec<(u32, Error)>,
    _program: Ebpf,
}

impl Receiver {
    /// Loads the program for the trial `tag` and attaches it to `ports`; the stream at index i is to arrive at interface
    /// `destinations[i]`.
    pub fn attach(object: &[u8], tag: u16, destinations: &[u32], ports: &[u32]) -> Result<Self, Error> {
        let count = destinations.len() as u32;
        let mut loader = EbpfLoader::new();
        for map in ["counters", "numbers", "latencies"] {
            loader.map_max_entries(map, count.max(1));
        }
        let mut program = loader
            .load(object)
            .map_err(|error| Error::new("bpf(BPF_MAP_CREATE)", "the receiving program", cause(&error)))?;
        let mut settings: Array<_, [u64; 2]> = array(&mut program, "settings")?;
        settings.set(0, [u64::from(tag), u64::from(count)], 0).map_err(|error| map_failed("settings", error))?;
        let mut counters: Array<_, [u64; COUNTER_WORDS]> = array(&mut program, "counters")?;
        for (index, link) in (0..).zip(destinations) {
            let mut words = [0; COUNTER_WORDS];
            words[0] = u64::from(*link);
            counters.set(index, words, 0).map_err(|error| map_failed("counters", error))?;
        }
        let latencies = array(&mut program, "latencies")?;

        let xdp = xdp(&mut program, "receive")?;
        xdp.load().map_err(|error| failed("bpf(BPF_PROG_LOAD)", "the receiving program", error))?;
        let mut generic = Vec::new();
        for &port in ports {
            let object = || format!("interface {port}");
            if let Err(error) = xdp.attach_to_if_index(port, XdpMode::Driver) {
                let native = failed("bpf(BPF_LINK_CREATE)", object(), error);
                if native.source.raw_os_error() == Some(libc::EBUSY) {
                    return Err(native);
                }
                xdp.attach_to_if_index(port, XdpMode::Skb)
                    .map_err(|error| failed("bpf(BPF_LINK_CREATE, generic)", object(), error))?;
                generic.push((port, native));
            }
        }
        Ok(Self { counters, latencies, generic, _program: program })
    }

    /// The ports whose driver does not take the program, and why: there it runs later, in the generic path.
    pub fn generic(&self) -> &[(u32, Error)] {
        &self.generic
    }

    /// What arrived of the stream at `index` so far.
    pub fn arrived(&self, index: u32) -> Result<Arrived, Error> {
        let [_, received, duplicates, reordered, flooded, first, last, expected, last_gap] =
            self.counters.get(&index, 0).map_err(|error| map_failed("counters", error))?;
        let last_gap = (last_gap != 0).then_some(last_gap);
        Ok(Arrived { received, duplicates, reordered, flooded, first, last, expected, last_gap })
    }

    /// The latencies of the stream at `index`: nanoseconds and how many frames.
    pub fn latencies(&self, index: u32) -> Result<Vec<(u64, u64)>, Error> {
        let buckets = self.latencies.get(&index, 0).map_err(|error| map_failed("latencies", error))?;
        Ok(buckets
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(at, count)| (middle(at), *count))
            .collect())
    }
}

/// The duration in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let Some(beyond) = bucket.checked_sub(FINEST) else { return bucket as u64 };
    let (shift, step) = (beyond / PER_OCTAVE + 1, beyond % PER_OCTAVE + PER_OCTAVE);
    ((step as u64) << shift) + (1 << (shift - 1))
}

fn xdp<'a>(program: &'a mut Ebpf, name: &'static str) -> Result<&'a mut Xdp, Error> {
    program
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Error::new("reading the BPF object", name, io::ErrorKind::NotFound))
}

fn array<const WORDS: usize>(program: &mut Ebpf, name: &'static str) -> Result<Array<MapData, [u64; WORDS]>, Error> {
    let map: Map =
        program.take_map(name).ok_or_else(|| Error::new("reading the BPF object", name, io::ErrorKind::NotFound))?;
    map.try_into().map_err(|error| map_failed(name, error))
}

fn map_failed(map: &str, error: MapError) -> Error {
    let source = match error {
        MapError::SyscallError(error) => error.io_error,
        other => cause(&other),
    };
    Error::new("bpf(map)", map, source)
}

fn failed(call: &'static str, object: impl Into<String>, error: ProgramError) -> Error {
    let source = match error {
        ProgramError::SyscallError(error) => error.io_error,
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            match log.trim().is_empty() {
                true => io_error,
                false => io::Error::new(io_error.kind(), format!("{io_error}: the verifier says: {log}")),
            }
        }
        other => cause(&other),
    };
    Error::new(call, object, source)
}

/// An error with all that led to it. The kernel's own word, if there is one, is the last.
fn cause(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let mut text = error.to_string();
    let mut kind = io::ErrorKind::Other;
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            kind = io.kind();
        }
        text = format!("{text}: {error}");
        next = error.source();
    }
    io::Error::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_named_by_their_middle() {
        assert_eq!([0, 511, 512, 767, 768].map(middle), [0, 511, 513, 1023, 1026]);
        let last = middle(BUCKETS - 1);
        assert!(last < 1 << 34 && last > (1 << 34) - (1 << 26), "{last}");
    }
}
