//! The stage that makes files durable, if each is to be, and gives them their names.

use super::Written;
use crate::control::Control;
use crate::side::{Side, class};
use crossbeam_channel::Receiver;
use linerate_model::{CopyStage, SizeClassTimes};
use linerate_sys::clock;
use std::collections::BTreeMap;
use std::io;

/// Names what comes, made durable if `each` is to be, until nothing more comes.
pub(crate) fn run(each: bool, files: &Receiver<Vec<Written>>, side: &Side, control: &Control) {
    let mut clock = side.board.clock(CopyStage::Sync);
    let mut sizes: BTreeMap<u64, SizeClassTimes> = BTreeMap::new();
    while let Ok(batch) = clock.await_previous(|| files.recv()) {
        for mut written in batch {
            if let Err(error) = name(&mut written, each) {
                control.failed(&written.file.path, CopyStage::Sync, &error);
                continue;
            }
            let file = &written.file;
            side.tally.files.add(1);
            side.tally.bytes.add(file.bytes);
            side.tally.hole_bytes.add(file.length - file.bytes);
            side.tally.verified.add(written.verified.into());
            let times = sizes.entry(class(file.size)).or_default();
            times.files += 1;
            times.bytes += file.bytes;
            times.time.record(clock::now().saturating_sub(file.begun));
            control.done(1, file.bytes);
        }
    }
    side.add_sizes(&sizes);
}

fn name(written: &mut Written, each: bool) -> io::Result<()> {
    if let Some(draft) = written.file.draft().filter(|_| each) {
        draft.sync()?;
    }
    written.file.name()
}
