//! Reads an open file in its order, several pieces ahead.

use crate::connection::Ticket;
use crate::error::{CallError, status};
use crate::request::{FileId, Request};
use crate::tree::Tree;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;

/// Pieces on their way.
const AHEAD: usize = 4;

/// The pieces of a file from its beginning to its end.
#[derive(Default)]
pub(crate) struct Pieces {
    /// Bytes of the file that are read at most.
    size: u64,
    /// Requested pieces, in order.
    ahead: VecDeque<Ticket>,
    /// Offset of the first byte that was not requested.
    asked: u64,
    /// The piece that is being taken: some bytes of the answer that it came in, and where in the file it begins.
    answer: Vec<u8>,
    piece: Range<usize>,
    at: u64,
}

impl Pieces {
    pub(crate) fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    /// The bytes from `offset` on that are there, or come next; none at the end.
    pub(crate) fn read(&mut self, tree: &Tree, file: &FileId, offset: u64) -> io::Result<&[u8]> {
        let end = self.at + self.piece.len() as u64;
        if !(self.at..end).contains(&offset) {
            if offset != end {
                self.ahead.clear();
                self.asked = offset;
            }
            self.take_next(tree, file, offset).map_err(|error| {
                // The offsets of later pieces are no longer right.
                self.ahead.clear();
                self.asked = offset;
                tree.failed(error)
            })?;
        }
        let from = usize::try_from(offset - self.at).unwrap_or(usize::MAX).min(self.piece.len());
        Ok(&self.answer[self.piece.clone()][from..])
    }

    /// Asks for what comes next.
    pub(crate) fn ask(&mut self, tree: &Tree, file: &FileId) -> Result<(), CallError> {
        while self.ahead.len() < AHEAD && self.asked < self.size {
            let left = usize::try_from(self.size - self.asked).unwrap_or(usize::MAX);
            let bytes = left.min(tree.max_read);
            self.ahead.push_back(tree.submit(Request::read(file, self.asked, bytes))?);
            self.asked += bytes as u64;
        }
        Ok(())
    }

    fn take_next(&mut self, tree: &Tree, file: &FileId, offset: u64) -> Result<(), CallError> {
        tree.connection.recycle(std::mem::take(&mut self.answer));
        (self.piece, self.at) = (0..0, offset);
        self.ask(tree, file)?;
        let Some(next) = self.ahead.pop_front() else { return Ok(()) };
        let answer = match next.wait() {
            Ok(answer) => answer,
            Err(CallError::Status(status::END_OF_FILE)) => {
                // It ends earlier than it was known to.
                (self.size, self.ahead) = (offset, VecDeque::new());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let expected = usize::try_from(self.size - offset).unwrap_or(usize::MAX).min(tree.max_read);
        let Range { start, end } = answer.read()?;
        self.piece = start..end.min(start + expected);
        self.answer = answer.bytes;
        if self.piece.len() < expected {
            // A server may give less than it is asked for: the rest is asked for again.
            self.ahead.clear();
            self.asked = offset + self.piece.len() as u64;
        }
        Ok(())
    }
}
