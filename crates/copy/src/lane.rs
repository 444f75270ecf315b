//! A lane's two ends, each a row of threads with short queues between.

use crate::block::{Block, Blocks};
use crate::control::Control;
use crate::destination::root::Root;
use crate::destination::write::Ending;
use crate::destination::{Verified, WAITING, create, read_back, sync, write};
use crate::side::Side;
use crate::source::{BATCHES, Batch, Origin, hash, open, read};
use crossbeam_channel::{Receiver, bounded};
use linerate_model::{CopyOptions, CopyVerify};
use std::thread::{Scope, ScopedJoinHandle};

/// What all threads of an end share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) options: &'a CopyOptions,
    pub(crate) side: &'a Side,
    pub(crate) control: &'a Control,
}

/// Opens, reads and hashes; gives the blocks.
pub(crate) fn reading_end<'s, T: From<Block> + Send + 's>(
    scope: &'s Scope<'s, '_>,
    origin: &'s Origin,
    batches: Receiver<Batch>,
    shared: Shared<'s>,
) -> Receiver<T> {
    let Shared { options, side, control } = shared;
    let blocks = Blocks::new();
    let (opened_in, opened) = bounded(BATCHES);
    scope.spawn(move || open::run(origin, &batches, &opened_in, side, control));
    let (done_in, done) = bounded(WAITING);
    if options.verify == CopyVerify::None {
        scope.spawn(move || read::run(&opened, &done_in, &blocks, side, control));
    } else {
        let (read_in, read) = bounded::<Block>(WAITING);
        scope.spawn(move || read::run(&opened, &read_in, &blocks, side, control));
        scope.spawn(move || hash::run(&read, &done_in, side, control));
    }
    done
}

/// Creates, writes and names; tells how it ended.
pub(crate) fn writing_end<'s>(
    scope: &'s Scope<'s, '_>,
    root: Option<&'s Root>,
    blocks: Receiver<Verified>,
    shared: Shared<'s>,
) -> ScopedJoinHandle<'s, Ending> {
    let Shared { options, side, control } = shared;
    let (created_in, created) = bounded(WAITING);
    scope.spawn(move || create::run(root, &blocks, &created_in, side, control));
    let (written_in, written) = bounded(WAITING);
    let writer = scope.spawn(move || write::run(&created, &written_in, side, control));
    let sound = if options.verify == CopyVerify::ReadBack {
        let (sound_in, sound) = bounded(WAITING);
        scope.spawn(move || read_back::run(options.sync, &written, &sound_in, side, control));
        sound
    } else {
        written
    };
    let each = root.is_some_and(|root| root.syncs_each(options.sync));
    scope.spawn(move || sync::run(each, &sound, side, control));
    writer
}
