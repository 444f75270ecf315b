//! What is read of an open file, in its order, several pieces ahead.

use crate::session::Shared;
use smb::File;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// Pieces on their way.
const AHEAD: usize = 8;
/// Buffers that are kept for further pieces: most files are one small piece.
const KEPT: usize = 16;

/// The pieces of a file from its beginning to its end.
pub(crate) struct Pieces {
    file: Arc<File>,
    /// Bytes of the file that are read at most.
    size: u64,
    /// Pieces that are on their way, one behind the other.
    ahead: VecDeque<JoinHandle<smb::Result<Piece>>>,
    /// Where the first byte that was not asked for is.
    asked: u64,
    /// The piece that is being taken, and where it begins.
    piece: Piece,
    at: u64,
}

/// Some bytes: the beginning of a buffer.
#[derive(Default)]
struct Piece {
    buffer: Vec<u8>,
    length: usize,
}

/// Buffers that no piece uses: new ones would be cleared, and come from the system page by page.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn take(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        buffer
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT && !buffer.is_empty() {
            kept.push(buffer);
        }
    }
}

impl Pieces {
    pub(crate) fn new(file: &Arc<File>, size: u64) -> Self {
        let (file, piece) = (Arc::clone(file), Piece::default());
        Self { file, size, ahead: VecDeque::new(), asked: 0, piece, at: 0 }
    }

    /// The bytes from `offset` on that are there, or come next; none at the end.
    pub(crate) fn read(&mut self, shared: &Shared, offset: u64) -> io::Result<&[u8]> {
        let end = self.at + self.piece.length as u64;
        if !(self.at..end).contains(&offset) {
            if offset != end {
                self.ahead.clear();
                self.asked = offset;
            }
            shared.buffers.put(std::mem::take(&mut self.piece).buffer);
            self.at = offset;
            self.piece = self.next(shared)?;
        }
        let from = usize::try_from(offset - self.at).unwrap_or(usize::MAX);
        Ok(&self.piece.buffer[from.min(self.piece.length)..self.piece.length])
    }

    /// Asks for what comes next.
    pub(crate) fn ask(&mut self, shared: &Shared) {
        while self.ahead.len() < AHEAD
            && let Some(piece) = self.further(shared)
        {
            self.ahead.push_back(shared.spawn(piece));
        }
    }

    fn next(&mut self, shared: &Shared) -> io::Result<Piece> {
        // The last one is waited for at once: no other thread need be woken for it.
        let last = self.ahead.is_empty() && self.size.saturating_sub(self.asked) <= shared.read_most as u64;
        if last {
            return self.further(shared).map_or(Ok(Piece::default()), |piece| shared.wait(piece));
        }
        self.ask(shared);
        self.ahead.pop_front().map_or(Ok(Piece::default()), |next| shared.finish(next))
    }

    /// The piece behind all that was asked for; none at the end.
    fn further(&mut self, shared: &Shared) -> Option<impl Future<Output = smb::Result<Piece>> + Send + use<>> {
        let left = self.size.checked_sub(self.asked).filter(|left| *left > 0)?;
        let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(shared.read_most);
        let piece = piece(Arc::clone(&self.file), self.asked, bytes, shared.buffers.take(bytes));
        self.asked += bytes as u64;
        Some(piece)
    }
}

/// A piece of a file, shorter only if the file ends.
async fn piece(file: Arc<File>, at: u64, bytes: usize, mut buffer: Vec<u8>) -> smb::Result<Piece> {
    let mut length = 0;
    while length < bytes {
        let into = &mut buffer[length..bytes];
        match file.read_block(into, at + length as u64, None, false).await.map_err(smb::Error::from) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if crate::error::is_end(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(Piece { buffer, length })
}
