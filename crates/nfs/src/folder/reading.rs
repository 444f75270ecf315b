//! A file that is read from its beginning on, with several READs under way.

use super::connection::{AGAIN, Connection, Failure};
use super::{NfsAttributes, NfsFolder, UNDER_WAY};
use crate::answers::Answer;
use crate::calls::{Ask, Handle};
use crate::status;
use std::collections::VecDeque;
use std::{io, thread};

/// The file. It is read in order; going back begins anew.
pub struct NfsReading {
    folder: NfsFolder,
    file: Handle,
    /// Up to here it is read ahead.
    size: u64,
    /// Its connection, while READs are under way.
    connection: Option<Connection>,
    /// Requested pieces that are not taken yet, in the order of the file.
    pieces: VecDeque<Piece>,
    /// Offset of the next READ.
    ahead: u64,
    /// End of the taken data.
    at: u64,
}

/// Piece of a file, requested by one READ.
struct Piece {
    xid: u32,
    offset: u64,
    count: u32,
    /// Result, and the number of its bytes that were taken.
    came: Option<Result<Vec<u8>, Failure>>,
    taken: usize,
}

impl Piece {
    /// The server is busy with it: it must be asked for again.
    fn is_refused_for_now(&self) -> bool {
        matches!(self.came, Some(Err(Failure::Status(status::JUKEBOX))))
    }
}

/// Puts an answer to its piece.
fn put(pieces: &mut VecDeque<Piece>, xid: u32, answer: Result<Answer<'_>, ()>) {
    let Some(piece) = pieces.iter_mut().find(|piece| piece.xid == xid) else { return };
    piece.came = Some(match answer.map_err(|()| Failure::Unfit) {
        Ok(Answer::Data { bytes, .. }) if bytes.len() <= piece.count as usize => Ok(bytes.to_vec()),
        Ok(other) => Err(other.into()),
        Err(failure) => Err(failure),
    });
}

impl NfsReading {
    pub(super) fn new(folder: NfsFolder, file: Handle, size: u64) -> Self {
        Self { folder, file, size, connection: None, pieces: VecDeque::new(), ahead: 0, at: 0 }
    }

    /// Asks the server for the current attributes.
    pub fn attributes(&self) -> io::Result<NfsAttributes> {
        self.folder.now(&self.file)
    }

    /// Reads some bytes from `offset` on; 0 at the end.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if offset != self.at {
            // What is under way goes with its connection.
            (self.connection, self.at, self.ahead) = (None, offset, offset);
            self.pieces.clear();
        }
        if offset >= self.size || into.is_empty() {
            return Ok(0);
        }
        let result = self.fill(into);
        if result.is_err() {
            self.connection = None;
            self.pieces.clear();
        }
        let count = result?;
        self.at += count as u64;
        if self.pieces.is_empty()
            && let Some(connection) = self.connection.take()
        {
            self.folder.server.connections.give(connection);
        }
        Ok(count)
    }

    fn fill(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.ask_ahead()?;
        loop {
            match self.pieces.pop_front() {
                Some(front) if front.is_refused_for_now() => {
                    self.pieces.push_front(front);
                    thread::sleep(AGAIN);
                    for at in 0..self.pieces.len() {
                        let Piece { offset, count, .. } = self.pieces[at];
                        if self.pieces[at].is_refused_for_now() {
                            self.pieces[at] = self.ask(offset, count)?;
                        }
                    }
                }
                Some(Piece { came: Some(Err(failure)), .. }) => return Err(failure.of("READ")),
                Some(Piece { xid, offset, count, came: Some(Ok(bytes)), taken }) => {
                    let now = into.len().min(bytes.len() - taken);
                    into[..now].copy_from_slice(&bytes[taken..taken + now]);
                    if taken + now < bytes.len() {
                        let came = Some(Ok(bytes));
                        self.pieces.push_front(Piece { xid, offset, count, came, taken: taken + now });
                    } else if !bytes.is_empty() && bytes.len() < count as usize {
                        // The server gave less than was asked for: the rest comes next.
                        let got = bytes.len() as u32;
                        let remainder = self.ask(offset + u64::from(got), count - got)?;
                        self.pieces.push_front(remainder);
                    }
                    return Ok(now);
                }
                Some(waiting) => self.pieces.push_front(waiting),
                None => return Ok(0),
            }
            let Some(connection) = &mut self.connection else { return Ok(0) };
            let pieces = &mut self.pieces;
            connection.hear(|xid, answer| put(pieces, xid, answer))?;
        }
    }

    /// Has as many READs under way as there may be.
    fn ask_ahead(&mut self) -> io::Result<()> {
        while self.pieces.len() < UNDER_WAY && self.ahead < self.size {
            let count = self.folder.server.read.min(u32::try_from(self.size - self.ahead).unwrap_or(u32::MAX));
            let piece = self.ask(self.ahead, count)?;
            self.pieces.push_back(piece);
            self.ahead += u64::from(count);
        }
        let connection = &mut self.connection;
        let pieces = &mut self.pieces;
        // Send the requests now.
        connection.as_mut().map_or(Ok(()), |connection| connection.look(|xid, answer| put(pieces, xid, answer)))
    }

    fn ask(&mut self, offset: u64, count: u32) -> io::Result<Piece> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.folder.connection()?),
        };
        let xid = connection.ask(&Ask::Read { file: &self.file, offset, count })?;
        Ok(Piece { xid, offset, count, came: None, taken: 0 })
    }
}
