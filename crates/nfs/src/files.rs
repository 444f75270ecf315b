//! Files of one flow: the next reads and writes, and the content that reads must find.
//!
//! Every file belongs to one flow, and only this flow reads and writes its data, so that the right content is known.

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
    files: Vec<File>,
    reading: Run,
    writing: Run,
}

#[derive(Debug)]
struct File {
    /// Its number in the set.
    number: u32,
    /// Blocks it had at first.
    initial: u32,
    /// Block at which the next write appends.
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
    /// Index among the flow's files.
    file: usize,
    /// Blocks of it.
    blocks: Range<u32>,
}

impl Span {
    /// Returns the offset in the file.
    pub(crate) fn offset(&self) -> u64 {
        u64::from(self.blocks.start) * BLOCK as u64
    }

    /// Returns the length in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        (self.blocks.end - self.blocks.start) * BLOCK as u32
    }
}

impl Files {
    /// The files of `flow`: every one of the set at its turn.
    pub(crate) fn new(spec: &NfsTask, flow: u16) -> Self {
        let initial = (spec.files.file_bytes.get() / BLOCK as u64) as u32;
        // Appending doubles a file and then begins again where the original ended, so that the set keeps its size.
        let room = if spec.mix.sizes == IoSizes::Laddis { initial * 2 } else { initial };
        let numbers = (u32::from(flow)..spec.files.files).step_by(spec.net.flows.into());
        let files = numbers
            .map(|number| File { number, initial, end: initial, versions: Versions::new(initial, room) })
            .collect();
        Self {
            seed: spec.seed,
            sizes: spec.mix.sizes,
            transfer: (spec.transfer_bytes.get() / BLOCK as u64) as u32,
            files,
            reading: Run::default(),
            writing: Run::default(),
        }
    }

    /// The number in the set of a span's file.
    pub(crate) fn number(&self, span: &Span) -> usize {
        self.files[span.file].number as usize
    }

    /// The number in the set of the file written last, or of any before the first write.
    pub(crate) fn last_written(&self) -> usize {
        self.files[self.writing.file].number as usize
    }

    /// Returns the span of the next read call.
    pub(crate) fn next_read(&mut self, random: &mut SmallRng) -> Span {
        if self.reading.left == 0 {
            self.reading = match self.sizes {
                IoSizes::Whole => self.after(self.reading),
                IoSizes::Laddis => {
                    let file = random.random_range(0..self.files.len());
                    let there = self.files[file].versions.there();
                    let left = sizes::read(random).min(there);
                    Run { file, at: random.random_range(0..=there - left), left }
                }
            };
        }
        take(&mut self.reading, self.transfer)
    }

    /// Returns the span of the next write call, and appends its data to `into`.
    pub(crate) fn next_write(&mut self, random: &mut SmallRng, into: &mut Vec<u8>) -> Span {
        if self.writing.left == 0 {
            self.writing = match self.sizes {
                IoSizes::Whole => self.after(self.writing),
                IoSizes::Laddis => {
                    let file = random.random_range(0..self.files.len());
                    let File { initial, end, .. } = &mut self.files[file];
                    let left = sizes::write(random).min(*initial);
                    if sizes::appends(random) {
                        if *end + left > *initial * 2 {
                            *end = *initial;
                        }
                        *end += left;
                        Run { file, at: *end - left, left }
                    } else {
                        Run { file, at: random.random_range(0..=*initial - left), left }
                    }
                }
            };
        }
        let span = take(&mut self.writing, self.transfer);
        let seed = self.seed;
        let File { number, versions, .. } = &mut self.files[span.file];
        let file = *number;
        versions.write(span.blocks.clone(), |block, version| BlockId { seed, file, block }.write(version, into));
        span
    }

    /// The whole transfers that come after `run`: the next file's, file by file.
    fn after(&self, run: Run) -> Run {
        // Before the first, `run` is no place at all.
        let first = run.at == 0;
        let file = if first { run.file } else { (run.file + 1) % self.files.len() };
        Run { file, at: 0, left: self.files[file].initial }
    }

    /// The oldest versions that a read of `span` may find from now on, appended to `into`.
    pub(crate) fn oldest(&self, span: &Span, into: &mut Vec<u32>) {
        self.files[span.file].versions.oldest(span.blocks.clone(), into);
    }

    /// Counts the bytes of `data` that a read of `span` must not find; `oldest` was taken before it. If the file ends
    /// too early, what is missing is wrong.
    pub(crate) fn wrong(&self, span: &Span, data: &[u8], eof: bool, oldest: &[u32]) -> u64 {
        let File { number, versions, .. } = &self.files[span.file];
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
        self.files[span.file].versions.written(span.blocks.clone(), done);
    }

    /// The server has lost what it had not committed.
    pub(crate) fn doubt(&mut self) {
        self.files.iter_mut().for_each(|file| file.versions.doubt());
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
        let numbers = |flow| files("read", 3, flow).0.files.iter().map(|file| file.number).collect::<Vec<_>>();
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
            let mut initial_content = Vec::new();
            (0..144).for_each(|block| BlockId { seed: 1, file: file as u32, block }.write(0, &mut initial_content));
            bytes[..initial_content.len()].copy_from_slice(&initial_content);
        }
        let mut appended = 0;
        let mut longest = 0;
        for turn in 0..20_000 {
            let mut data = Vec::new();
            let span = files.next_write(&mut random, &mut data);
            let at = span.offset() as usize;
            appended += usize::from(at >= 144 << 10);
            server[files.number(&span)][at..at + data.len()].copy_from_slice(&data);
            files.written(&span, true);

            let span = files.next_read(&mut random);
            let at = span.offset() as usize;
            let length = span.bytes() as usize;
            longest = longest.max(at + length);
            let mut data_read = server[files.number(&span)][at..at + length].to_vec();
            let mut oldest = Vec::new();
            files.oldest(&span, &mut oldest);
            assert_eq!(files.wrong(&span, &data_read, false, &oldest), 0, "turn {turn}");
            assert_eq!(files.wrong(&span, &data_read[..length - 1], true, &oldest), 1, "the file ends too early");
            assert_eq!(files.wrong(&span, &data_read[..length - 1], false, &oldest), 0, "a short read");
            data_read[length / 2] ^= 1;
            assert!(files.wrong(&span, &data_read, false, &oldest) > 0);
        }
        assert!(longest > 144 << 10, "what was appended is read");
        assert!(appended > 10_000, "{appended} of 20,000 writes appended");
    }

    #[test]
    fn old_data_are_wrong() {
        let (mut files, mut random) = files("write", 1, 0);
        files.transfer = 8;
        let mut first = Vec::new();
        let mut second = Vec::new();
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
