//! A folder of a share on an SMB server.
//!
//! Permissions and symbolic links are not to be had there: what is read gets the usual permissions, and a link is not
//! written.

use super::{About, Draft, Found, Listing, OpenFile, Storage, What};
use crate::CopyError;
use crate::connection::{CONNECT, set_up};
use crate::tree_path::split;
use linerate_model::{Password, SmbServer, SmbVersion};
use linerate_smb::{FileInfo, Kind, Login, Reader, Session, TIME_STEP, Terms, Version, Writer};
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Connections that threads share, at most. At the server each is a process or thread of its own.
const SESSIONS: usize = 8;
/// Permissions of what is read.
const FOLDER: u32 = 0o755;
const FILE: u32 = 0o644;

/// Callback that receives each new connection, for closing it later.
pub(super) type Keep = Box<dyn Fn(&TcpStream) -> io::Result<()> + Send + Sync>;

/// The folder, as one thread sees it.
pub(super) struct SmbFolder {
    share: Arc<Share>,
    /// Below the share.
    folder: Vec<u8>,
    /// Index of its session.
    seat: usize,
}

/// A share, and the sessions with it.
struct Share {
    server: SmbServer,
    login: Login,
    keep: Keep,
    sessions: [Mutex<Option<Session>>; SESSIONS],
    /// The server refused another session while it held one.
    refuses_more: AtomicBool,
    next: AtomicUsize,
    /// Session for removing files after the others are closed; `None` if no connection can be made any more.
    tidy: OnceLock<Option<Session>>,
}

impl SmbFolder {
    /// Logs in. With `make`, the folder is made if it is missing; the one that it is in must be there.
    pub(super) fn connect(
        server: &SmbServer,
        password: Option<&Password>,
        make: bool,
        keep: Keep,
    ) -> Result<Self, CopyError> {
        let password = password.map(|Password(text)| text.clone()).unwrap_or_default();
        let login = Login { user: server.user.clone(), password };
        let share = Share {
            server: server.clone(),
            login,
            keep,
            sessions: Default::default(),
            refuses_more: AtomicBool::new(false),
            next: AtomicUsize::new(0),
            tidy: OnceLock::new(),
        };
        let first = share.log_in()?;
        let failed = |call| move |source| CopyError::System { call, object: server.to_string(), source };
        let folder = server.folder.clone().into_bytes();
        if !folder.is_empty() {
            match first.about(&folder) {
                Err(error) if make && error.kind() == io::ErrorKind::NotFound => {
                    let above = split(&folder).0;
                    if !above.is_empty() {
                        first.about(above).map_err(failed("open the folder above"))?;
                    }
                    first.make_folder(&folder).map_err(failed("mkdir"))?;
                }
                Ok(about) if about.kind != Kind::Folder => {
                    return Err(failed("open")(io::ErrorKind::NotADirectory.into()));
                }
                found => drop(found.map_err(failed("open"))?),
            }
        }
        *share.place(0) = Some(first);
        Ok(Self { share: Arc::new(share), folder, seat: 0 })
    }

    fn session(&self) -> io::Result<Session> {
        self.share.session(self.seat)
    }

    fn on(share: &Arc<Share>, folder: Vec<u8>) -> Self {
        Self { share: Arc::clone(share), folder, seat: share.next.fetch_add(1, Ordering::Relaxed) % SESSIONS }
    }

    /// Below the share.
    fn full(&self, path: &[u8]) -> Vec<u8> {
        let slash = if self.folder.is_empty() || path.is_empty() { &b""[..] } else { b"/" };
        [&self.folder, slash, path].concat()
    }
}

impl Share {
    fn log_in(&self) -> Result<Session, CopyError> {
        let Self { server, login, keep, .. } = self;
        let failed = |error: io::Error| CopyError::NoConnection(format!("connecting to {}: {error}", server.address));
        let connection = TcpStream::connect_timeout(&server.address, CONNECT).map_err(failed)?;
        set_up(&connection).and_then(|()| keep(&connection)).map_err(failed)?;
        let terms = Terms { minimum: version(server.minimum), sign: server.sign };
        Ok(Session::log_in(connection, &server.name, &server.share, login, terms)?)
    }

    /// The session of a seat: a new one where there is none, or where the server ended it while it was not used. A
    /// server may let one in and no more: then seats share the sessions that there are. It is lost if there are none.
    fn session(&self, seat: usize) -> io::Result<Session> {
        let known = |place: &Option<Session>| place.as_ref().filter(|session| !session.is_ended()).cloned();
        let refused = {
            let mut place = self.place(seat);
            if let Some(session) = known(&place) {
                return Ok(session);
            }
            // To ask again and again might lock the user out.
            match self.refuses_more.load(Ordering::Relaxed) {
                true => None,
                false => match self.log_in() {
                    Ok(session) => return Ok(place.insert(session).clone()),
                    Err(error) => Some(error),
                },
            }
        };
        if let Some(session) = (0..SESSIONS).find_map(|other| known(&self.place(other))) {
            self.refuses_more.store(true, Ordering::Relaxed);
            return Ok(session);
        }
        let lost = |error| {
            let why = format!("the connection to {} is lost: {error}", self.server.address.ip());
            io::Error::new(io::ErrorKind::NotConnected, why)
        };
        match refused {
            Some(error) => Err(lost(error)),
            // Those that were let in have ended: there is room for another one. All who find that meet at the first
            // place, so that one logs in and the others share its session.
            None => {
                let mut place = self.place(0);
                match known(&place) {
                    Some(session) => Ok(session),
                    None => Ok(place.insert(self.log_in().map_err(lost)?).clone()),
                }
            }
        }
    }

    fn place(&self, seat: usize) -> MutexGuard<'_, Option<Session>> {
        self.sessions[seat].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn about(known: FileInfo) -> About {
    let FileInfo { kind, size, modified } = known;
    let (what, mode) = match kind {
        Kind::File => (What::File { size }, FILE),
        Kind::Folder => (What::Folder, FOLDER),
        Kind::Reparse => (What::Link, FILE),
    };
    About { mode, modified, changed: modified, what }
}

impl Storage for SmbFolder {
    fn another(&self) -> Box<dyn Storage> {
        Box::new(Self::on(&self.share, self.folder.clone()))
    }

    fn below(&self, name: &str) -> io::Result<Box<dyn Storage>> {
        let folder = self.full(name.as_bytes());
        self.session()?.make_folder(&folder)?;
        Ok(Box::new(Self::on(&self.share, folder)))
    }

    fn list(&mut self, path: &[u8]) -> io::Result<Listing> {
        let names = self.session()?.list(&self.full(path), "*")?;
        Ok(Box::new(names.map(|found| found.map(|(name, known)| Found { name, about: Ok(about(known)) }))))
    }

    fn about(&mut self, path: &[u8]) -> io::Result<About> {
        self.session()?.about(&self.full(path)).map(about)
    }

    fn read_link(&mut self, _path: &[u8]) -> io::Result<Vec<u8>> {
        let why = "a link of a share: where it leads is not read; --links skip leaves links out";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    fn open(&mut self, path: &[u8]) -> io::Result<(Box<dyn OpenFile>, About)> {
        let reader = self.session()?.open(&self.full(path))?;
        let known = reader.opened();
        Ok((Box::new(reader), about(known)))
    }

    fn make_folder(&mut self, path: &[u8]) -> io::Result<()> {
        self.session()?.make_folder(&self.full(path))
    }

    fn create(&mut self, path: &[u8], temporary: &str, _mode: u32) -> io::Result<Box<dyn Draft>> {
        let name = self.full(path);
        let folder = split(&name).0;
        let slash = if folder.is_empty() { &b""[..] } else { b"/" };
        let temporary = [folder, slash, temporary.as_bytes()].concat();
        let session = self.session()?;
        // What cannot have its name need not be written.
        linerate_smb::check(&name)?;
        let writer = match session.create(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                session.make_folder(folder)?;
                session.create(&temporary)?
            }
            made => made?,
        };
        Ok(Box::new(SmbDraft { share: Arc::clone(&self.share), writer, temporary, name, named: false }))
    }

    fn make_link(&mut self, _path: &[u8], _temporary: &str, _target: &[u8], _modified: i64) -> io::Result<()> {
        Err(no_links())
    }

    fn settle_folder(&mut self, path: &[u8], _mode: u32, modified: i64) -> io::Result<()> {
        self.session()?.set_folder_time(&self.full(path), modified)
    }

    fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        self.session()?.remove(&self.full(path))
    }

    fn syncs_at_once(&self) -> bool {
        false
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn time_step(&self) -> i64 {
        TIME_STEP
    }
}

fn no_links() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "SMB cannot hold a symbolic link; --links skip leaves links out")
}

impl OpenFile for Reader {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        Self::read(self, offset, into)
    }

    fn about(&mut self) -> io::Result<About> {
        Self::about(self).map(about)
    }
}

struct SmbDraft {
    share: Arc<Share>,
    writer: Writer,
    /// Its paths below the share.
    temporary: Vec<u8>,
    name: Vec<u8>,
    named: bool,
}

impl Draft for SmbDraft {
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.writer.write(offset, data)
    }

    fn complete(&mut self, length: u64, _mode: u32, modified: i64) -> io::Result<()> {
        self.writer.complete(length, modified)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.writer.sync()
    }

    fn read<'a>(&'a mut self, offset: u64, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let some = self.writer.read(offset)?;
        Ok(&some[..some.len().min(room.len())])
    }

    fn name(&mut self) -> io::Result<()> {
        self.writer.name(&self.name)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for SmbDraft {
    fn drop(&mut self) {
        // A copy that is stopped has closed its connections; one more removes what is left. Where that fails too, the
        // next `--resume` knows the file by its temporary name.
        if !self.named
            && self.writer.discard().is_err()
            && let Some(session) = self.share.tidy.get_or_init(|| self.share.log_in().ok())
        {
            let _ = session.remove(&self.temporary);
        }
    }
}

fn version(version: SmbVersion) -> Version {
    match version {
        SmbVersion::V2_0_2 => Version::V2_0_2,
        SmbVersion::V2_1 => Version::V2_1,
        SmbVersion::V3_0 => Version::V3_0,
        SmbVersion::V3_0_2 => Version::V3_0_2,
        SmbVersion::V3_1_1 => Version::V3_1_1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_testsuite::wait_until;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, Shutdown, TcpListener};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    /// Answers a client as a server of version 3.1.1 does that takes guests: all commands well, but for the login if it
    /// `refuses`.
    fn serve(mut client: TcpStream, refuses: bool) {
        const LOGON_FAILURE: u32 = 0xC000_006D;
        let mut head = [0; 4];
        while client.read_exact(&mut head).is_ok() {
            let mut request = vec![0; u32::from_be_bytes(head) as usize];
            client.read_exact(&mut request).expect("whole");
            // MS-SMB2 2.2.1.2: the command is at 12, the status at 8, the flags at 16; bodies are those of 2.2.4, 2.2.6
            // and 2.2.10.
            let command = request[12];
            let mut body = [0; 64];
            match command {
                0 => body[4..6].copy_from_slice(&0x311_u16.to_le_bytes()),
                1 => body[2] = 1,
                _ => {}
            }
            let mut answer = [&request[..64], &body[..]].concat();
            let status = if command == 1 && refuses { LOGON_FAILURE } else { 0 };
            answer[8..12].copy_from_slice(&status.to_le_bytes());
            answer[16] = 1;
            let framed = [&(answer.len() as u32).to_be_bytes()[..], &answer].concat();
            if client.write_all(&framed).is_err() {
                return;
            }
        }
    }

    /// A server that lets one session in, as one with a limit of connections does, once ended every copy of more than
    /// one lane.
    #[test]
    fn a_refused_second_login_ends_no_copy_and_is_not_tried_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let logins = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&logins);
        thread::spawn(move || {
            for client in listener.incoming() {
                let before = counted.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || serve(client.expect("accepted"), before > 0));
            }
        });
        let [name, share, user] = ["filer", "data", "guest"].map(str::to_owned);
        let minimum = SmbVersion::default();
        let server = SmbServer { address, name, share, folder: String::new(), user, minimum, sign: false };
        let folder = SmbFolder::connect(&server, None, false, Box::new(|_| Ok(()))).expect("let in");
        for seat in 0..SESSIONS {
            folder.share.session(seat).unwrap_or_else(|error| panic!("seat {seat}: {error}"));
        }
        assert_eq!(logins.load(Ordering::Relaxed), 2);
    }

    /// Seats that found the only session ended once all logged in, and the server refused all but one: the copy ended.
    #[test]
    fn seats_that_find_the_only_session_ended_share_one_new_login() {
        // Which threads meet is up to the scheduler.
        const ROUNDS: usize = 100;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("bound");
        let logins = Arc::new(AtomicUsize::new(0));
        let has_room = Arc::new(AtomicBool::new(true));
        let counted = Arc::clone(&logins);
        let room = Arc::clone(&has_room);
        let (accepted, clients) = mpsc::channel();
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("accepted");
                // The test may have ended.
                let _ = accepted.send(client.try_clone().expect("cloned"));
                counted.fetch_add(1, Ordering::Relaxed);
                let refuses = !room.swap(false, Ordering::Relaxed);
                thread::spawn(move || serve(client, refuses));
            }
        });
        let [name, share, user] = ["filer", "data", "guest"].map(str::to_owned);
        let minimum = SmbVersion::default();
        let server = SmbServer { address, name, share, folder: String::new(), user, minimum, sign: false };
        let folder = SmbFolder::connect(&server, None, false, Box::new(|_| Ok(()))).expect("let in");
        let mut only = clients.recv().expect("the first");
        folder.share.session(1).expect("shared");
        clients.recv().expect("the refused");
        let is_ended = |seat| folder.share.place(seat).as_ref().is_none_or(Session::is_ended);
        let together = Barrier::new(SESSIONS);
        for round in 0..ROUNDS {
            has_room.store(true, Ordering::Relaxed);
            only.shutdown(Shutdown::Both).expect("ended");
            wait_until("the end is seen", || (0..SESSIONS).all(is_ended).then_some(()));
            thread::scope(|scope| {
                let ask = |seat| {
                    together.wait();
                    folder.share.session(seat).map(drop)
                };
                let asking: Vec<_> = (0..SESSIONS).map(|seat| scope.spawn(move || ask(seat))).collect();
                for (seat, asked) in asking.into_iter().enumerate() {
                    asked
                        .join()
                        .expect("no panic")
                        .unwrap_or_else(|error| panic!("round {round}, seat {seat}: {error}"));
                }
            });
            only = clients.recv().expect("the new one");
        }
        assert_eq!(logins.load(Ordering::Relaxed), 2 + ROUNDS, "the first, the refused, one of each round");
    }
}
