//! The stage that makes files durable, if each is to be, and gives them their names.

use super::Written;
use crate::control::Control;
use crate::pipeline::{Gone, Onward, Work};
use crate::side::{Side, class};
use linerate_model::{CopyStage, SizeClassTimes};
use linerate_sys::clock;
use std::collections::BTreeMap;
use std::io;

/// Names what comes, made durable if `each` is to be.
pub(crate) struct Naming<'a> {
    each: bool,
    sizes: BTreeMap<u64, SizeClassTimes>,
    side: &'a Side,
    control: &'a Control,
}

impl<'a> Naming<'a> {
    pub(crate) fn new(each: bool, side: &'a Side, control: &'a Control) -> Self {
        Self { each, sizes: BTreeMap::new(), side, control }
    }

    fn name(&self, written: &mut Written) -> io::Result<()> {
        if let Some(draft) = written.file.draft().filter(|_| self.each) {
            draft.sync()?;
        }
        written.file.name()
    }
}

impl Work<Vec<Written>> for Naming<'_> {
    type Made = ();

    fn work(&mut self, batch: Vec<Written>, _on: &mut Onward<'_, '_, ()>) -> Result<(), Gone> {
        for mut written in batch {
            if let Err(error) = self.name(&mut written) {
                self.control.failed(&written.file.path, CopyStage::Sync, &error);
                continue;
            }
            let file = &written.file;
            let tally = &self.side.tally;
            tally.files.add(1);
            tally.bytes.add(file.bytes);
            tally.hole_bytes.add(file.length - file.bytes);
            tally.verified.add(written.verified.into());
            let times = self.sizes.entry(class(file.size)).or_default();
            times.files += 1;
            times.bytes += file.bytes;
            times.time.record(clock::now().saturating_sub(file.begun));
            self.control.done(1, file.bytes);
        }
        Ok(())
    }
}

/// Whatever it was that ended it.
impl Drop for Naming<'_> {
    fn drop(&mut self) {
        self.side.add_sizes(&self.sizes);
    }
}
