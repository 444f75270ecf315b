//! A file that is read, from its beginning to its end, several pieces ahead.

use crate::pieces::Pieces;
use crate::session::{Session, about};
use crate::{About, Kind};
use smb::File;
use smb::binrw_util::prelude::FileTime;
use std::io;
use std::sync::Arc;

/// Files up to this size are asked for as soon as they are open: whoever opens many before it reads does not wait for each.
const SMALL: u64 = 64 << 10;

/// An open file.
pub struct Reader {
    path: Vec<u8>,
    /// Dropped before its session: what comes last of a connection is dropped on its own threads.
    file: Arc<File>,
    session: Session,
    size: u64,
    modified: i64,
    pieces: Pieces,
}

impl Reader {
    pub(crate) fn new(session: Session, path: &[u8], file: File, size: u64) -> Self {
        let modified = crate::unix_ns(*FileTime::from(file.modified()));
        let file = Arc::new(file);
        let mut pieces = Pieces::new(&file, size);
        if size <= SMALL {
            pieces.ask(&session.shared);
        }
        Self { path: path.to_vec(), file, session, size, modified, pieces }
    }

    /// What was known of it when it was opened. More bytes than it had then are not read.
    pub fn opened(&self) -> About {
        About { kind: Kind::File, size: self.size, modified: self.modified }
    }

    /// Reads some bytes from `offset` on; 0 at the end. It is fast in the order of the file.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let some = self.pieces.read(&self.session.shared, offset)?;
        let most = some.len().min(into.len());
        into[..most].copy_from_slice(&some[..most]);
        Ok(most)
    }

    /// Whether its session is spent: see [`Session::is_spent`].
    pub fn is_spent(&self) -> bool {
        self.session.is_spent()
    }

    /// Goes on over another session.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn move_to(&mut self, session: &Session) -> io::Result<()> {
        let mut reader = session.open(&self.path)?;
        if self.size < reader.size {
            reader.size = self.size;
            reader.pieces = Pieces::new(&reader.file, self.size);
        }
        reader.modified = self.modified;
        *self = reader;
        Ok(())
    }

    /// What is known of it now.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn about(&mut self) -> io::Result<About> {
        self.session.shared.wait(about(self.file.handle()))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.shared.close_file(&self.file);
    }
}
