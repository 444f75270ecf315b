//! Bytes that come, until they are a message (MS-SMB2 2.1).

use crate::wire::{CREDIT, MAX_PIECE};
use std::io::{self, Read};

/// A small answer and its length come with one call to the system.
const AHEAD: usize = 16 << 10;
/// Length of the longest answer: the longest piece of content and its headers.
const LONGEST: usize = MAX_PIECE + CREDIT;
/// Bytes that are read at a time: that they come shows that the server is there.
const GULP: usize = 256 << 10;

/// Received bytes that are not taken yet.
pub(crate) struct Receiver {
    /// Bytes from `from` to `to` have come and were not taken.
    ahead: Vec<u8>,
    from: usize,
    to: usize,
    /// A message of which not all has come, and its length.
    message: Option<(Vec<u8>, usize)>,
}

impl Default for Receiver {
    fn default() -> Self {
        Self { ahead: vec![0; AHEAD], from: 0, to: 0, message: None }
    }
}

impl Receiver {
    /// Receives the next message. A message that is cut short, as by the stream's time limit, stays until the next
    /// call. `stir` is called when bytes come; `room` gives a buffer for a message of that many bytes.
    ///
    /// # Errors
    /// The stream's own; it ended (`UnexpectedEof`), or what comes is no message (`InvalidData`).
    pub(crate) fn receive(
        &mut self,
        mut stream: impl Read,
        stir: impl Fn(),
        room: impl Fn(usize) -> Vec<u8>,
    ) -> io::Result<Vec<u8>> {
        // None means that no more will come.
        let some = |bytes: usize| {
            stir();
            if bytes == 0 { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) } else { Ok(bytes) }
        };
        loop {
            let there = self.to - self.from;
            let Some((message, length)) = &mut self.message else {
                if let Some(head) = self.ahead[self.from..self.to].first_chunk::<4>() {
                    let length = u32::from_be_bytes(*head) as usize;
                    if length > LONGEST {
                        let why = "it sent what is no message of SMB 2 or 3, or none that was asked for";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                    }
                    self.from += 4;
                    self.message = Some((room(length), length));
                } else {
                    self.ahead.copy_within(self.from..self.to, 0);
                    (self.from, self.to) = (0, there);
                    self.to += some(stream.read(&mut self.ahead[there..])?)?;
                }
                continue;
            };
            let missing = *length - message.len();
            if missing == 0 {
                return Ok(self.message.take().map(|(message, _)| message).unwrap_or_default());
            }
            if there > 0 {
                let taken = there.min(missing);
                message.extend_from_slice(&self.ahead[self.from..self.from + taken]);
                self.from += taken;
            } else if missing < AHEAD / 2 {
                (self.from, self.to) = (0, some(stream.read(&mut self.ahead)?)?);
            } else {
                // Its memory is not cleared before it is filled.
                let before = message.len();
                let gulp = missing.min(GULP);
                let read = stream.by_ref().take(gulp as u64).read_to_end(message);
                if message.len() > before {
                    stir();
                }
                if read? < gulp {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }

    /// A whole message has come and was not taken.
    pub(crate) fn has_whole(&self) -> bool {
        let there = &self.ahead[self.from..self.to];
        let Some(head) = there.first_chunk::<4>() else { return false };
        self.message.is_none() && there.len() - 4 >= u32::from_be_bytes(*head) as usize
    }
}
