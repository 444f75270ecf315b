//! A file that is being read.

use crate::file_info::FileInfo;
use crate::pieces::Pieces;
use crate::request::Request;
use crate::tree::Handle;
use std::io;

/// Files up to this size are asked for as soon as they are open: whoever opens many before it reads does not wait for
/// each.
const SMALL: u64 = 16 << 10;

/// An open file. Its content is asked for ahead, in the file's order.
pub struct Reader {
    file: Handle,
    opened: FileInfo,
    pieces: Pieces,
}

impl Reader {
    pub(crate) fn new(file: Handle, opened: FileInfo) -> io::Result<Self> {
        let mut pieces = Pieces::new(opened.size);
        if opened.size <= SMALL {
            pieces.ask(&file.tree, &file.id).map_err(|error| file.tree.failed(error))?;
        }
        Ok(Self { file, opened, pieces })
    }

    /// Returns the attributes at the time of opening. Bytes beyond the size at that time are not read.
    pub fn opened(&self) -> FileInfo {
        self.opened
    }

    /// Reads some bytes from `offset` on; 0 at the end. It is fast in the order of the file.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let some = self.pieces.read(&self.file.tree, &self.file.id, offset)?;
        let count = some.len().min(into.len());
        into[..count].copy_from_slice(&some[..count]);
        Ok(count)
    }

    /// Asks the server for the current attributes.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn about(&mut self) -> io::Result<FileInfo> {
        let answer = self.file.tree.call(Request::about(&self.file.id))?;
        answer.about().map_err(|error| self.file.tree.failed(error))
    }
}
