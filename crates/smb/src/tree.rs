//! A share that a session is connected to (MS-SMB2 "tree connect"), and open files on it.

use crate::answer::Answer;
use crate::connection::{Connection, Ticket};
use crate::error::CallError;
use crate::file_info::FileInfo;
use crate::path::wire;
use crate::request::{Disposition, FileId, Protection, Request};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time that the log-off waits for its answer.
const LOG_OUT: Duration = Duration::from_secs(2);

/// A connected share. Dropping it logs off and closes the connection.
pub(crate) struct Tree {
    pub(crate) connection: Arc<Connection>,
    pub(crate) server: String,
    pub(crate) id: u32,
    pub(crate) protection: Protection,
    /// Largest content of one read message, in bytes.
    pub(crate) max_read: usize,
    /// Largest content of one write message, in bytes.
    pub(crate) max_write: usize,
}

/// An open file or folder. Dropping it sends a close without waiting for the answer; the end of the session closes it
/// anyway.
pub(crate) struct Handle {
    pub(crate) tree: Arc<Tree>,
    pub(crate) id: FileId,
    closed: bool,
}

impl Tree {
    /// Opens the file or folder at `path`.
    pub(crate) fn open(
        self: &Arc<Self>,
        path: &[u8],
        disposition: Disposition,
        access: u32,
        options: u32,
    ) -> io::Result<(Handle, FileInfo)> {
        let answer = self.call(Request::create(&wire(path)?, access, disposition, options))?;
        let (id, info) = answer.created().map_err(|error| self.failed(error))?;
        Ok((Handle { tree: Arc::clone(self), id, closed: false }, info))
    }

    /// Sends a request.
    pub(crate) fn submit(&self, request: Request<'_>) -> Result<Ticket, CallError> {
        self.connection.submit(Request { tree: self.id, protection: self.protection, ..request })
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call(&self, request: Request<'_>) -> io::Result<Answer> {
        self.submit(request).and_then(Ticket::wait).map_err(|error| self.failed(error))
    }

    /// Converts a failed call to an I/O error. A lost connection has the kind `NotConnected`.
    pub(crate) fn failed(&self, error: CallError) -> io::Error {
        error.into_io(&self.server)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.connection.close(Request { protection: self.protection, ..Request::log_off() }, LOG_OUT);
    }
}

impl Handle {
    /// Closes it, and waits for that.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.closed = true;
        self.tree.call(Request::close(&self.id)).map(drop)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.tree.submit(Request::close(&self.id));
        }
    }
}
