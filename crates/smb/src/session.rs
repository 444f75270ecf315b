//! A connection to a server, logged in to one share.

use crate::endless::{self, Endless};
use crate::error::{SmbError, status, status_of, to_io};
use crate::listing::Listing;
use crate::path::wire;
use crate::pieces::Buffers;
use crate::reader::Reader;
use crate::transport::{CREDITS, Health, SILENCE, Transport};
use crate::writer::Writer;
use crate::{About, Kind, file_time, unix_ns};
use smb::binrw_util::prelude::FileTime;
use smb::error::TimedOutTask;
use smb::{
    Connection, ConnectionConfig, CreateDisposition, CreateOptions, FileAccessMask, FileAttributes,
    FileBasicInformation, FileCreateArgs, FileNetworkOpenInformation, GetLen as _, Resource, ResourceHandle, Tree,
    UncPath,
};
use sspi::{AuthIdentity, Username};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Threads for all sessions together, at most.
const THREADS: usize = 4;
/// How often to log in where the server's answer could not be verified: the crate `smb` has its last request on the way before it has
/// the key for the answer, and a server on a fast path may be faster than that.
const LOGINS: u32 = 5;
/// How long logging in may take.
const LOG_IN: Duration = Duration::from_secs(10);
/// How long an answer may take of a server that is not silent meanwhile; see [`SILENCE`].
const ANSWER: Duration = Duration::from_secs(3600);
/// How often to look whether the connection of a call that waits is of any more use.
const LOOK: Duration = Duration::from_secs(1);
/// How long a session waits for its end.
const LOG_OUT: Duration = Duration::from_secs(2);
/// Bytes of content in one message, at most.
const PIECE: u32 = 1 << 20;

/// The threads on which sessions do their work.
#[derive(Debug, Clone)]
pub struct Client {
    runtime: Arc<Runtime>,
    /// One thread, for listings.
    lister: Arc<Runtime>,
}

/// A user of a server. Guests, whom a server lets in under any name, cannot have a session: their messages are not signed.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// `NAME`, `DOMAIN\NAME` or `NAME@DOMAIN`.
    pub user: String,
    /// The password.
    pub password: String,
}

/// The password stays out of what is printed.
impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "user `{}`", self.user)
    }
}

impl Login {
    fn identity(&self) -> Option<AuthIdentity> {
        Some(AuthIdentity { username: Username::parse(&self.user).ok()?, password: self.password.clone().into() })
    }
}

/// A connection to a server, logged in to one share. Clones share it; the last one ends it.
#[derive(Clone)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    client: Client,
    server: String,
    health: Arc<Health>,
    /// Until the end.
    open: Option<Open>,
    endless: Endless,
    pub(crate) buffers: Buffers,
    /// Bytes that one message may read and write.
    pub(crate) read_most: usize,
    pub(crate) write_most: usize,
}

struct Open {
    tree: Tree,
    session: smb::Session,
    connection: Connection,
}

impl Client {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no more threads to give.
    pub fn new() -> Result<Self, SmbError> {
        let start = |threads: usize, name: &str| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(threads).thread_name(name).enable_all().build();
            runtime.map(Arc::new).map_err(|source| SmbError::System { call: "starting threads for SMB", source })
        };
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
        Ok(Self { runtime: start(cores, "smb")?, lister: start(1, "smb list")? })
    }

    /// Logs in over a connection that leads to the server called `server`, and opens `share`.
    ///
    /// # Errors
    /// There is no connection, the server is none, or it refuses the login or the share.
    pub fn log_in<E: From<SmbError>>(
        &self,
        mut connect: impl FnMut() -> Result<TcpStream, E>,
        server: &str,
        share: &str,
        login: &Login,
    ) -> Result<Session, E> {
        for _ in 1..LOGINS {
            match self.log_in_once(connect()?, server, share, login) {
                Err(SmbError::Unverified { .. }) => {}
                done => return done.map_err(E::from),
            }
        }
        self.log_in_once(connect()?, server, share, login).map_err(E::from)
    }

    fn log_in_once(
        &self,
        connection: TcpStream,
        server: &str,
        share: &str,
        login: &Login,
    ) -> Result<Session, SmbError> {
        let health = Arc::new(Health::new(SILENCE));
        let work = self.set_up(connection, server, share, login, &health);
        let done = self.runtime.block_on(async { tokio::time::timeout(LOG_IN, work).await });
        done.unwrap_or_else(|_| {
            Err(SmbError::NoServer { server: server.to_owned(), why: format!("nothing within {LOG_IN:?}") })
        })
    }

    async fn set_up(
        &self,
        connection: TcpStream,
        server: &str,
        share: &str,
        login: &Login,
        health: &Arc<Health>,
    ) -> Result<Session, SmbError> {
        let system = |call| move |source| SmbError::System { call, source };
        connection.set_nonblocking(true).map_err(system("set a connection to an SMB server up"))?;
        let connection = tokio::net::TcpStream::from_std(connection)
            .and_then(|connection| Transport::new(connection, health))
            .map_err(system("set a connection to an SMB server up"))?;
        let no_server = |error: smb::Error| SmbError::NoServer {
            server: server.to_owned(),
            why: health.broken.get().cloned().unwrap_or_else(|| error.to_string()),
        };
        let config = ConnectionConfig {
            timeout: Some(ANSWER),
            smb2_only_negotiate: true,
            disable_notifications: true,
            credits_backlog: Some(CREDITS),
            ..ConnectionConfig::default()
        };
        let guid = smb::Guid::generate();
        let connection = Connection::from_transport(Box::new(connection), server, guid, config).await;
        let connection = connection.map_err(no_server)?;
        let (read_most, write_most) = connection.conn_info().map_or((PIECE, PIECE), |info| {
            // Without credits for more, a message has 64 KiB (MS-SMB2 3.1.5.2).
            let most = if info.negotiation.caps.large_mtu() { PIECE } else { 64 << 10 };
            (info.negotiation.max_read_size.min(most), info.negotiation.max_write_size.min(most))
        });
        let refused = |why: String, remedy| SmbError::Refused {
            server: server.to_owned(),
            user: login.user.clone(),
            why,
            remedy,
        };
        let identity = login
            .identity()
            .ok_or_else(|| refused(String::from("it is no user name"), "write NAME, DOMAIN\\NAME or NAME@DOMAIN"))?;
        let session = connection.authenticate(identity).await.map_err(|error| {
            let why = to_io(&error).to_string();
            match status_of(&error) {
                _ if matches!(error, smb::Error::TranformFailed(_)) => {
                    SmbError::Unverified { server: server.to_owned(), why }
                }
                None if health.broken.get().is_some() => no_server(error),
                None => refused(
                    why,
                    "does the server know this user, or take it for a guest? Messages of guests are not signed, so there is no session \
                     for them; name a user of the server's (on Samba, `smbpasswd -a NAME` adds one)",
                ),
                Some(_) => refused(why, "check --user, and the password in LINERATE_SMB_PASSWORD or --password-file"),
            }
        })?;
        let no_share = |why: String| SmbError::NoShare {
            server: server.to_owned(),
            share: share.to_owned(),
            user: login.user.clone(),
            why,
        };
        let name = UncPath::new(server).and_then(|path| path.with_share(share)).map_err(|e| no_share(e.to_string()))?;
        let tree = session.tree_connect(&name).await.map_err(|error| no_share(to_io(&error).to_string()))?;
        Ok(Session {
            shared: Arc::new(Shared {
                client: self.clone(),
                server: server.to_owned(),
                health: Arc::clone(health),
                open: Some(Open { tree, session, connection }),
                endless: Endless::default(),
                buffers: Buffers::default(),
                read_most: read_most as usize,
                write_most: write_most as usize,
            }),
        })
    }
}

impl Session {
    /// Whether it should do no more than finish what is under way: another one is to take its place. A slow server wears it out.
    pub fn is_spent(&self) -> bool {
        self.shared.health.is_spent()
    }

    /// Lists the folder at `path`, those names that fit `pattern` (`*` for all).
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn list(&self, path: &[u8], pattern: &str) -> io::Result<Listing> {
        let access = FileAccessMask::new().with_file_read_data(true).with_file_read_attributes(true);
        let folder = self.open_as(path, CreateDisposition::Open, access, folder_options())?;
        match folder {
            Resource::Directory(folder) => Ok(Listing::start(self.clone(), folder, pattern)),
            other => {
                self.shared.close(other);
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
    }

    /// What is at `path`.
    ///
    /// # Errors
    /// Nothing is, or the server refuses.
    pub fn about(&self, path: &[u8]) -> io::Result<About> {
        let access = FileAccessMask::new().with_file_read_attributes(true);
        let open = self.open_as(path, CreateDisposition::Open, access, CreateOptions::new())?;
        let about = self.shared.wait(about(handle(&open)));
        self.shared.close(open);
        about
    }

    /// Opens the file at `path` for reading.
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn open(&self, path: &[u8]) -> io::Result<Reader> {
        let access = FileAccessMask::new().with_file_read_data(true).with_file_read_attributes(true);
        match self.open_as(path, CreateDisposition::Open, access, file_options())? {
            Resource::File(file) => match self.shared.wait(file.get_len()) {
                Ok(size) => Ok(Reader::new(self.clone(), path, file, size)),
                Err(error) => {
                    self.shared.close(Resource::File(file));
                    Err(error)
                }
            },
            other => {
                self.shared.close(other);
                Err(io::ErrorKind::IsADirectory.into())
            }
        }
    }

    /// Makes a new file at `path`.
    ///
    /// # Errors
    /// It is there already, its folder is not, or the server refuses.
    pub fn create(&self, path: &[u8]) -> io::Result<Writer> {
        Ok(Writer::new(self.clone(), path, self.open_to_write(path, CreateDisposition::Create)?))
    }

    /// Opens a file that is being written, to go on with it.
    pub(crate) fn reopen(&self, path: &[u8]) -> io::Result<Arc<smb::File>> {
        self.open_to_write(path, CreateDisposition::Open)
    }

    fn open_to_write(&self, path: &[u8], disposition: CreateDisposition) -> io::Result<Arc<smb::File>> {
        // First, so that nothing was made where that fails.
        let endless = match self.shared.endless.take() {
            Some(endless) => endless,
            None => self.make_endless()?,
        };
        let failed = match self.open_as(path, disposition, writing(), file_options()) {
            Ok(Resource::File(file)) => return Ok(Arc::new(endless::with_handle_of(endless, file))),
            Ok(other) => {
                self.shared.close(other);
                io::ErrorKind::IsADirectory.into()
            }
            Err(error) => error,
        };
        self.shared.endless.put(endless);
        Err(failed)
    }

    /// A file to take the handles of others. Its first one is the share's own, for it has to have one.
    fn make_endless(&self) -> io::Result<smb::File> {
        let access = FileAccessMask::new().with_file_read_attributes(true);
        match self.open_as(b"", CreateDisposition::Open, access, folder_options())? {
            Resource::Directory(folder) => {
                let closed = self.shared.wait(folder.handle.close());
                closed.map(|()| endless::of(folder.handle))
            }
            other => {
                self.shared.close(other);
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
    }

    /// Makes the folder at `path`, and those on the way to it, unless they are there.
    ///
    /// # Errors
    /// A file has the name of one, or the server refuses.
    pub fn make_folder(&self, path: &[u8]) -> io::Result<()> {
        let access = FileAccessMask::new().with_file_read_attributes(true);
        let make = || self.open_as(path, CreateDisposition::OpenIf, access, folder_options());
        let made = match (make(), path.iter().rposition(|byte| *byte == b'/')) {
            (Err(error), Some(cut)) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folder(&path[..cut])?;
                make()?
            }
            (made, _) => made?,
        };
        self.shared.close(made);
        Ok(())
    }

    /// Gives the folder at `path` its time of change.
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn set_folder_time(&self, path: &[u8], modified: i64) -> io::Result<()> {
        let access = FileAccessMask::new().with_file_write_attributes(true);
        let open = self.open_as(path, CreateDisposition::Open, access, folder_options())?;
        let set = self.shared.wait(set_time(handle(&open), modified));
        self.shared.close(open);
        set
    }

    /// Removes the file at `path`.
    ///
    /// # Errors
    /// It is not there, or the server refuses.
    pub fn remove(&self, path: &[u8]) -> io::Result<()> {
        let access = FileAccessMask::new().with_delete(true);
        let options = file_options().with_delete_on_close(true);
        let open = self.open_as(path, CreateDisposition::Open, access, options)?;
        let closed = self.shared.wait(handle(&open).close());
        if closed.is_err() {
            self.shared.close(open);
        }
        closed
    }

    fn open_as(
        &self,
        path: &[u8],
        disposition: CreateDisposition,
        desired_access: FileAccessMask,
        options: CreateOptions,
    ) -> io::Result<Resource> {
        let name = wire(path)?;
        let attributes = FileAttributes::new();
        let args = FileCreateArgs { disposition, attributes, options, desired_access };
        let Some(open) = &self.shared.open else { return Err(self.shared.lost("it was closed")) };
        self.shared.wait(open.tree.create(&name, &args))
    }
}

/// To write a file, read it back, set its time, and rename or remove it.
fn writing() -> FileAccessMask {
    FileAccessMask::new()
        .with_file_read_data(true)
        .with_file_write_data(true)
        .with_file_read_attributes(true)
        .with_file_write_attributes(true)
        .with_delete(true)
}

fn folder_options() -> CreateOptions {
    CreateOptions::new().with_directory_file(true)
}

fn file_options() -> CreateOptions {
    CreateOptions::new().with_non_directory_file(true)
}

fn handle(open: &Resource) -> &ResourceHandle {
    match open {
        Resource::File(file) => file.handle(),
        Resource::Directory(folder) => &folder.handle,
        Resource::Pipe(pipe) => pipe.handle(),
    }
}

/// What is at an open handle.
pub(crate) async fn about(open: &ResourceHandle) -> smb::Result<About> {
    let found: FileNetworkOpenInformation = open.query_info().await?;
    Ok(About { kind: kind(found.file_attributes), size: found.end_of_file, modified: unix_ns(*found.last_write_time) })
}

pub(crate) fn kind(attributes: FileAttributes) -> Kind {
    match (attributes.reparse_point(), attributes.directory()) {
        (true, _) => Kind::Reparse,
        (_, true) => Kind::Folder,
        _ => Kind::File,
    }
}

pub(crate) async fn set_time(open: &ResourceHandle, modified: i64) -> smb::Result<()> {
    // Zeros leave the rest as it is (MS-FSCC 2.4.7).
    open.set_info(FileBasicInformation {
        creation_time: FileTime::ZERO,
        last_access_time: FileTime::ZERO,
        last_write_time: file_time(modified).into(),
        change_time: FileTime::ZERO,
        file_attributes: FileAttributes::new(),
    })
    .await
}

impl Shared {
    /// Waits for a call's end.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = smb::Result<T>>) -> io::Result<T> {
        let lost = |after| Err(smb::Error::OperationTimeout(TimedOutTask::ReceiveNextMessage, after));
        let done = self.client.runtime.block_on(async {
            let mut call = std::pin::pin!(call);
            loop {
                match tokio::time::timeout(LOOK, &mut call).await {
                    Ok(done) => break done,
                    // The crate answers the calls that wait when the connection ends, but not one that comes in that moment.
                    Err(_) if self.health.broken.get().is_some() => break lost(LOOK),
                    // A call that waits for credits has no end of its own, and the server owes nothing then.
                    Err(_) if self.health.quiet() >= SILENCE * 2 => break lost(SILENCE * 2),
                    Err(_) => {}
                }
            }
        });
        done.map_err(|error| self.failed(&error))
    }

    /// Has something done, while the caller goes on.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.client.runtime.spawn(work)
    }

    /// Has a folder listed, likewise.
    pub(crate) fn spawn_listing(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.client.lister.spawn(work);
    }

    /// A server that is lost is an error of kind `NotConnected`, whatever the call.
    pub(crate) fn failed(&self, error: &smb::Error) -> io::Error {
        match (self.health.broken.get(), to_io(error)) {
            (Some(why), _) => self.lost(why),
            (None, error) if error.kind() == io::ErrorKind::NotConnected => self.lost(&error.to_string()),
            (None, error) => error,
        }
    }

    fn lost(&self, why: &str) -> io::Error {
        io::Error::new(io::ErrorKind::NotConnected, format!("the connection to {} is lost: {why}", self.server))
    }

    /// Waits for what was spawned.
    pub(crate) fn finish<T>(&self, work: tokio::task::JoinHandle<smb::Result<T>>) -> io::Result<T> {
        self.wait(async { work.await? })
    }

    /// Closes what is no longer needed. Nobody waits for it: a handle that cannot be closed ends with its session. What was not closed
    /// must not be dropped but on the client's own threads, where the crate `smb` closes it.
    pub(crate) fn close(&self, open: Resource) {
        self.spawn(async move {
            let _ = handle(&open).close().await;
        });
    }

    /// Closes a file, likewise.
    pub(crate) fn close_file(&self, file: &Arc<smb::File>) {
        let file = Arc::clone(file);
        self.spawn(async move {
            let _ = file.handle().close().await;
        });
    }

    /// Closes a file that was written, likewise.
    pub(crate) fn close_written(&self, file: &Arc<smb::File>) {
        let (file, endless) = (Arc::clone(file), self.endless.clone());
        self.spawn(async move {
            // Whoever wrote it may not have let go of it yet.
            if file.handle().close().await.is_ok()
                && let Some(file) = Arc::into_inner(file)
            {
                endless.put(file);
            }
        });
    }
}

/// What the crate `smb` has, it drops on its own threads only.
impl Drop for Shared {
    fn drop(&mut self) {
        let _threads = self.client.runtime.enter();
        self.endless.clear();
        let Some(Open { tree, session, connection }) = self.open.take() else { return };
        if self.health.broken.get().is_some() {
            return;
        }
        // A server that does not answer any more ends what it has of a connection that is closed.
        let end = async {
            let _ = tree.disconnect().await;
            let _ = session.logoff().await;
            let _ = connection.close().await;
        };
        let _ = self.client.runtime.block_on(async { tokio::time::timeout(LOG_OUT, end).await });
    }
}

/// Whether a file has the name already.
pub(crate) fn collides(error: &smb::Error) -> bool {
    status_of(error) == Some(status::COLLISION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_call_over_a_connection_that_is_lost_ends() {
        let health = Arc::new(Health::new(SILENCE));
        let shared = Shared {
            client: Client::new().expect("threads"),
            server: String::from("192.0.2.1"),
            health: Arc::clone(&health),
            open: None,
            endless: Endless::default(),
            buffers: Buffers::default(),
            read_most: 0,
            write_most: 0,
        };
        health.broken.set(String::from("the server closed the connection")).expect("it was not");
        let began = Instant::now();
        let error = shared.wait(std::future::pending::<smb::Result<()>>()).expect_err("no answer comes");
        assert_eq!(error.to_string(), "the connection to 192.0.2.1 is lost: the server closed the connection");
        assert!(began.elapsed() < SILENCE, "{:?}", began.elapsed());
    }
}
