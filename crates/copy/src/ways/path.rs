//! Within one host: from one path to another, whatever is mounted there; or to or from a file server.

use super::settle;
use crate::control::Control;
use crate::destination::root::Root;
use crate::destination::write::Ending;
use crate::destination::{Unverified, Verified, WAITING};
use crate::entry::{Entry, Kind};
use crate::lane::{Shared, in_one_thread, reading_end, writing_end};
use crate::side::Side;
use crate::source::{BATCHES, Batch, Origin, list};
use crossbeam_channel::{Receiver, Sender, bounded};
use linerate_model::{CopyExisting, CopyOptions, CopySide};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::thread;

/// Copies `origin` into `root`, or nowhere, from `start` on.
pub(crate) fn copy(
    origin: &Origin,
    root: Option<&Root>,
    options: &CopyOptions,
    start: u64,
    control: &Control,
) -> CopySide {
    let reading = Side::new(control);
    let writing = Side::new(control);
    let lanes = usize::from(options.lanes);
    let here = origin.is_here() && root.is_none_or(|root| root.storage.is_here());
    let complete = thread::scope(|scope| {
        let (batches_in, batches) = bounded(BATCHES);
        let mut wanted = batches;
        if let Some(root) = root.filter(|root| root.existing == CopyExisting::Resume) {
            let (missing_in, missing) = bounded(BATCHES);
            let listed = wanted;
            let side = &writing;
            scope.spawn(move || leave_out(root, &listed, &missing_in, side));
            wanted = missing;
        }
        let writers: Vec<_> = (0..lanes)
            .map(|_| {
                let shared = |side| Shared { options, side, control };
                let reading = shared(&reading);
                let writing = shared(&writing);
                if here {
                    return in_one_thread(scope, (origin, root), wanted.clone(), (reading, writing));
                }
                // While one waits for a server's answer, the others go on.
                let (blocks_in, blocks) = bounded::<Verified>(WAITING);
                reading_end(scope, origin, wanted.clone(), Unverified(blocks_in), reading);
                writing_end(scope, root, blocks, writing)
            })
            .collect();
        drop(wanted);
        list::run(origin, batches_in, options.links, &reading, control);
        let endings = writers.into_iter().map(|writer| writer.join().unwrap_or(Ending::Broken));
        endings.fold(true, |all, ending| all & (ending == Ending::Complete))
    });
    settle(root, options.sync, lanes, &writing, control);
    let time = Nanos::new(clock::now().saturating_sub(start));
    let mut copied = writing.result(time, complete && !control.is_stopped() && !control.gave_up());
    copied.stages.extend(reading.board.finish(time));
    copied.links_skipped = reading.tally.links_skipped.get();
    copied
}

/// Passes on what the destination does not have.
fn leave_out(root: &Root, listed: &Receiver<Batch>, missing: &Sender<Batch>, side: &Side) {
    let mut storage = root.storage.another();
    while let Ok(mut batch) = listed.recv() {
        batch.retain(|entry: &Entry| match entry.kind {
            Kind::File { size, .. } if root.has(&mut *storage, &entry.path, size, entry.modified) => {
                side.tally.kept.add(1);
                false
            }
            _ => true,
        });
        if missing.send(batch).is_err() {
            return;
        }
    }
}
