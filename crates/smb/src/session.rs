//! A connection to a server, logged in to one share.

use crate::connection::{Connection, SILENCE, Ticket};
use crate::error::{CallError, SmbError};
use crate::file_info::{FileInfo, file_time};
use crate::listing::Listing;
use crate::login::{self, Login};
use crate::negotiation::Terms;
use crate::reader::Reader;
use crate::request::{Disposition, Protection, Request, access, options, security_mode};
use crate::tree::Tree;
use crate::wire::{CREDIT, MAX_PIECE};
use crate::writer::Writer;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// For how long a server may be silent while it lets somebody in.
const LOG_IN: Duration = Duration::from_secs(10);
/// Largest content of one message if the server does not support large messages (MS-SMB2 3.1.5.2).
const SMALL_PIECE: usize = CREDIT;

/// A connection to a server, logged in to one share. Clones share it; the last one ends it.
#[derive(Clone)]
pub struct Session {
    tree: Arc<Tree>,
}

impl Session {
    /// Logs in over `connection`, which leads to the server called `server`, and opens `share`. Messages are signed and
    /// encrypted as far as the server or `terms` demand it.
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
        let connection = Connection::new(connection, LOG_IN)
            .map_err(|source| SmbError::System { call: "set a connection to an SMB server up", source })?;
        let welcome = login::log_in(&connection, server, login, terms)?;
        connection.allow_silence(SILENCE);
        let negotiation = welcome.negotiation;
        let negotiated = &negotiation.negotiated;
        let of_session = if welcome.guest {
            Protection::None
        } else if welcome.sealed {
            Protection::Sealed
        } else if terms.sign || negotiated.server.security_mode & security_mode::REQUIRED != 0 {
            Protection::Signed
        } else {
            Protection::None
        };
        // The share is asked for under a signature, which binds what was negotiated (MS-SMB2 3.2.4.1.1).
        let least = if welcome.guest { Protection::None } else { Protection::Signed };
        let no_share = |error: CallError| {
            let server = server.to_owned();
            let why = error.to_string();
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
        let maximum = if negotiated.server.capabilities & LARGE_MESSAGES == 0 { SMALL_PIECE } else { MAX_PIECE };
        Ok(Self {
            tree: Arc::new(Tree {
                connection,
                server: server.to_owned(),
                id: connected.tree(),
                protection,
                max_read: negotiated.max_read.clamp(1, maximum),
                max_write: negotiated.max_write.clamp(1, maximum),
            }),
        })
    }

    /// The server has ended it while nothing was under way, as some do after a time without use: another one takes its
    /// place.
    pub fn is_ended(&self) -> bool {
        self.tree.connection.is_ended()
    }

    /// Lists the folder at `path`, those names that fit `pattern` (`*` for all).
    ///
    /// # Errors
    /// Fails if there is no such folder, or the server refuses.
    pub fn list(&self, path: &[u8], pattern: &str) -> io::Result<Listing> {
        Listing::open(&self.tree, path, pattern)
    }

    /// Returns the attributes of the file or folder at `path`.
    ///
    /// # Errors
    /// Nothing is, or the server refuses.
    pub fn about(&self, path: &[u8]) -> io::Result<FileInfo> {
        self.tree.open(path, Disposition::Open, access::READ_ATTRIBUTES, options::ANY).map(|(_, info)| info)
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// Fails if there is no such file, or the server refuses.
    pub fn open(&self, path: &[u8]) -> io::Result<Reader> {
        let access = access::READ | access::READ_ATTRIBUTES;
        let (file, about) = self.tree.open(path, Disposition::Open, access, options::FILE)?;
        Reader::new(file, about)
    }

    /// Makes a new file at `path`.
    ///
    /// # Errors
    /// Fails if the file exists, its folder does not, or the server refuses.
    pub fn create(&self, path: &[u8]) -> io::Result<Writer> {
        let access = access::READ | access::WRITE | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES | access::DELETE;
        let (file, _) = self.tree.open(path, Disposition::Create, access, options::FILE)?;
        Ok(Writer::new(file))
    }

    /// Makes the folder at `path`, and those on the way to it, unless they are there.
    ///
    /// # Errors
    /// A file has the name of one, or the server refuses.
    pub fn make_folder(&self, path: &[u8]) -> io::Result<()> {
        let make = || self.tree.open(path, Disposition::OpenOrCreate, access::READ_ATTRIBUTES, options::FOLDER);
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
    /// Fails if there is no such folder, or the server refuses.
    pub fn set_folder_time(&self, path: &[u8], modified: i64) -> io::Result<()> {
        let (folder, _) = self.tree.open(path, Disposition::Open, access::WRITE_ATTRIBUTES, options::FOLDER)?;
        self.tree.call(Request::set_time(&folder.id, file_time(modified))).map(drop)
    }

    /// Removes the file at `path`.
    ///
    /// # Errors
    /// Fails if there is no such file, or the server refuses.
    pub fn remove(&self, path: &[u8]) -> io::Result<()> {
        let options = options::FILE | options::DELETE_ON_CLOSE;
        let (mut file, _) = self.tree.open(path, Disposition::Open, access::DELETE, options)?;
        file.close()
    }
}
