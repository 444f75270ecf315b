//! Reads back what was just written, through the file system, and compares it with what is still there of it.

use super::new_file::NewFile;
use crate::control::Control;
use crate::side::Side;
use crate::stage::Clock;
use crate::storage::Draft;
use linerate_model::CopyStage;
use std::io;

/// Size of one read: with the data to compare it fits the core's cache.
const PIECE: usize = 128 << 10;

/// Compares, in the time of the stage that verifies.
pub(crate) struct Compare<'a> {
    piece: Vec<u8>,
    clock: Clock<'a>,
    control: &'a Control,
}

impl<'a> Compare<'a> {
    /// To be used by the thread that makes it.
    pub(crate) fn new(side: &'a Side, control: &'a Control) -> Self {
        let mut clock = side.board.clock(CopyStage::Verify);
        clock.rests();
        Self { piece: vec![0; PIECE + 1], clock, control }
    }

    /// Compares the last bytes that `file` got with `data`, and the hole before them; the file ends there.
    pub(crate) fn last(&mut self, file: &mut NewFile, data: &[u8]) -> io::Result<()> {
        self.hole(file)?;
        let at = file.length - data.len() as u64;
        self.timed(file, |piece, draft| {
            let mut done = 0;
            while done < data.len() {
                done += same(draft, at + done as u64, piece, &data[done..], true)?;
            }
            Ok(())
        })
    }

    /// Looks at the hole that no data has been compared after. At the end of a file, the file must be complete.
    pub(crate) fn hole(&mut self, file: &mut NewFile) -> io::Result<()> {
        let hole = std::mem::take(&mut file.hole);
        let length = file.length;
        let control = self.control;
        if hole.is_empty() {
            return Ok(());
        }
        self.timed(file, |piece, draft| {
            let zeros = [0; 16 << 10];
            let mut at = hole.start;
            while at < hole.end {
                // A hole may be as long as files can be.
                if control.is_stopped() {
                    return Err(io::Error::other("it was stopped before all of it was read back"));
                }
                let most = (hole.end - at).min(zeros.len() as u64) as usize;
                at += same(draft, at, piece, &zeros[..most], at + most as u64 == length)? as u64;
            }
            Ok(())
        })
    }

    fn timed(
        &mut self,
        file: &mut NewFile,
        action: impl FnOnce(&mut [u8], &mut dyn Draft) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(draft) = file.draft() else { return Ok(()) };
        self.clock.begins();
        let done = action(&mut self.piece, draft);
        self.clock.rests();
        done
    }
}

/// Counts the bytes from `at` on that equal those of `expected`: at least one. If the file `ends` with them, one more
/// is an error.
fn same(draft: &mut dyn Draft, at: u64, piece: &mut [u8], expected: &[u8], ends: bool) -> io::Result<usize> {
    let most = PIECE.min(expected.len());
    let beyond = usize::from(ends && most == expected.len());
    let read = draft.read(at, &mut piece[..most + beyond])?;
    let is_same = (1..=most).contains(&read.len()) && expected.starts_with(read);
    if is_same { Ok(read.len()) } else { Err(other()) }
}

fn other() -> io::Error {
    io::Error::other("what reads back is not what was written")
}

#[cfg(test)]
mod tests {
    use super::super::new_file::Head;
    use super::*;
    use crate::storage::Storage as _;
    use crate::storage::local::LocalFolder;
    use linerate_model::CopyOnError;
    use linerate_sys::folder::Folder;
    use std::fs::{self, File};
    use std::sync::Arc;

    /// Compares a file of some bytes, a hole and some bytes, after `spoil` has changed it.
    fn found(spoil: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let mut storage = LocalFolder::new(Folder::open(folder.path())?).another();
        let begin = vec![7; 300_000];
        let end = vec![8; 5];
        let head = Head { path: b"file", mode: 0o644, modified: 0, size: 400_005 };
        let mut file = NewFile::make(&head, &mut *storage, "mark", 1)?;
        file.write(&begin)?;
        file.skip(100_000)?;
        file.write(&end)?;
        file.complete()?;
        let path = fs::read_dir(folder.path())?.next().expect("it is there")?.path();
        let mut content = fs::read(&path)?;
        spoil(&mut content);
        fs::write(&path, content)?;
        let side = Side::default();
        let control = Control::new(CopyOnError::Continue, Arc::default());
        let mut compare = Compare::new(&side, &control);
        compare.last(&mut file, &end)?;
        assert!(file.hole.is_empty(), "it was looked at");
        // As if only that had been written so far.
        File::options().write(true).open(&path)?.set_len(begin.len() as u64)?;
        file.length = begin.len() as u64;
        compare.last(&mut file, &begin)
    }

    #[test]
    fn every_byte_that_differs_is_found() {
        found(|_| ()).expect("it is the same");
        for at in [0, 131_071, 131_072, 299_999, 300_000, 350_000, 399_999, 400_000, 400_004] {
            let error = found(|content| content[at] ^= 1).expect_err("a bit is wrong");
            assert!(error.to_string().contains("not what was written"), "{at}: {error}");
        }
        found(|content| content.push(0)).expect_err("there is more");
        found(|content| content.truncate(400_004)).expect_err("there is less");
    }

    #[test]
    fn a_hole_at_the_end_is_compared_once_the_file_is_complete() {
        for (spoilt, is_found) in [(false, false), (true, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut storage = LocalFolder::new(Folder::open(folder.path()).expect("opened")).another();
            let head = Head { path: b"file", mode: 0o644, modified: 0, size: 100_000 };
            let mut file = NewFile::make(&head, &mut *storage, "mark", 2).expect("made");
            for _ in 0..100 {
                file.skip(1_000).expect("within its size");
            }
            assert_eq!(file.hole, 0..100_000, "holes next to each other are one");
            file.complete().expect("it is complete");
            let path = fs::read_dir(folder.path()).expect("listed").next().expect("it is there").expect("read").path();
            if spoilt {
                let mut content = fs::read(&path).expect("read");
                content[99_999] = 1;
                fs::write(&path, content).expect("written");
            }
            let side = Side::default();
            let control = Control::new(CopyOnError::Continue, Arc::default());
            assert_eq!(Compare::new(&side, &control).hole(&mut file).is_err(), is_found);
        }
    }
}
