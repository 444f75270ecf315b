//! A lane: its stages, in a row of threads with short queues between, or all in one thread.

use crate::block::{BLOCKS, Block, Blocks};
use crate::control::Control;
use crate::destination::compare::Compare;
use crate::destination::create::Create;
use crate::destination::read_back::ReadBack;
use crate::destination::root::Root;
use crate::destination::sync::Naming;
use crate::destination::write::{Ending, Write};
use crate::destination::{Created, Unverified, Verified, WAITING, Written};
use crate::pipeline::{Next, Nowhere, Stage, Timed, run};
use crate::side::Side;
use crate::source::hash::Hash;
use crate::source::open::{Open, Opened};
use crate::source::read::Read;
use crate::source::{BATCHES, Batch, Origin};
use crossbeam_channel::{Receiver, bounded};
use linerate_model::{CopyOptions, CopyStage, CopySync, CopyVerify};
use std::thread::{Scope, ScopedJoinHandle};

/// State that all threads of an end share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a CopyOptions,
    pub(crate) side: &'a Side,
    pub(crate) control: &'a Control,
}

impl<'a> Shared<'a> {
    fn open(self, origin: &Origin, next: Next<'a, Vec<Opened>>) -> impl Stage<Batch> + use<'a> {
        Timed::new(&self.side.board, CopyStage::Open, Open::new(origin, self.control), next)
    }

    fn read(self, blocks: Blocks, next: Next<'a, Block>) -> impl Stage<Vec<Opened>> + use<'a> {
        let read = Read::new(blocks, self.side, self.control);
        Timed::new(&self.side.board, CopyStage::Read, read, next)
    }

    fn hash(self, next: Next<'a, Block>) -> impl Stage<Block> + use<'a> {
        Timed::new(&self.side.board, CopyStage::Hash, Hash::new(self.control), next)
    }

    fn create(self, root: Option<&'a Root>, next: Next<'a, Created>) -> impl Stage<Verified> + use<'a> {
        let create = Create::new(root, self.side, self.control);
        Timed::new(&self.side.board, CopyStage::Create, create, next)
    }

    fn write(
        self,
        ending: &'a mut Ending,
        compare: Option<Compare<'a>>,
        next: Next<'a, Vec<Written>>,
    ) -> impl Stage<Created> + use<'a> {
        let write = Write::new(ending, compare, self.control);
        Timed::new(&self.side.board, CopyStage::Write, write, next)
    }

    fn read_back(self, next: Next<'a, Vec<Written>>) -> impl Stage<Vec<Written>> + use<'a> {
        let read_back = ReadBack::new(self.options.sync, self.control);
        Timed::new(&self.side.board, CopyStage::Verify, read_back, next)
    }

    fn name(self, root: Option<&Root>) -> impl Stage<Vec<Written>> + use<'a> {
        let each = root.is_some_and(|root| root.syncs_each(self.options.sync));
        let naming = Naming::new(each, self.side, self.control);
        Timed::new(&self.side.board, CopyStage::Sync, naming, Box::new(Nowhere))
    }
}

/// Opens, reads and hashes, each in a thread; `done` takes the blocks.
pub(crate) fn reading_end<'s>(
    scope: &'s Scope<'s, '_>,
    origin: &'s Origin,
    batches: Receiver<Batch>,
    done: impl Stage<Block> + Send + 's,
    shared: Shared<'s>,
) {
    let (opened_in, opened) = bounded(BATCHES);
    scope.spawn(move || run(&batches, shared.open(origin, Box::new(opened_in))));
    let blocks = Blocks::new(BLOCKS);
    if shared.options.verify == CopyVerify::None {
        scope.spawn(move || run(&opened, shared.read(blocks, Box::new(done))));
    } else {
        let (read_in, read) = bounded::<Block>(WAITING);
        scope.spawn(move || run(&opened, shared.read(blocks, Box::new(read_in))));
        scope.spawn(move || run(&read, shared.hash(Box::new(done))));
    }
}

/// Creates, writes and names, each in a thread. Returns how the lane ended.
pub(crate) fn writing_end<'s>(
    scope: &'s Scope<'s, '_>,
    root: Option<&'s Root>,
    blocks: Receiver<Verified>,
    shared: Shared<'s>,
) -> ScopedJoinHandle<'s, Ending> {
    let (created_in, created) = bounded(WAITING);
    scope.spawn(move || run(&blocks, shared.create(root, Box::new(created_in))));
    let (written_in, written) = bounded(WAITING);
    let writer = scope.spawn(move || {
        let mut ending = Ending::Broken;
        run(&created, shared.write(&mut ending, None, Box::new(written_in)));
        ending
    });
    let sound = if shared.options.verify == CopyVerify::ReadBack {
        let (sound_in, sound) = bounded(WAITING);
        scope.spawn(move || run(&written, shared.read_back(Box::new(sound_in))));
        sound
    } else {
        written
    };
    scope.spawn(move || run(&sound, shared.name(root)));
    writer
}

/// The writing end in the calling thread, until `blocks` are empty.
#[cfg(feature = "fuzzing")]
pub(crate) fn written_here(root: Option<&Root>, blocks: &Receiver<Block>, shared: Shared<'_>) -> Ending {
    use crate::destination::verify::Verify;
    let mut ending = Ending::Broken;
    let compare = Compare::new(shared.side, shared.control);
    let write = shared.write(&mut ending, Some(compare), Box::new(shared.name(root)));
    let create = shared.create(root, Box::new(write));
    match shared.options.verify {
        CopyVerify::None => run(blocks, Unverified(create)),
        _ => {
            let verify = Verify::new(shared.control);
            run(blocks, Timed::new(&shared.side.board, CopyStage::Verify, verify, Box::new(create)));
        }
    }
    ending
}

/// A whole lane in one thread: no byte leaves the core's cache between its stages, and no thread is woken for it. That
/// is for storage of this host, which answers at once or, where it does not, to other lanes too.
///
/// Data that was read is still there when it is read back, so that the two are compared and neither is hashed. This is
/// not possible if a file is to be read from the storage itself, after it was made durable.
pub(crate) fn in_one_thread<'s>(
    scope: &'s Scope<'s, '_>,
    (origin, root): (&'s Origin, Option<&'s Root>),
    batches: Receiver<Batch>,
    (reading, writing): (Shared<'s>, Shared<'s>),
) -> ScopedJoinHandle<'s, Ending> {
    let CopyOptions { verify, sync, .. } = *reading.options;
    scope.spawn(move || {
        let mut ending = Ending::Broken;
        let by_hash = verify != CopyVerify::None && sync == CopySync::Each;
        let compare = (verify != CopyVerify::None && !by_hash).then(|| Compare::new(writing.side, writing.control));
        let mut named: Next<'_, Vec<Written>> = Box::new(writing.name(root));
        if by_hash {
            named = Box::new(writing.read_back(named));
        }
        let written = writing.write(&mut ending, compare, named);
        let mut read: Next<'_, Block> = Box::new(Unverified(writing.create(root, Box::new(written))));
        if by_hash {
            read = Box::new(reading.hash(read));
        }
        run(&batches, reading.open(origin, Box::new(reading.read(Blocks::new(1), read))));
        ending
    })
}
