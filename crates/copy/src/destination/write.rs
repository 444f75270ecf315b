//! The stage that writes.

use super::compare::Compare;
use super::new_file::NewFile;
use super::{Created, Verified, Written};
use crate::block::Record;
use crate::control::Control;
use crate::pipeline::{Gone, Onward, Work};
use linerate_model::CopyStage;
use std::io;

/// End of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything has come.
    Complete,
    /// The reading end gave up, and says why itself.
    GaveUp,
    /// The lane broke off.
    Broken,
}

/// Stage that writes received content and reports how the lane ended.
pub(crate) struct Write<'a> {
    /// The file that the next data are of.
    current: Option<NewFile>,
    ending: &'a mut Ending,
    /// Verifies what was written, as long as it is here.
    compare: Option<Compare<'a>>,
    control: &'a Control,
}

impl<'a> Write<'a> {
    pub(crate) fn new(ending: &'a mut Ending, compare: Option<Compare<'a>>, control: &'a Control) -> Self {
        Self { current: None, ending, compare, control }
    }

    /// Does something to the file, which is given up where that fails.
    fn kept(&mut self, action: impl FnOnce(&mut NewFile) -> io::Result<()>) -> Option<NewFile> {
        let mut file = self.current.take()?;
        self.unless_failed(action(&mut file), CopyStage::Write, file)
    }

    /// Verifies the file, if that is to be done here: the work of another stage.
    fn verified(
        &mut self,
        file: Option<NewFile>,
        on: &mut Onward<'_, '_, Vec<Written>>,
        how: impl FnOnce(&mut Compare<'a>, &mut NewFile) -> io::Result<()>,
    ) -> Option<NewFile> {
        let Some(compare) = &mut self.compare else { return file };
        let mut file = file?;
        let found = on.wait(|| how(compare, &mut file));
        self.unless_failed(found, CopyStage::Verify, file)
    }

    fn unless_failed(&self, done: io::Result<()>, stage: CopyStage, file: NewFile) -> Option<NewFile> {
        done.map_err(|error| self.control.failed(&file.path, stage, &error)).ok().map(|()| file)
    }
}

impl Work<Created> for Write<'_> {
    type Made = Vec<Written>;

    fn work(&mut self, created: Created, on: &mut Onward<'_, '_, Vec<Written>>) -> Result<(), Gone> {
        let Created { verified: Verified { block, sound }, files } = created;
        let mut files = files.into_iter();
        let mut sound = sound.into_iter();
        let mut written = Vec::new();
        for (_, record) in block.records().flatten() {
            match record {
                Record::File { .. } => self.current = files.next().flatten(),
                Record::Data(data) => {
                    let file = self.kept(|file| file.write(data));
                    self.current = self.verified(file, on, |compare, file| compare.last(file, data));
                }
                Record::Hole(bytes) => self.current = self.kept(|file| file.skip(bytes)),
                Record::Drop => self.current = None,
                Record::End { digest } => {
                    let sound = sound.next();
                    let mut file = self.kept(NewFile::complete);
                    if file.as_ref().is_some_and(|file| !file.hole.is_empty()) {
                        file = self.verified(file, on, Compare::hole);
                    }
                    let Some(file) = file else { continue };
                    if sound == Some(false) {
                        self.control.fault(&file.path, CopyStage::Verify, "what arrived is not what was read");
                        continue;
                    }
                    let verified = sound.is_some() || (self.compare.is_some() && file.is_somewhere());
                    written.push(Written { file, digest: *digest, verified });
                }
                Record::Last { complete } => {
                    *self.ending = if complete { Ending::Complete } else { Ending::GaveUp };
                    // What is in hand still gets its name.
                    let _ = on.pass(written);
                    return Err(Gone);
                }
                Record::Folder { .. } | Record::Link { .. } => {}
            }
        }
        drop(block);
        on.pass(written)?;
        if self.control.is_stopped() || self.control.gave_up() { Err(Gone) } else { Ok(()) }
    }
}
