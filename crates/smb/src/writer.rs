//! A file that is being written: several pieces on their way, under a name that it changes when it is whole.

use crate::path::wire;
use crate::pieces::Pieces;
use crate::session::{Session, collides, set_time};
use futures_util::future::join;
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
    /// The last piece, and its place: not on its way until it is known what comes next.
    last: Option<(u64, Arc<[u8]>)>,
    /// Where what was written ends.
    end: u64,
    /// Its time of change, until it has it.
    modified: Option<i64>,
    /// What is read back.
    pieces: Option<Pieces>,
    /// It has its name, or was removed.
    settled: bool,
}

impl Writer {
    /// `file` is one without an end: see [`crate::endless`].
    pub(crate) fn new(session: Session, path: &[u8], file: Arc<File>) -> Self {
        let path = path.to_vec();
        Self {
            session,
            path,
            file,
            ahead: VecDeque::new(),
            last: None,
            end: 0,
            modified: None,
            pieces: None,
            settled: false,
        }
    }

    /// Writes at `offset`. What fails may show only later, in [`Self::complete`] at the latest.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut at = offset;
        for piece in data.chunks(self.session.shared.write_most) {
            self.send_last()?;
            self.last = Some((at, piece.into()));
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
        self.send_last()?;
        while !self.ahead.is_empty() {
            self.await_one()?;
        }
        self.pieces = None;
        let file = session.reopen(&self.path)?;
        self.session.shared.close_written(&self.file);
        self.file = file;
        self.session = session;
        Ok(())
    }

    /// All was written: waits for it, and gives the file its length. Its time of change it has as soon as it is durable or has its name.
    ///
    /// # Errors
    /// The server refuses, has no room, or is lost.
    pub fn complete(&mut self, length: u64, modified: i64) -> io::Result<()> {
        let (ahead, file, end, last) = (&mut self.ahead, &self.file, &mut self.end, self.last.take());
        self.session.shared.wait(async {
            // Most files are one piece: no other thread need be woken for it.
            if let Some((at, piece)) = last {
                write(Arc::clone(file), at, piece).await?;
            }
            while let Some(first) = ahead.pop_front() {
                first.await??;
            }
            if *end != length {
                file.set_info(FileEndOfFileInformation { end_of_file: length }).await?;
                *end = length;
            }
            Ok(())
        })?;
        self.modified = Some(modified);
        Ok(())
    }

    /// Makes it durable, as far as the server does what it is asked for.
    ///
    /// # Errors
    /// The server refuses, has no room, or is lost.
    pub fn sync(&mut self) -> io::Result<()> {
        let modified = self.modified.take();
        self.session.shared.wait(async {
            time(&self.file, modified).await?;
            Ok(self.file.flush().await?)
        })
    }

    /// Some bytes of what was written, read back from `offset` on; none at the end. It is fast in the order of the file.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn read(&mut self, offset: u64) -> io::Result<&[u8]> {
        let pieces = self.pieces.get_or_insert_with(|| Pieces::new(&self.file, self.end));
        pieces.read(&self.session.shared, offset)
    }

    /// Gives it the name at `path`, in place of the file that has it.
    ///
    /// # Errors
    /// Another name stands there that the server takes for the same; the server refuses, or is lost.
    pub fn name(&mut self, path: &[u8]) -> io::Result<()> {
        self.pieces = None;
        let to = wire(path)?;
        let (shared, modified) = (&self.session.shared, self.modified.take());
        // Neither waits for the other: on a long or busy path that is a round trip for each file.
        let calls = join(time(&self.file, modified), rename(&self.file, &to, false));
        let (timed, named) = shared.wait(async { Ok(calls.await) })?;
        match named {
            Err(error) if collides(&error) => {
                self.check_twin(path)?;
                shared.wait(rename(&self.file, &to, true))?;
            }
            named => named.map_err(|error| shared.failed(&error))?,
        }
        self.settled = true;
        timed.map_err(|error| shared.failed(&error))
    }

    /// Removes it.
    ///
    /// # Errors
    /// The server refuses, or is lost.
    pub fn discard(&mut self) -> io::Result<()> {
        self.pieces = None;
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

    /// Sends the last piece on its way.
    fn send_last(&mut self) -> io::Result<()> {
        let Some((at, piece)) = self.last.take() else { return Ok(()) };
        while self.ahead.len() >= AHEAD {
            self.await_one()?;
        }
        self.ahead.push_back(self.session.shared.spawn(write(Arc::clone(&self.file), at, piece)));
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

async fn time(file: &File, modified: Option<i64>) -> smb::Result<()> {
    match modified {
        Some(modified) => set_time(file.handle(), modified).await,
        None => Ok(()),
    }
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
        self.session.shared.close_written(&self.file);
    }
}
