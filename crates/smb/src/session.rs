//! A connection to a server, logged in to one share.

use crate::About;
use crate::answer::Answer;
use crate::connection::{Connection, SILENCE, Ticket};
use crate::error::{CallError, SmbError};
use crate::listing::Listing;
use crate::login::{self, Login, Terms};
use crate::path::wire;
use crate::reader::Reader;
use crate::request::{Disposition, FileId, Protection, Request, access, options, security_mode};
use crate::writer::Writer;
use crate::{Kind, file_time};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// For how long a server may be silent while it lets somebody in.
const LOG_IN: Duration = Duration::from_secs(10);
/// How long a session waits for its end.
const LOG_OUT: Duration = Duration::from_secs(2);
/// Bytes of content in one message, at most; without leave for large messages (MS-SMB2 3.1.5.2), what one credit is for.
pub(crate) const PIECE: usize = 1 << 20;
const SMALL_PIECE: usize = 64 << 10;

/// A connection to a server, logged in to one share. Clones share it; the last one ends it.
#[derive(Clone)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) connection: Arc<Connection>,
    server: String,
    tree: u32,
    protection: Protection,
    /// Bytes that one message may read and write.
    pub(crate) read_most: usize,
    pub(crate) write_most: usize,
}

/// An open file or folder, closed when it is dropped. Nobody waits for that: what cannot be closed ends with its session.
pub(crate) struct Handle {
    pub(crate) session: Session,
    pub(crate) id: FileId,
    closed: bool,
}

impl Session {
    /// Logs in over `connection`, which leads to the server called `server`, and opens `share`. Messages are signed and encrypted as
    /// far as the server or `terms` demand it.
    ///
    /// # Errors
    /// The server is none, it refuses the login or the share, or what it negotiated cannot be verified.
    pub fn log_in(
        connection: TcpStream,
        server: &str,
        share: &str,
        login: &Login,
        terms: Terms,
    ) -> Result<Self, SmbError> {
        let set_up = |source| SmbError::System { call: "set a connection to an SMB server up", source };
        let connection = Connection::new(connection, LOG_IN).map_err(set_up)?;
        let welcome = login::log_in(&connection, server, login, terms)?;
        connection.allow_silence(SILENCE);
        let negotiation = welcome.negotiation;
        let negotiated = &negotiation.negotiated;
        let of_session = match () {
            () if welcome.guest => Protection::None,
            () if welcome.sealed => Protection::Sealed,
            () if terms.sign || negotiated.server.security_mode & security_mode::REQUIRED != 0 => Protection::Signed,
            () => Protection::None,
        };
        // The share is asked for under a signature, which binds what was negotiated (MS-SMB2 3.2.4.1.1).
        let least = if welcome.guest { Protection::None } else { Protection::Signed };
        let no_share = |error: CallError| {
            let (server, why) = (server.to_owned(), error.to_string());
            match error {
                CallError::Status(_) => {
                    SmbError::NoShare { server, share: share.to_owned(), user: login.user.clone(), why }
                }
                CallError::Malformed(_) | CallError::Lost(_) => SmbError::NoServer { server, why },
            }
        };
        let request = Request::tree_connect(&format!("\\\\{server}\\{share}"));
        let connected = connection
            .submit(Request { protection: of_session.max(least), ..request })
            .and_then(Ticket::wait)
            .map_err(no_share)?;
        /// The share demands encryption (MS-SMB2 2.2.10).
        const ENCRYPT: u32 = 0x8000;
        let sealed = connected.share_flags().map_err(no_share)? & ENCRYPT != 0;
        let protection = if sealed { Protection::Sealed } else { of_session };
        if !welcome.guest && !negotiation.is_bound() {
            let unverified = |why: String| SmbError::Unverified { server: server.to_owned(), why };
            let validated = negotiation.validate(&connection, connected.tree(), protection.max(Protection::Signed));
            if !validated.map_err(|error| unverified(error.to_string()))? {
                return Err(unverified("the server negotiated other values than this host received".to_owned()));
            }
        }
        const LARGE_MESSAGES: u32 = 4;
        let most = if negotiated.server.capabilities & LARGE_MESSAGES == 0 { SMALL_PIECE } else { PIECE };
        Ok(Self {
            shared: Arc::new(Shared {
                connection,
                server: server.to_owned(),
                tree: connected.tree(),
                protection,
                read_most: negotiated.read_most.clamp(1, most),
                write_most: negotiated.write_most.clamp(1, most),
            }),
        })
    }

    /// The server has ended it while nothing was under way, as some do after a time without use: another one takes its place.
    pub fn is_ended(&self) -> bool {
        self.shared.connection.is_ended()
    }

    /// Lists the folder at `path`, those names that fit `pattern` (`*` for all).
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn list(&self, path: &[u8], pattern: &str) -> io::Result<Listing> {
        let access = access::READ | access::READ_ATTRIBUTES;
        let (folder, about) = self.open_as(path, Disposition::Open, access, options::FOLDER)?;
        match about.kind {
            Kind::File => Err(io::ErrorKind::NotADirectory.into()),
            Kind::Folder | Kind::Reparse => Listing::start(folder, pattern),
        }
    }

    /// What is at `path`.
    ///
    /// # Errors
    /// Nothing is, or the server refuses.
    pub fn about(&self, path: &[u8]) -> io::Result<About> {
        self.open_as(path, Disposition::Open, access::READ_ATTRIBUTES, options::ANY).map(|(_, about)| about)
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn open(&self, path: &[u8]) -> io::Result<Reader> {
        let access = access::READ | access::READ_ATTRIBUTES;
        let (file, about) = self.open_as(path, Disposition::Open, access, options::FILE)?;
        Reader::new(file, about)
    }

    /// Makes a new file at `path`.
    ///
    /// # Errors
    /// It is there already, its folder is not, or the server refuses.
    pub fn create(&self, path: &[u8]) -> io::Result<Writer> {
        let access = access::READ | access::WRITE | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES | access::DELETE;
        let (file, _) = self.open_as(path, Disposition::Create, access, options::FILE)?;
        Ok(Writer::new(file))
    }

    /// Makes the folder at `path`, and those on the way to it, unless they are there.
    ///
    /// # Errors
    /// A file has the name of one, or the server refuses.
    pub fn make_folder(&self, path: &[u8]) -> io::Result<()> {
        let make = || self.open_as(path, Disposition::OpenOrCreate, access::READ_ATTRIBUTES, options::FOLDER);
        match (make(), path.iter().rposition(|byte| *byte == b'/')) {
            (Err(error), Some(cut)) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folder(&path[..cut])?;
                make().map(drop)
            }
            (made, _) => made.map(drop),
        }
    }

    /// Gives the folder at `path` its time of change.
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn set_folder_time(&self, path: &[u8], modified: i64) -> io::Result<()> {
        let (folder, _) = self.open_as(path, Disposition::Open, access::WRITE_ATTRIBUTES, options::FOLDER)?;
        self.call(Request::set_time(&folder.id, file_time(modified))).map(drop)
    }

    /// Removes the file at `path`.
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn remove(&self, path: &[u8]) -> io::Result<()> {
        let options = options::FILE | options::DELETE_ON_CLOSE;
        let (mut file, _) = self.open_as(path, Disposition::Open, access::DELETE, options)?;
        file.close()
    }

    fn open_as(&self, path: &[u8], disposition: Disposition, access: u32, options: u32) -> io::Result<(Handle, About)> {
        let answer = self.call(Request::create(&wire(path)?, access, disposition, options))?;
        let (id, about) = answer.created().map_err(|error| self.failed(error))?;
        Ok((Handle { session: self.clone(), id, closed: false }, about))
    }

    /// Sends a request.
    pub(crate) fn submit(&self, request: Request<'_>) -> Result<Ticket, CallError> {
        let Shared { tree, protection, connection, .. } = &*self.shared;
        connection.submit(Request { tree: *tree, protection: *protection, ..request })
    }

    /// Sends one and waits for its answer.
    pub(crate) fn call(&self, request: Request<'_>) -> io::Result<Answer> {
        self.submit(request).and_then(Ticket::wait).map_err(|error| self.failed(error))
    }

    /// A server that is lost is an error of kind `NotConnected`, whatever the call.
    pub(crate) fn failed(&self, error: CallError) -> io::Error {
        error.into_io(&self.shared.server)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.connection.close(Request { protection: self.protection, ..Request::log_off() }, LOG_OUT);
    }
}

impl Handle {
    /// Closes it, and waits for that.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.closed = true;
        self.session.call(Request::close(&self.id)).map(drop)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.session.submit(Request::close(&self.id));
        }
    }
}
