//! A file that is being written: several pieces on their way, under a name that it changes when it is whole.

use crate::connection::Ticket;
use crate::error::{CallError, status};
use crate::file_info::file_time;
use crate::listing::Listing;
use crate::path::wire;
use crate::pieces::Pieces;
use crate::request::Request;
use crate::tree::Handle;
use std::collections::VecDeque;
use std::io;

/// Pieces on their way.
const AHEAD: usize = 8;

/// A new file. Dropped before it has its name, it is removed.
pub struct Writer {
    file: Handle,
    /// Pieces on their way, and their lengths.
    ahead: VecDeque<(Ticket, usize)>,
    /// End of the written content.
    end: u64,
    /// Its time of change, until it has it.
    modified: Option<i64>,
    /// Content that is read back.
    pieces: Option<Pieces>,
    /// Whether it has its final name, or was removed.
    settled: bool,
}

impl Writer {
    pub(crate) fn new(file: Handle) -> Self {
        Self { file, ahead: VecDeque::new(), end: 0, modified: None, pieces: None, settled: false }
    }

    /// Writes at `offset`. What fails may show only later, in [`Self::complete`] at the latest.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut at = offset;
        for piece in data.chunks(self.file.tree.max_write) {
            if self.ahead.len() >= AHEAD {
                self.await_one()?;
            }
            let sent = self.submit(Request::write(&self.file.id, at, piece))?;
            self.ahead.push_back((sent, piece.len()));
            at += piece.len() as u64;
        }
        self.end = self.end.max(at);
        Ok(())
    }

    /// Waits until all is written, and sets the length. The time of change follows with [`Self::sync`] or
    /// [`Self::name`].
    ///
    /// # Errors
    /// The server refuses, has no room, or is lost.
    pub fn complete(&mut self, length: u64, modified: i64) -> io::Result<()> {
        while !self.ahead.is_empty() {
            self.await_one()?;
        }
        if self.end != length {
            self.file.tree.call(Request::set_length(&self.file.id, length))?;
            self.end = length;
        }
        self.modified = Some(modified);
        Ok(())
    }

    /// Makes it durable, as far as the server does what it is asked for.
    ///
    /// # Errors
    /// The server refuses, has no room, or is lost.
    pub fn sync(&mut self) -> io::Result<()> {
        if let Some(modified) = self.modified.take() {
            self.file.tree.call(self.set_time(modified))?;
        }
        self.file.tree.call(Request::flush(&self.file.id)).map(drop)
    }

    /// Some bytes of what was written, read back from `offset` on; none at the end. It is fast in the order of the
    /// file.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn read(&mut self, offset: u64) -> io::Result<&[u8]> {
        let pieces = self.pieces.get_or_insert_with(|| Pieces::new(self.end));
        pieces.read(&self.file.tree, &self.file.id, offset)
    }

    /// Gives it the name at `path`, in place of the file that has it.
    ///
    /// # Errors
    /// Another name stands there that the server takes for the same; the server refuses, or is lost.
    pub fn name(&mut self, path: &[u8]) -> io::Result<()> {
        self.pieces = None;
        let to = wire(path)?;
        // Neither waits for the other: on a long or busy path that is a round trip for each file.
        let mut timed = self.modified.take().map(|modified| self.submit(self.set_time(modified))).transpose()?;
        let renamed = self.submit(Request::rename(&self.file.id, &to, false))?.wait();
        match renamed {
            Err(CallError::Status(status::COLLISION)) => {
                self.check_twin(path)?;
                // Nothing is replaced by what has gone wrong.
                let timed = timed.take().map_or(Ok(()), |timed| timed.wait().map(drop));
                timed.map_err(|error| self.file.tree.failed(error))?;
                self.file.tree.call(Request::rename(&self.file.id, &to, true)).map(drop)?;
            }
            named => named.map(drop).map_err(|error| self.file.tree.failed(error))?,
        }
        self.settled = true;
        timed.map_or(Ok(()), |timed| timed.wait().map(drop)).map_err(|error| self.file.tree.failed(error))
    }

    /// Removes it.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn discard(&mut self) -> io::Result<()> {
        self.pieces = None;
        self.settled = true;
        self.file.tree.call(Request::remove(&self.file.id))?;
        self.file.close()
    }

    /// Refuses to replace a name that equals the new one only to a server that ignores case.
    fn check_twin(&self, path: &[u8]) -> io::Result<()> {
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let (folder, name) = cut.map_or((&[][..], path), |cut| (&path[..cut], &path[cut + 1..]));
        for found in Listing::open(&self.file.tree, folder, &String::from_utf8_lossy(name))? {
            let (found, _) = found?;
            if found != name {
                let found = String::from_utf8_lossy(&found);
                let why = format!("`{found}` is there, and the server takes the two names for one; rename it");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
        }
        Ok(())
    }

    fn set_time(&self, modified: i64) -> Request<'static> {
        Request::set_time(&self.file.id, file_time(modified))
    }

    fn submit(&self, request: Request<'_>) -> io::Result<Ticket> {
        self.file.tree.submit(request).map_err(|error| self.file.tree.failed(error))
    }

    fn await_one(&mut self) -> io::Result<()> {
        let Some((first, length)) = self.ahead.pop_front() else { return Ok(()) };
        let written = first.wait().and_then(|answer| answer.written());
        match written.map_err(|error| self.file.tree.failed(error))? {
            all if all >= length => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::WriteZero, "the server wrote less than it was given")),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.settled {
            // The error has no receiver.
            let _ = self.discard();
        }
    }
}
