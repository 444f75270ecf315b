//! A file that is being written: several pieces on their way, under a name that it changes when it is whole.

use crate::path::wire;
use crate::reader::Reader;
use crate::session::{Session, collides, set_time};
use smb::{File, FileDispositionInformation, FileEndOfFileInformation, FileRenameInformation};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Pieces on their way.
const AHEAD: usize = 8;

/// A new file. Dropped before it has its name, it is removed.
pub struct Writer {
    /// Its path so far.
    path: Vec<u8>,
    /// Dropped before its session: what comes last of a connection is dropped on its own threads.
    file: Arc<File>,
    session: Session,
    ahead: VecDeque<JoinHandle<smb::Result<()>>>,
    /// Where what was written ends.
    end: u64,
    /// Open once it is read back.
    reader: Option<Reader>,
    /// It has its name, or was removed.
    settled: bool,
}

impl Writer {
    pub(crate) fn new(session: Session, path: &[u8], file: File) -> Self {
        let (path, file) = (path.to_vec(), Arc::new(file));
        Self { session, path, file, ahead: VecDeque::new(), end: 0, reader: None, settled: false }
    }

    /// Writes at `offset`. What fails may show only later, in [`Self::complete`] at the latest.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut at = offset;
        for piece in data.chunks(self.session.shared.write_most) {
            while self.ahead.len() >= AHEAD {
                self.await_one()?;
            }
            self.ahead.push_back(self.session.shared.spawn(write(Arc::clone(&self.file), at, piece.into())));
            at += piece.len() as u64;
        }
        self.end = self.end.max(at);
        Ok(())
    }

    /// Whether its session is spent: see [`Session::is_spent`].
    pub fn is_spent(&self) -> bool {
        self.session.is_spent()
    }

    /// Goes on over another session.
    ///
    /// # Errors
    /// The server refuses, has no room for what was written, or is lost.
    pub fn move_to(&mut self, session: Session) -> io::Result<()> {
        while !self.ahead.is_empty() {
            self.await_one()?;
        }
        self.reader = None;
        let file = session.reopen(&self.path)?;
        self.session.shared.close_file(&self.file);
        self.file = file;
        self.session = session;
        Ok(())
    }

    /// All was written: waits for it, and gives the file its length and time of change.
    ///
    /// # Errors
    /// The server refuses, has no room, or is lost.
    pub fn complete(&mut self, length: u64, modified: i64) -> io::Result<()> {
        while !self.ahead.is_empty() {
            self.await_one()?;
        }
        if self.end != length {
            self.session.shared.wait(self.file.set_info(FileEndOfFileInformation { end_of_file: length }))?;
            self.end = length;
        }
        self.session.shared.wait(set_time(self.file.handle(), modified))
    }

    /// Makes it durable, as far as the server does what it is asked for.
    ///
    /// # Errors
    /// The server refuses, has no room, or is lost.
    pub fn sync(&mut self) -> io::Result<()> {
        self.session.shared.wait(async { Ok(self.file.flush().await?) })
    }

    /// Reads back some bytes from `offset` on, by a new handle; 0 at the end.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.session.open_up_to(&self.path, Some(self.end))?,
        };
        self.reader.insert(reader).read(offset, into)
    }

    /// Gives it the name at `path`, in place of the file that has it.
    ///
    /// # Errors
    /// Another name stands there that the server takes for the same; the server refuses, or is lost.
    pub fn name(&mut self, path: &[u8]) -> io::Result<()> {
        self.reader = None;
        let to = wire(path)?;
        let shared = &self.session.shared;
        let named = shared.wait(async {
            match rename(&self.file, &to, false).await {
                Err(error) if collides(&error) => Ok(false),
                named => named.map(|()| true),
            }
        })?;
        if !named {
            self.check_twin(path)?;
            shared.wait(rename(&self.file, &to, true))?;
        }
        self.settled = true;
        Ok(())
    }

    /// Removes it.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn discard(&mut self) -> io::Result<()> {
        self.reader = None;
        self.settled = true;
        let delete = FileDispositionInformation { delete_pending: true.into() };
        self.session.shared.wait(async {
            self.file.set_info(delete).await?;
            self.file.handle().close().await
        })
    }

    /// Refuses to replace what only looks the same to a server that does not tell upper from lower case.
    fn check_twin(&self, path: &[u8]) -> io::Result<()> {
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let (folder, name) = cut.map_or((&[][..], path), |cut| (&path[..cut], &path[cut + 1..]));
        for found in self.session.list(folder, &String::from_utf8_lossy(name))? {
            let (found, _) = found?;
            if found != name {
                let found = String::from_utf8_lossy(&found);
                let why = format!("`{found}` is there, and the server takes the two names for one; rename it");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
        }
        Ok(())
    }

    fn await_one(&mut self) -> io::Result<()> {
        match self.ahead.pop_front() {
            Some(first) => self.session.shared.finish(first),
            None => Ok(()),
        }
    }
}

async fn write(file: Arc<File>, at: u64, piece: Arc<[u8]>) -> smb::Result<()> {
    let mut written = file.write_block_zc(Arc::clone(&piece), at, None).await?;
    // A server may take less than it is given.
    while written < piece.len() {
        match file.write_block(&piece[written..], at + written as u64, None).await? {
            0 => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            more => written += more,
        }
    }
    Ok(())
}

async fn rename(file: &File, to: &str, replace: bool) -> smb::Result<()> {
    file.set_info(FileRenameInformation { replace_if_exists: replace.into(), root_directory: 0, file_name: to.into() })
        .await
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.settled {
            // Nobody is there to be told.
            let _ = self.discard();
        }
        self.session.shared.close_file(&self.file);
    }
}
