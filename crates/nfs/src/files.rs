//! One flow's share of the files: what it reads and writes next, and what it must find there.
//!
//! Every file belongs to one flow, which alone reads and writes its data: only so is it known what must be found in it.

use crate::content::{BLOCK, BlockId};
use crate::sizes;
use crate::versions::Versions;
use linerate_model::{IoSizes, NfsTask};
use rand::RngExt as _;
use rand::rngs::SmallRng;
use std::ops::Range;

/// A flow's files.
#[derive(Debug)]
pub(crate) struct Files {
    seed: u64,
    sizes: IoSizes,
    /// Blocks of one call at the most.
    transfer: u32,
    own: Vec<File>,
    reading: Run,
    writing: Run,
}

#[derive(Debug)]
struct File {
    /// Its number in the set.
    number: u32,
    /// Blocks it had at first.
    made: u32,
    /// Where the next write appends.
    end: u32,
    versions: Versions,
}

/// A long read or write, of which some calls may still be to make.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    file: usize,
    at: u32,
    left: u32,
}

/// The data of one call: a place among the flow's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Which of the flow's files.
    file: usize,
    /// Blocks of it.
    blocks: Range<u32>,
}

impl Span {
    /// Where it begins in its file.
    pub(crate) fn offset(&self) -> u64 {
        u64::from(self.blocks.start) * BLOCK as u64
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u32 {
        (self.blocks.end - self.blocks.start) * BLOCK as u32
    }
}

impl Files {
    /// The files of `flow`: every one of the set at its turn.
    pub(crate) fn new(spec: &NfsTask, flow: u16) -> Self {
        let made = (spec.files.file_bytes.get() / BLOCK as u64) as u32;
        // Appending doubles a file and then begins again where the original ended, so that the set keeps its size.
        let room = if spec.mix.sizes == IoSizes::Laddis { made * 2 } else { made };
        let file = |number| File { number, made, end: made, versions: Versions::new(made, room) };
        Self {
            seed: spec.seed,
            sizes: spec.mix.sizes,
            transfer: (spec.transfer_bytes.get() / BLOCK as u64) as u32,
            own: (u32::from(flow)..spec.files.files).step_by(spec.net.flows.into()).map(file).collect(),
            reading: Run::default(),
            writing: Run::default(),
        }
    }

    /// The number in the set of a span's file.
    pub(crate) fn number(&self, span: &Span) -> usize {
        self.own[span.file].number as usize
    }

    /// The number in the set of the file written last, or of any before the first write.
    pub(crate) fn last_written(&self) -> usize {
        self.own[self.writing.file].number as usize
    }

    /// What the next read call asks for.
    pub(crate) fn next_read(&mut self, random: &mut SmallRng) -> Span {
        if self.reading.left == 0 {
            self.reading = match self.sizes {
                IoSizes::Whole => self.after(self.reading),
                IoSizes::Laddis => {
                    let file = random.random_range(0..self.own.len());
                    let there = self.own[file].versions.there();
                    let left = sizes::read(random).min(there);
                    Run { file, at: random.random_range(0..=there - left), left }
                }
            };
        }
        take(&mut self.reading, self.transfer)
    }

    /// What the next write call writes; appends its data to `into`.
    pub(crate) fn next_write(&mut self, random: &mut SmallRng, into: &mut Vec<u8>) -> Span {
        if self.writing.left == 0 {
            self.writing = match self.sizes {
                IoSizes::Whole => self.after(self.writing),
                IoSizes::Laddis => {
                    let file = random.random_range(0..self.own.len());
                    let File { made, end, .. } = &mut self.own[file];
                    let left = sizes::write(random).min(*made);
                    if sizes::appends(random) {
                        if *end + left > *made * 2 {
                            *end = *made;
                        }
                        *end += left;
                        Run { file, at: *end - left, left }
                    } else {
                        Run { file, at: random.random_range(0..=*made - left), left }
                    }
                }
            };
        }
        let span = take(&mut self.writing, self.transfer);
        let (seed, File { number, versions, .. }) = (self.seed, &mut self.own[span.file]);
        let file = *number;
        versions.write(span.blocks.clone(), |block, version| BlockId { seed, file, block }.write(version, into));
        span
    }

    /// The whole transfers that come after `run`: the next file's, file by file.
    fn after(&self, run: Run) -> Run {
        // Before the first, `run` is no place at all.
        let first = run.at == 0;
        let file = if first { run.file } else { (run.file + 1) % self.own.len() };
        Run { file, at: 0, left: self.own[file].made }
    }

    /// The oldest versions that a read of `span` may find from now on, appended to `into`.
    pub(crate) fn oldest(&self, span: &Span, into: &mut Vec<u32>) {
        self.own[span.file].versions.oldest(span.blocks.clone(), into);
    }

    /// How many bytes of `data` are not what a read of `span` must find; `oldest` was taken before it. Where the file ends
    /// too early, what is missing is wrong.
    pub(crate) fn wrong(&self, span: &Span, data: &[u8], eof: bool, oldest: &[u32]) -> u64 {
        let File { number, versions, .. } = &self.own[span.file];
        let mut wrong = 0;
        for ((block, piece), least) in span.blocks.clone().zip(data.chunks(BLOCK)).zip(oldest) {
            let place = BlockId { seed: self.seed, file: *number, block };
            wrong += place.wrong(piece, *least, versions.newest(block));
        }
        let short = (span.bytes() as usize).saturating_sub(data.len());
        // A server may return less than was asked for, but says that a file ends only where it does.
        let missing = if eof || data.is_empty() { short } else { 0 };
        // More than was asked for is no part of the file.
        let beyond = data.len().saturating_sub(span.bytes() as usize);
        (wrong + missing + beyond) as u64
    }

    /// The write of `span` was answered, or given up.
    pub(crate) fn written(&mut self, span: &Span, done: bool) {
        self.own[span.file].versions.written(span.blocks.clone(), done);
    }

    /// The server has lost what it had not committed.
    pub(crate) fn doubt(&mut self) {
        self.own.iter_mut().for_each(|file| file.versions.doubt());
    }
}

/// The next call of a run.
fn take(run: &mut Run, transfer: u32) -> Span {
    let length = run.left.min(transfer);
    let blocks = run.at..run.at + length;
    run.at += length;
    run.left -= length;
    Span { file: run.file, blocks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{NfsMix, Transport};
    use linerate_units::ByteCount;
    use rand::SeedableRng as _;

    fn files(mix: &str, flows: u16, flow: u16) -> (Files, SmallRng) {
        let mut spec = NfsTask::plain(Transport::Tcp, NfsMix::named(mix).expect("built in"));
        (spec.net.flows, spec.files.files) = (flows, 10);
        (Files::new(&spec, flow), SmallRng::seed_from_u64(3))
    }

    #[test]
    fn flows_share_the_files_out() {
        let numbers = |flow| files("read", 3, flow).0.own.iter().map(|file| file.number).collect::<Vec<_>>();
        assert_eq!([numbers(0), numbers(1), numbers(2)], [vec![0, 3, 6, 9], vec![1, 4, 7], vec![2, 5, 8]]);
    }

    #[test]
    fn whole_transfers_go_through_file_after_file() {
        let (mut files, mut random) = files("read", 1, 0);
        for file in [0, 1, 2] {
            for call in 0..18 {
                let span = files.next_read(&mut random);
                assert_eq!((files.number(&span), span.offset(), span.bytes()), (file, call * 8192, 8192));
            }
        }
        let (mut files, mut random) = self::files("write", 1, 0);
        files.transfer = 100;
        let mut lengths = Vec::new();
        for _ in 0..4 {
            lengths.push(files.next_write(&mut random, &mut Vec::new()).bytes() / 1024);
        }
        assert_eq!(lengths, [100, 44, 100, 44], "the last of a file is what is left of it");
    }

    #[test]
    fn what_a_server_that_does_as_told_returns_is_right() {
        let (mut files, mut random) = files("sfs97-like", 2, 1);
        // Ten files of at most twice 144 KiB.
        let mut server = vec![vec![0; 288 << 10]; 10];
        for (file, bytes) in server.iter_mut().enumerate() {
            let mut made = Vec::new();
            (0..144).for_each(|block| BlockId { seed: 1, file: file as u32, block }.write(0, &mut made));
            bytes[..made.len()].copy_from_slice(&made);
        }
        let (mut appended, mut longest) = (0, 0);
        for turn in 0..20_000 {
            let mut data = Vec::new();
            let span = files.next_write(&mut random, &mut data);
            let at = span.offset() as usize;
            appended += usize::from(at >= 144 << 10);
            server[files.number(&span)][at..at + data.len()].copy_from_slice(&data);
            files.written(&span, true);

            let span = files.next_read(&mut random);
            let (at, length) = (span.offset() as usize, span.bytes() as usize);
            longest = longest.max(at + length);
            let mut read = server[files.number(&span)][at..at + length].to_vec();
            let mut oldest = Vec::new();
            files.oldest(&span, &mut oldest);
            assert_eq!(files.wrong(&span, &read, false, &oldest), 0, "turn {turn}");
            assert_eq!(files.wrong(&span, &read[..length - 1], true, &oldest), 1, "the file ends too early");
            assert_eq!(files.wrong(&span, &read[..length - 1], false, &oldest), 0, "a short read");
            read[length / 2] ^= 1;
            assert!(files.wrong(&span, &read, false, &oldest) > 0);
        }
        assert!(longest > 144 << 10, "what was appended is read");
        assert!(appended > 10_000, "{appended} of 20,000 writes appended");
    }

    #[test]
    fn old_data_are_wrong() {
        let (mut files, mut random) = files("write", 1, 0);
        files.transfer = 8;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let span = files.next_write(&mut random, &mut first);
        let mut oldest = Vec::new();
        files.oldest(&span, &mut oldest);
        // A read sent now may find the write done or not.
        assert_eq!(files.wrong(&span, &first, false, &oldest), 0);
        files.written(&span, true);
        files.writing = Run { file: 0, at: 0, left: 8 };
        assert_eq!(files.next_write(&mut random, &mut second), span);
        files.written(&span, true);
        oldest.clear();
        files.oldest(&span, &mut oldest);
        assert_eq!(files.wrong(&span, &second, false, &oldest), 0);
        assert_eq!(files.wrong(&span, &first, false, &oldest), 8 << 10);
        files.doubt();
        oldest.clear();
        files.oldest(&span, &mut oldest);
        assert_eq!(files.wrong(&span, &first, false, &oldest), 0, "the server was restarted");
    }

    #[test]
    fn small_files_bound_what_is_read_and_written() {
        let mut spec = NfsTask::plain(Transport::Tcp, NfsMix::named("laddis-like").expect("built in"));
        (spec.files.files, spec.files.file_bytes) = (1, ByteCount::new(1 << 10));
        let mut files = Files::new(&spec, 0);
        let mut random = SmallRng::seed_from_u64(3);
        for _ in 0..1_000 {
            let mut data = Vec::new();
            let span = files.next_write(&mut random, &mut data);
            assert_eq!((span.bytes(), data.len()), (1024, 1024));
            files.written(&span, true);
            let span = files.next_read(&mut random);
            assert!(span.offset() + u64::from(span.bytes()) <= 2048);
        }
    }
}
