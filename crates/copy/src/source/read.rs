//! The stage that reads: fills blocks with heads and content.

use super::open::{Content, Opened};
use crate::block::{Block, Blocks};
use crate::control::Control;
use crate::entry::{Entry, Kind};
use crate::pipeline::{Gone, Onward, Work};
use crate::side::Side;
use crate::storage::{About, OpenFile, What};
use crate::tree::fill;
use linerate_model::CopyStage;
use std::io;

/// Reads what comes; the last record says whether that was all.
pub(crate) struct Read<'a> {
    /// The one that is being filled.
    block: Block,
    blocks: Blocks,
    side: &'a Side,
    control: &'a Control,
}

/// The way on.
type On<'a, 'b, 'c> = &'a mut Onward<'b, 'c, Block>;

/// Why a file did not become whole.
enum Broken {
    Gone,
    Fault(io::Error),
}

impl From<Gone> for Broken {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Fault(error)
    }
}

impl Work<Vec<Opened>> for Read<'_> {
    type Made = Block;

    fn work(&mut self, batch: Vec<Opened>, on: &mut Onward<'_, '_, Block>) -> Result<(), Gone> {
        for opened in batch {
            if self.control.is_stopped() {
                return Err(Gone);
            }
            if self.control.gave_up() {
                break;
            }
            self.one(opened, on)?;
        }
        Ok(())
    }

    /// While no more comes, the rest need not wait for what it has.
    fn flush(&mut self, on: &mut Onward<'_, '_, Block>) -> Result<(), Gone> {
        if self.block.is_empty() {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.block, self.blocks.none());
        on.pass(full)?;
        self.block = on.wait(|| self.blocks.take());
        Ok(())
    }

    fn finish(&mut self, on: &mut Onward<'_, '_, Block>) -> Result<(), Gone> {
        let complete = !self.control.gave_up() && !self.control.is_stopped() && !self.side.has_ended();
        self.room_for(0, on)?;
        self.block.last(complete);
        self.flush(on)
    }
}

impl<'a> Read<'a> {
    /// Into `blocks`, of which some are free.
    pub(crate) fn new(blocks: Blocks, side: &'a Side, control: &'a Control) -> Self {
        Self { block: blocks.take(), blocks, side, control }
    }

    fn one(&mut self, Opened { entry, mut content }: Opened, on: On<'_, '_, '_>) -> Result<(), Gone> {
        let Entry { path, mode, modified, .. } = &entry;
        match &entry.kind {
            Kind::Folder => {
                self.room_for(0, on)?;
                self.block.folder(path, *mode, *modified);
                self.side.tally.folders.add(1);
                return Ok(());
            }
            Kind::Link { target } => {
                self.room_for(0, on)?;
                self.block.link(path, target, *modified);
                self.side.tally.links.add(1);
                return Ok(());
            }
            Kind::File { .. } => {}
        }
        let read = match &mut content {
            Content::File(file, about) => self.file(&entry, &mut **file, *about, on),
            Content::Made(number) => self.made(&entry, *number, on).map_err(Broken::from),
            Content::None => Ok(0),
        };
        match read {
            Ok(bytes) => {
                self.block.end();
                self.side.tally.files.add(1);
                self.side.tally.bytes.add(bytes);
                Ok(())
            }
            Err(Broken::Gone) => Err(Gone),
            Err(Broken::Fault(why)) => {
                self.control.failed(path, CopyStage::Read, &why);
                self.block.drop_file();
                Ok(())
            }
        }
    }

    /// Reads a file to the size it had when it was opened; gives the bytes of its data.
    fn file(
        &mut self,
        entry: &Entry,
        file: &mut dyn OpenFile,
        about: About,
        on: On<'_, '_, '_>,
    ) -> Result<u64, Broken> {
        let What::File { size } = about.what else { return Ok(0) };
        self.room_for(size, on)?;
        self.block.file(&entry.path, about.mode, about.modified, size);
        // What was read of it, and where the data that is being read ends.
        let mut offset = 0;
        let mut bytes = 0;
        let mut end = 0;
        while offset < size {
            if offset >= end {
                let (data, next) = file.extent(offset, size)?;
                if data > offset {
                    self.room_for_more(on)?;
                    self.block.hole(data - offset);
                    self.side.tally.hole_bytes.add(data - offset);
                }
                (offset, end) = (data, next);
                continue;
            }
            let room = self.room_for_more(on)?.min(usize::try_from(end - offset).unwrap_or(usize::MAX));
            let read = file.read(offset, self.block.data_space(room))?;
            if read == 0 {
                let why = format!("it became shorter while it was read: {offset} of {size} bytes");
                return Err(io::Error::other(why).into());
            }
            self.block.commit_data(read);
            offset += read as u64;
            bytes += read as u64;
        }
        if file.about()? != about {
            return Err(io::Error::other("it was changed while it was read; copy it again").into());
        }
        Ok(bytes)
    }

    fn made(&mut self, entry: &Entry, number: u64, on: On<'_, '_, '_>) -> Result<u64, Gone> {
        let Kind::File { size, .. } = entry.kind else { return Ok(0) };
        self.room_for(size, on)?;
        self.block.file(&entry.path, entry.mode, entry.modified, size);
        let mut offset = 0;
        while offset < size {
            let room = self.room_for_more(on)?.min(usize::try_from(size - offset).unwrap_or(usize::MAX));
            fill(number, offset, self.block.data_space(room));
            self.block.commit_data(room);
            offset += room as u64;
        }
        Ok(size)
    }

    /// Room for a head and some of a file's content.
    fn room_for(&mut self, size: u64, on: On<'_, '_, '_>) -> Result<(), Gone> {
        if self.block.has_room(size) { Ok(()) } else { self.flush(on) }
    }

    /// Room for more data, of which it gives the bytes.
    fn room_for_more(&mut self, on: On<'_, '_, '_>) -> Result<usize, Gone> {
        const LEAST: usize = 64;
        if self.block.data_room() < LEAST {
            self.flush(on)?;
        }
        Ok(self.block.data_room())
    }
}
