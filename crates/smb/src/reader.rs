//! A file that is read, from its beginning to its end, several pieces ahead.

use crate::session::{Session, about};
use crate::{About, Kind};
use smb::File;
use smb::binrw_util::prelude::FileTime;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Pieces on their way.
const AHEAD: usize = 8;
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
    /// Pieces that are on their way, one behind the other.
    ahead: VecDeque<JoinHandle<smb::Result<Vec<u8>>>>,
    /// Where the first byte that was not asked for is.
    asked: u64,
    /// The piece that is being taken, and where it begins.
    piece: Vec<u8>,
    at: u64,
}

impl Reader {
    pub(crate) fn new(session: Session, path: &[u8], file: File, size: u64) -> Self {
        let modified = crate::unix_ns(*FileTime::from(file.modified()));
        let file = Arc::new(file);
        let path = path.to_vec();
        let mut reader =
            Self { session, path, file, size, modified, ahead: VecDeque::new(), asked: 0, piece: Vec::new(), at: 0 };
        if size <= SMALL {
            reader.ask();
        }
        reader
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
        let end = self.at + self.piece.len() as u64;
        if !(self.at..end).contains(&offset) {
            if offset != end {
                self.ahead.clear();
                self.asked = offset;
            }
            self.ask();
            let Some(next) = self.ahead.pop_front() else { return Ok(0) };
            self.piece = self.session.shared.finish(next)?;
            self.at = offset;
        }
        let left = &self.piece[usize::try_from(offset - self.at).unwrap_or(usize::MAX)..];
        let some = left.len().min(into.len());
        into[..some].copy_from_slice(&left[..some]);
        Ok(some)
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
        reader.size = self.size.min(reader.size);
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

    /// Asks for what comes next.
    fn ask(&mut self) {
        while self.asked < self.size && self.ahead.len() < AHEAD {
            let most = self.session.shared.read_most;
            let bytes = most.min(usize::try_from(self.size - self.asked).unwrap_or(most));
            self.ahead.push_back(self.session.shared.spawn(piece(Arc::clone(&self.file), self.asked, bytes)));
            self.asked += bytes as u64;
        }
    }
}

/// A piece of a file, shorter only if the file ends.
async fn piece(file: Arc<File>, at: u64, bytes: usize) -> smb::Result<Vec<u8>> {
    let mut piece = vec![0; bytes];
    let mut read = 0;
    while read < bytes {
        match file.read_block(&mut piece[read..], at + read as u64, None, false).await.map_err(smb::Error::from) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if crate::error::is_end(&error) => break,
            Err(error) => return Err(error),
        }
    }
    piece.truncate(read);
    Ok(piece)
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.shared.close_file(&self.file);
    }
}
