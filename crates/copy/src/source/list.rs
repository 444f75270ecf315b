//! The stage that lists: batches of entries for whichever lane is free.

use super::walk::Walk;
use super::{BATCH, Batch, Origin};
use crate::control::Control;
use crate::entry::{Entry, Kind};
use crate::side::{Count, Side};
use crate::stage::Clock;
use crossbeam_channel::Sender;
use linerate_model::{CopyLinks, CopyStage};

/// Lists until there is nothing more, or nothing more is wanted.
pub(crate) fn run(origin: &Origin, out: Sender<Batch>, links: CopyLinks, side: &Side, control: &Control) {
    let mut clock = side.board.clock(CopyStage::List);
    let skipped = (links == CopyLinks::Skip).then_some(&side.tally.links_skipped);
    let mut batches = Batches { batch: Vec::with_capacity(BATCH), out: &out, skipped, clock: &mut clock };
    let wanted = || !control.is_stopped() && !control.gave_up() && !side.has_ended();
    match origin {
        Origin::Memory(made) => {
            for entry in made.entries() {
                if !wanted() || !batches.push(entry) {
                    return;
                }
            }
        }
        Origin::Folder(storage) => {
            let walk = match Walk::new(&**storage) {
                Ok(walk) => walk.skipping_links(skipped.is_some()),
                Err(error) => return control.failed(b"", CopyStage::List, &error),
            };
            for found in walk {
                match found {
                    Ok(entry) => {
                        if !wanted() || !batches.push(entry) {
                            return;
                        }
                    }
                    Err(unlisted) => control.failed(&unlisted.path, CopyStage::List, &unlisted.reason),
                }
            }
        }
    }
    batches.flush();
}

struct Batches<'a, 'b> {
    batch: Batch,
    out: &'a Sender<Batch>,
    /// Counts the links, if they are left out.
    skipped: Option<&'a Count>,
    clock: &'a mut Clock<'b>,
}

impl Batches<'_, '_> {
    /// Whether somebody still takes them.
    fn push(&mut self, entry: Entry) -> bool {
        if let (Kind::Link { .. }, Some(skipped)) = (&entry.kind, self.skipped) {
            skipped.add(1);
            return true;
        }
        self.batch.push(entry);
        self.batch.len() < BATCH || self.flush()
    }

    fn flush(&mut self) -> bool {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        batch.is_empty() || self.clock.await_next(|| self.out.send(batch)).is_ok()
    }
}
