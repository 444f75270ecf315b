//! The XDP programs of the frame tester: loading, attaching, running, reading.
//!
//! The programs are crates/frames/bpf/*.bpf.c; the maps' layouts here are theirs. Every program is attached by a bpf_link,
//! which the kernel takes away with the last descriptor: nothing stays behind however the process ends.

use crate::Error;
use crate::namespace::NetNamespace;
use aya::maps::{Array, DevMap, HashMap, Map, MapData, MapError};
use aya::programs::{ProgramError, RawTracePoint, TestRun, TestRunAttrs, TestRunOptions, Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use std::io;

pub use aya::include_bytes_aligned;

/// Bytes of a frame that the program writes: headers, signature, filling.
pub const HEAD: usize = 104;
/// Frames after which a mix of sizes must begin anew.
const ROUND: usize = 64;
/// Fields that may vary.
const CHANGES: usize = 4;
/// struct change of transmit.bpf.c, in words of 64 bits: two numbers in each.
const CHANGE_WORDS: usize = 4;
/// struct frame.
const FRAME_WORDS: usize = HEAD / 8 + 1;
/// What struct stream says of when and where, then the sizes of a round, the changes, and what is the program's.
const ORDER_WORDS: usize = 16;
const SIZES_WORDS: usize = ROUND / 8;
const PROGRAM: usize = ORDER_WORDS + SIZES_WORDS + CHANGES * CHANGE_WORDS;
/// struct stream.
const STREAM_WORDS: usize = PROGRAM + 7;
/// struct lane.
const LANE_WORDS: usize = 7;
/// struct counters of receive.bpf.c.
const COUNTER_WORDS: usize = 11;
/// Most ports that each frame of a stream may arrive at.
pub const RECEIVERS: usize = 64;
/// Durations that are told apart by the nanosecond.
const FINEST: usize = 512;
const PER_OCTAVE: usize = 256;
const BUCKETS: usize = FINEST + 25 * PER_OCTAVE;
/// One call ends after so many turns, 20 to 200 ms. Each call has a pool of pages of its own, which a kernel thread takes down
/// later on the same core: a call of a millisecond made it hold up the sender for half of one, 20 times a second.
const TURNS: u32 = 1 << 18;
/// Batches of so many turns are for speed, in others each frame's own time counts.
const FAST: u32 = 64;
/// Where each frame's own time counts, a delay is made up for by gaps that are shorter by this part of themselves: soon enough to
/// keep the mean rate on a machine that pauses for a few hundredths of the time, and never a burst.
const SHORTER: u128 = 16;
/// What a turn takes, nanoseconds, where its frame wakes another core and nothing holds it up.
const TURN: u64 = 1000;
/// Time of a turn on a slow core, nanoseconds.
const SLOW_TURN: u64 = 2000;
/// Longest delay that a sender makes up for, nanoseconds.
const CATCH_UP: u64 = 100_000;
/// Turns of a fast lane, and frames of one poll, for which one reading of the clock may serve.
const READING: u64 = 8;

/// A frame to be sent.
#[derive(Debug, Clone)]
pub struct TransmitFrame {
    /// Its first bytes.
    pub head: [u8; HEAD],
    /// Bytes of it, FCS not counted; at least 14.
    pub length: u32,
}

/// A field that varies from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldChange {
    /// Where in the frame it begins: an even number.
    pub at: u32,
    /// It has four bytes, otherwise two.
    pub wide: bool,
    /// Its first value.
    pub base: u32,
    /// How many values it takes, at least one.
    pub count: u32,
    /// By chance, otherwise one after the other.
    pub random: bool,
    /// Where the IPv4 header's checksum is, if it covers the field; 0 for none.
    pub ip_checksum: u32,
    /// Where the transport's checksum is, if it covers the field; 0 for none.
    pub transport_checksum: u32,
    /// The latter is UDP's.
    pub udp: bool,
}

/// A stream to be sent.
#[derive(Debug, Clone)]
pub struct TransmitStream {
    /// Its frame; of a mix one for each size.
    pub frames: Vec<TransmitFrame>,
    /// Which of them comes when, at most 64; then again from the first.
    pub round: Vec<u8>,
    /// Fields that vary, at most four.
    pub changes: Vec<FieldChange>,
    /// Where the signature begins in a frame; none leaves the frames unsigned.
    pub signature_at: Option<u32>,
    /// The number of the interface that sends.
    pub link: u32,
    /// When sending begins, on [`crate::clock::now`]'s clock.
    pub start: u64,
    /// Nothing is sent from here on.
    pub end: u64,
    /// Between frames, in 2^-32 ns; 0 sends without pause.
    pub gap: u128,
    /// Number of frames in a burst, at least 1.
    pub burst: u64,
    /// Further time after each burst, in 2^-32 ns.
    pub rest: u128,
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
    /// For how long in all the sender was held up, nanoseconds, beyond what it made up for.
    pub held_up: u64,
}

/// A sending program and the streams that it sends in turn, frame by frame.
pub struct Lane {
    program: Ebpf,
    streams: Array<MapData, [u64; STREAM_WORDS]>,
    lane: Array<MapData, [u64; LANE_WORDS]>,
    count: u32,
    batch: u32,
    /// As long as the longest frame; the program cuts it to each stream's, and writes the head.
    frame: Vec<u8>,
    /// Where the program is attached, see [`Lane::load`].
    _namespace: NetNamespace,
}

impl Lane {
    /// Loads the program for `streams`, to be sent in batches of `batch` turns: many are fast, few are exact. Behind their
    /// heads all frames are as `filling` is there, and zero beyond its end.
    pub fn load(object: &[u8], streams: &[TransmitStream], filling: &[u8], batch: u32) -> Result<Self, Error> {
        let count = streams.len() as u32;
        let mut links: Vec<u32> = streams.iter().map(|stream| stream.link).collect();
        links.sort_unstable();
        links.dedup();
        let frames: Vec<&TransmitFrame> = streams.iter().flat_map(|stream| &stream.frames).collect();
        let mut program = EbpfLoader::new()
            .map_max_entries("streams", count.max(1))
            .map_max_entries("frames", (frames.len() as u32).max(1))
            .map_max_entries("ports", (links.len() as u32).max(1))
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
        // A map of ports spares the kernel looking for the interface with each frame.
        let mut ports: DevMap<_> = map(&mut program, "ports")?;
        for (index, &link) in (0..).zip(&links) {
            ports
                .set(index, link, None, 0)
                .map_err(|error| Error::new("bpf(BPF_MAP_UPDATE_ELEM)", format!("interface {link}"), cause(&error)))?;
        }
        let mut orders: Array<_, [u64; STREAM_WORDS]> = map(&mut program, "streams")?;
        let mut first = 0;
        for (index, stream) in (0..).zip(streams) {
            let port = links.binary_search(&stream.link).unwrap_or_default() as u64;
            orders
                .set(index, stream_words(stream, first, port, batch), 0)
                .map_err(|error| map_failed("streams", error))?;
            first += stream.frames.len() as u64;
        }
        let mut heads: Array<_, [u64; FRAME_WORDS]> = map(&mut program, "frames")?;
        for (index, frame) in (0..).zip(&frames) {
            heads.set(index, frame_words(frame), 0).map_err(|error| map_failed("frames", error))?;
        }
        let mut lane: Array<_, [u64; LANE_WORDS]> = map(&mut program, "lanes")?;
        let reading = if batch >= FAST { READING } else { 1 };
        lane.set(0, [u64::from(count), reading, 0, 0, 0, 0, 0], 0).map_err(|error| map_failed("lanes", error))?;
        let longest = frames.iter().map(|frame| frame.length).max().unwrap_or_default() as usize;
        let mut frame = filling[..filling.len().min(longest)].to_vec();
        frame.resize(longest, 0);
        Ok(Self { program, streams: orders, lane, count, batch, frame, _namespace: namespace })
    }

    /// Sends what is due for 20 to 200 ms. False once all streams have ended.
    pub fn send(&self) -> Result<bool, Error> {
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
            attrs: TestRunAttrs::new().xdp_live_frames(self.batch),
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
        let [_, _, sent, first, last, held_up] = *words.last_chunk().expect("a stream has more words");
        Ok(Transmitted { sent, first, last, held_up })
    }
}

/// struct stream of transmit.bpf.c; `first` is the index of its first frame, `port` that of its port.
fn stream_words(stream: &TransmitStream, first: u64, port: u64, batch: u32) -> [u64; STREAM_WORDS] {
    // Fast lanes send in bursts anyway.
    let least_gap = if batch >= FAST || stream.burst > 1 { 0 } else { stream.gap - stream.gap / SHORTER };
    // A burst takes time itself.
    let catch_up = CATCH_UP + if stream.burst > 1 { stream.burst * SLOW_TURN } else { 0 };
    let mut words = [0; STREAM_WORDS];
    words[..ORDER_WORDS].copy_from_slice(&[
        first,
        stream.round.len().clamp(1, ROUND) as u64,
        stream.changes.len().min(CHANGES) as u64,
        u64::from(stream.signature_at.unwrap_or(0)),
        port,
        stream.start,
        stream.end,
        (stream.gap >> 32) as u64,
        (stream.gap & 0xffff_ffff) as u64,
        (least_gap >> 32) as u64,
        u64::from(batch) * TURN,
        if stream.limit == 0 { u64::MAX } else { stream.limit },
        stream.burst.max(1),
        (stream.rest >> 32) as u64,
        (stream.rest & 0xffff_ffff) as u64,
        catch_up,
    ]);
    let mut sizes = [0; ROUND];
    sizes.iter_mut().zip(&stream.round).for_each(|(size, index)| *size = *index);
    for (word, bytes) in words[ORDER_WORDS..].iter_mut().zip(sizes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    let changes = words[ORDER_WORDS + SIZES_WORDS..PROGRAM].chunks_exact_mut(CHANGE_WORDS);
    for (words, change) in changes.zip(&stream.changes) {
        let flags = [change.wide, change.random, change.udp].map(u32::from);
        let numbers = [
            [change.at, flags[0]],
            [change.base, change.count],
            [flags[1], change.ip_checksum],
            [change.transport_checksum, flags[2]],
        ];
        for (word, [low, high]) in words.iter_mut().zip(numbers) {
            let [a, b, c, d] = low.to_ne_bytes();
            let [e, f, g, h] = high.to_ne_bytes();
            *word = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        }
    }
    words[PROGRAM] = stream.start;
    words
}

/// struct frame.
fn frame_words(frame: &TransmitFrame) -> [u64; FRAME_WORDS] {
    let mut words = [0; FRAME_WORDS];
    for (word, bytes) in words.iter_mut().zip(frame.head.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words[FRAME_WORDS - 1] = u64::from(frame.length);
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
    /// Bytes of the frames received, FCS not counted; zero unless the receiver was to count them.
    pub bytes: u64,
}

/// What a receiver is told.
#[derive(Debug, Clone, Copy)]
pub struct Reception<'a> {
    /// The trial.
    pub tag: u16,
    /// Bytes are counted too.
    pub sized: bool,
    /// All ports receive in polls of the kernel (NAPI), as all drivers do but `tun`.
    pub polled: bool,
    /// The host's protocols receive the frames after they were counted.
    pub delivers: bool,
    /// Interfaces where each stream is to arrive, at least one, which may be 0 for an interface of another host.
    pub destinations: &'a [Vec<u32>],
    /// The interfaces that receive.
    pub ports: &'a [u32],
}

/// The receiving program, attached to all ports of a trial until it is dropped.
pub struct Receiver {
    counters: Array<MapData, [u64; COUNTER_WORDS]>,
    latencies: Array<MapData, [u64; BUCKETS]>,
    floods: HashMap<MapData, [u32; 2], u64>,
    generic: Vec<(u32, Error)>,
    _program: Ebpf,
}

impl Receiver {
    /// Loads the program and attaches it.
    pub fn attach(object: &[u8], reception: Reception<'_>) -> Result<Self, Error> {
        let Reception { tag, sized, polled, delivers, destinations, ports } = reception;
        let streams = destinations.len();
        let count = destinations.iter().map(Vec::len).sum::<usize>() as u32;
        let mut loader = EbpfLoader::new();
        for map in ["counters", "numbers", "latencies"] {
            loader.map_max_entries(map, count.max(1));
        }
        let mut program = loader
            .load(object)
            .map_err(|error| Error::new("bpf(BPF_MAP_CREATE)", "the receiving program", cause(&error)))?;
        let mut settings: Array<_, [u64; 5]> = map(&mut program, "settings")?;
        let mut read_every = |frames: u64| {
            let words = [u64::from(tag), u64::from(sized), frames, streams as u64, u64::from(delivers)];
            settings.set(0, words, 0).map_err(|error| map_failed("settings", error))
        };
        read_every(1)?;
        let mut counters: Array<_, [u64; COUNTER_WORDS]> = map(&mut program, "counters")?;
        let mut further = streams as u32;
        for (index, links) in (0..).zip(destinations) {
            let mut slot = index;
            for (at, link) in links.iter().enumerate() {
                let next = if at + 1 < links.len() { further } else { 0 };
                let mut words = [0; COUNTER_WORDS];
                words[0] = u64::from(*link);
                words[COUNTER_WORDS - 1] = u64::from(next);
                counters.set(slot, words, 0).map_err(|error| map_failed("counters", error))?;
                slot = next;
                further += u32::from(next > 0);
            }
        }
        let latencies = map(&mut program, "latencies")?;
        let floods = map(&mut program, "floods")?;

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
        // Where the kernel does not tell of all polls, the clock is read with each frame.
        if polled && generic.is_empty() && follow_polls(&mut program).is_ok() {
            read_every(READING)?;
        }
        Ok(Self { counters, latencies, floods, generic, _program: program })
    }

    /// The ports whose driver does not take the program, and why: there it runs later, in the generic path.
    pub fn generic(&self) -> &[(u32, Error)] {
        &self.generic
    }

    /// Returns the arrivals in `slot` so far. Streams have the first slots, in their order; the further receivers of each
    /// stream have the next ones.
    pub fn arrived(&self, slot: u32) -> Result<Arrived, Error> {
        let [_, received, duplicates, reordered, flooded, first, last, expected, last_gap, bytes, _] =
            self.counters.get(&slot, 0).map_err(|error| map_failed("counters", error))?;
        let last_gap = (last_gap != 0).then_some(last_gap);
        Ok(Arrived { received, duplicates, reordered, flooded, first, last, expected, last_gap, bytes })
    }

    /// Returns the frames so far that arrived where they were not to: stream, interface and their number. Of very many streams
    /// and interfaces some are left out; [`Arrived::flooded`] has them all.
    pub fn floods(&self) -> Result<Vec<(u32, u32, u64)>, Error> {
        let mut floods = Vec::new();
        for entry in self.floods.iter() {
            let ([stream, interface], frames) = entry.map_err(|error| map_failed("floods", error))?;
            floods.push((stream, interface, frames));
        }
        Ok(floods)
    }

    /// Returns the latencies in `slot`: nanoseconds and the number of frames.
    pub fn latencies(&self, slot: u32) -> Result<Vec<(u64, u64)>, Error> {
        let buckets = self.latencies.get(&slot, 0).map_err(|error| map_failed("latencies", error))?;
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

/// Lets the receiving program know of the end of each poll.
fn follow_polls(program: &mut Ebpf) -> Result<(), ProgramError> {
    let Some(polled) = program.program_mut("polled") else {
        return Err(ProgramError::NotLoaded);
    };
    let polled: &mut RawTracePoint = polled.try_into()?;
    polled.load()?;
    polled.attach("napi_poll").map(drop)
}

fn map<T: TryFrom<Map, Error = MapError>>(program: &mut Ebpf, name: &'static str) -> Result<T, Error> {
    let map =
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
