//! A file that is being read.

use crate::About;
use crate::pieces::Pieces;
use crate::request::Request;
use crate::session::Handle;
use std::io;

/// Files up to this size are asked for as soon as they are open: whoever opens many before it reads does not wait for each.
const SMALL: u64 = 16 << 10;

/// An open file. Its content is asked for ahead, in the file's order.
pub struct Reader {
    file: Handle,
    opened: About,
    pieces: Pieces,
}

impl Reader {
    pub(crate) fn new(file: Handle, opened: About) -> io::Result<Self> {
        let mut pieces = Pieces::new(opened.size);
        if opened.size <= SMALL {
            pieces.ask(&file.session, &file.id).map_err(|error| file.session.failed(error))?;
        }
        Ok(Self { file, opened, pieces })
    }

    /// What was known of it when it was opened. More bytes than it had then are not read.
    pub fn opened(&self) -> About {
        self.opened
    }

    /// Reads some bytes from `offset` on; 0 at the end. It is fast in the order of the file.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let some = self.pieces.read(&self.file.session, &self.file.id, offset)?;
        let most = some.len().min(into.len());
        into[..most].copy_from_slice(&some[..most]);
        Ok(most)
    }

    /// What is known of it now.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn about(&mut self) -> io::Result<About> {
        let answer = self.file.session.call(Request::about(&self.file.id))?;
        answer.about().map_err(|error| self.file.session.failed(error))
    }
}
