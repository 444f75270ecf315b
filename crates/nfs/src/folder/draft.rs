//! A file that is being written under a temporary name, with several WRITEs under way.
//!
//! Data goes UNSTABLE and is made durable by COMMIT (RFC 1813 sections 3.3.7 and 3.3.21). A server that restarts in
//! between may have forgotten it, and says so by another verifier: then the file is given up.

use super::connection::{AGAIN, Connection, Failure};
use super::{NfsFolder, NfsReading, UNDER_WAY, time};
use crate::answers::{Answer, Verifier};
use crate::calls::{Ask, Handle, Settings};
use crate::status;
use std::collections::HashMap;
use std::{io, thread};

/// The file. Dropped before it has its name, it is removed.
pub struct NfsDraft {
    folder: NfsFolder,
    file: Handle,
    directory: Handle,
    temporary: String,
    name: Vec<u8>,
    named: bool,
    /// Its permissions and time of change, until it has them.
    settings: Settings,
    written: Written,
    /// End of the written data.
    end: u64,
    /// Reader for reading it back.
    reading: Option<NfsReading>,
}

/// WRITEs and what came of them.
#[derive(Default)]
struct Written {
    /// The connection, while WRITEs are under way.
    connection: Option<Connection>,
    /// Offset and data, by number: a server may write less than asked.
    under_way: HashMap<u32, (u64, Vec<u8>)>,
    verifier: Option<Verifier>,
}

impl NfsDraft {
    pub(super) fn new(folder: NfsFolder, file: Handle, directory: Handle, temporary: String, name: Vec<u8>) -> Self {
        let written = Written::default();
        Self {
            folder,
            file,
            directory,
            temporary,
            name,
            named: false,
            settings: Settings::default(),
            written,
            end: 0,
            reading: None,
        }
    }

    /// Sends `data` for `offset` on its way; what fails then shows later, in [`Self::complete`] at the latest.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        for (index, piece) in data.chunks(self.folder.server.write as usize).enumerate() {
            while self.written.under_way.len() >= UNDER_WAY {
                self.written.hear(&self.file)?;
            }
            let connection = match &mut self.written.connection {
                Some(connection) => connection,
                None => self.written.connection.insert(self.folder.connection()?),
            };
            let offset = offset + index as u64 * u64::from(self.folder.server.write);
            let xid = connection.ask(&Ask::Write { file: &self.file, offset, data: piece, stable: false })?;
            self.written.under_way.insert(xid, (offset, piece.to_vec()));
        }
        self.end = offset + data.len() as u64;
        self.written.look(&self.file)
    }

    /// Waits until the server has everything, and sets the length. Permissions and time of change follow with the name.
    pub fn complete(&mut self, length: u64, mode: u32, modified: i64) -> io::Result<()> {
        while !self.written.under_way.is_empty() {
            self.written.hear(&self.file)?;
        }
        if let Some(connection) = self.written.connection.take() {
            self.folder.server.connections.give(connection);
        }
        if length != self.end {
            self.folder.set(&self.file, Settings { size: Some(length), ..Settings::default() })?;
            self.end = length;
        }
        self.settings = Settings { mode: Some(mode), size: None, modified: Some(time(modified)) };
        Ok(())
    }

    /// Makes it durable.
    pub fn sync(&mut self) -> io::Result<()> {
        let Some(before) = self.written.verifier else { return Ok(()) };
        let now = self.folder.server.connections.one("COMMIT", &Ask::Commit(&self.file), |answer| match answer {
            Answer::Committed(now) => Ok(now),
            other => Err(other.into()),
        })?;
        if now == before { Ok(()) } else { Err(restarted()) }
    }

    /// Reads some bytes of what was written from `offset` on, in order; 0 at the end.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let reading = match &mut self.reading {
            Some(reading) => reading,
            None => self.reading.insert(NfsReading::new(self.folder.clone(), self.file.clone(), self.end)),
        };
        reading.read(offset, into)
    }

    /// Gives it its name, in place of what has it.
    pub fn name(&mut self) -> io::Result<()> {
        let directory = &self.directory;
        let from = self.temporary.as_bytes();
        let to = &self.name[..];
        // Neither waits for the other: on a long or busy path that is a round trip for each file.
        let calls = [("SETATTR", Ask::Set(&self.file, self.settings)), ("RENAME", Ask::Rename { directory, from, to })];
        let [set, named] = self.folder.server.connections.both(calls, super::done)?;
        named?;
        self.named = true;
        set
    }
}

impl Written {
    /// Waits for answers.
    fn hear(&mut self, file: &Handle) -> io::Result<()> {
        self.answers(file, true)
    }

    /// Takes those that are there.
    fn look(&mut self, file: &Handle) -> io::Result<()> {
        self.answers(file, false)
    }

    fn answers(&mut self, file: &Handle, wait: bool) -> io::Result<()> {
        let Self { connection, under_way, verifier } = self;
        let Some(connection) = connection else { return Ok(()) };
        let mut failed = None;
        let mut busy = false;
        let mut left = Vec::new();
        let mut take = |xid: u32, answer: Result<Answer<'_>, ()>| {
            let Some((offset, data)) = under_way.remove(&xid) else { return };
            match answer.map_err(|()| Failure::Unfit) {
                Ok(Answer::Written { count, verifier: now }) if (1..=data.len()).contains(&(count as usize)) => {
                    if *verifier.get_or_insert(now) != now {
                        failed = Some(restarted());
                    }
                    if (count as usize) < data.len() {
                        left.push((offset + u64::from(count), data[count as usize..].to_vec()));
                    }
                }
                Ok(Answer::Failed(status::JUKEBOX)) => {
                    busy = true;
                    left.push((offset, data));
                }
                Ok(other) => failed = Some(Failure::from(other).of("WRITE")),
                Err(failure) => failed = Some(failure.of("WRITE")),
            }
        };
        let heard = if wait { connection.hear(&mut take) } else { connection.look(&mut take) };
        heard?;
        if let Some(error) = failed {
            return Err(error);
        }
        if busy {
            thread::sleep(AGAIN);
        }
        for (offset, data) in left {
            let xid = connection.ask(&Ask::Write { file, offset, data: &data, stable: false })?;
            under_way.insert(xid, (offset, data));
        }
        Ok(())
    }
}

impl Drop for NfsDraft {
    fn drop(&mut self) {
        // What is under way goes with its connection.
        self.written.connection = None;
        if !self.named {
            self.folder.remove_in(&self.directory, self.temporary.as_bytes());
        }
    }
}

fn restarted() -> io::Error {
    io::Error::other("the NFS server restarted and may have lost what it had not yet stored; copy it again")
}
