//! A TCP connection over which several calls are under way at once, for threads that block.
//!
//! No thread belongs to it. Of those that wait for an answer one receives, for the others too, and hands that over to another one when it
//! has its own; so a thread that calls alone sends and receives by itself, and is woken by nobody.

use crate::answer::Answer;
use crate::crypto::{Sealer, Signer};
use crate::error::{CallError, status};
use crate::request::{Protection, ROOM, Request};
use crate::session::PIECE;
use crate::wire::{
    CHARGE, COMMAND, CREDITS, FLAGS, FROM_SERVER, HEADER, MESSAGE_ID, SESSION, TRANSFORM, TREE, u16_at, u32_at, u64_at,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, sendmsg};
use socket2::SockRef;
use std::collections::HashMap;
use std::io::{self, IoSlice, Read as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A server that owes an answer, and from or to which nothing passes for so long, is taken for lost. How long one answer takes says
/// nothing: behind others on a slow line it may be minutes.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);
/// How often to look whether it is.
const LOOK: Duration = Duration::from_secs(1);
/// A server that is silent for this part of that is asked whether it is there: it may be at work on what takes long (MS-SMB2 2.2.28).
const DOUBT: u64 = 4;
/// How long to wait for room to send while another thread receives.
const STEP: u16 = 50;
/// Credits (MS-SMB2 1.3) to have: for all pieces that files have on their way.
const ENOUGH: u32 = 512;
/// Bytes that a credit is for.
const CREDIT: usize = 64 << 10;
/// A small answer and its length come with one call to the system.
const AHEAD: usize = 16 << 10;
/// Buffers of content that are kept for more of it: new ones come from the system page by page.
const KEPT: usize = 4;
/// No answer is longer than the longest piece of content and what comes with it.
const LONGEST: usize = PIECE + CREDIT;
/// Bytes that are read at a time: that they come shows that the server is there.
const GULP: usize = 256 << 10;
/// Bytes that may wait to be sent in the system, beside those under way: what leaves it shows that too.
const UNSENT: u32 = 128 << 10;
/// Those who wait for credits, and no answer.
const CREDIT_SEEKER: u64 = u64::MAX;

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Milliseconds for which the server may be silent.
    silence: AtomicU64,
    since: Instant,
    /// When bytes last passed, either way: milliseconds from `since` on.
    stirred: AtomicU64,
    /// Whose messages these are; 0 before that is known.
    session: AtomicU64,
    keys: OnceLock<Keys>,
    sending: Mutex<()>,
    receiver: Mutex<Receiver>,
    state: Mutex<State>,
    spare: Mutex<Vec<Vec<u8>>>,
}

/// What protects messages, as far as that was agreed on.
pub(crate) struct Keys {
    pub(crate) signer: Option<Signer>,
    pub(crate) sealer: Option<Sealer>,
}

struct State {
    credits: u32,
    next: u64,
    calls: HashMap<u64, Call>,
    /// The last time that the server was asked whether it is there.
    echo: Option<u64>,
    /// Those who sleep until their call is answered, or another one leaves off receiving.
    sleepers: Vec<(u64, Thread)>,
    lost: Option<Arc<str>>,
}

enum Call {
    Waiting,
    Answered(Answer),
    /// Nobody wants its answer.
    Abandoned,
}

/// What is received, as far as it has come.
struct Receiver {
    /// Bytes from `from` to `to` have come and were not taken.
    ahead: Vec<u8>,
    from: usize,
    to: usize,
    /// A message of which not all has come, and its length.
    message: Option<(Vec<u8>, usize)>,
}

/// A call under way. Dropped, its answer is not waited for.
pub(crate) struct Ticket {
    connection: Arc<Connection>,
    id: u64,
    command: Option<u16>,
    protection: Protection,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, silence: Duration) -> io::Result<Arc<Self>> {
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT)?;
        stream.set_read_timeout(Some(LOOK.min(silence)))?;
        let receiver = Receiver { ahead: vec![0; AHEAD], from: 0, to: 0, message: None };
        // One message may be sent before any was answered (MS-SMB2 3.2.4.1.2).
        let state = State { credits: 1, next: 0, calls: HashMap::new(), echo: None, sleepers: Vec::new(), lost: None };
        let connection = Self {
            stream,
            silence: AtomicU64::default(),
            since: Instant::now(),
            stirred: AtomicU64::default(),
            session: AtomicU64::default(),
            keys: OnceLock::new(),
            sending: Mutex::new(()),
            receiver: Mutex::new(receiver),
            state: Mutex::new(state),
            spare: Mutex::new(Vec::new()),
        };
        connection.allow_silence(silence);
        Ok(Arc::new(connection))
    }

    /// For how long the server may be silent while it owes an answer.
    pub(crate) fn allow_silence(&self, silence: Duration) {
        self.silence.store(silence.as_millis() as u64, Ordering::Relaxed);
    }

    /// From now on messages are of this session.
    pub(crate) fn be_of(&self, session: u64) {
        self.session.store(session, Ordering::Relaxed);
    }

    /// From now on messages may be protected.
    pub(crate) fn protect(&self, keys: Keys) {
        let _ = self.keys.set(keys);
    }

    /// Sends a request.
    pub(crate) fn submit(self: &Arc<Self>, request: Request<'_>) -> Result<Ticket, CallError> {
        self.submit_and(request, |_| ())
    }

    /// Likewise; `note` is told the message as it is sent.
    pub(crate) fn submit_and(
        self: &Arc<Self>,
        request: Request<'_>,
        note: impl FnOnce(&[u8]),
    ) -> Result<Ticket, CallError> {
        let Request { mut message, data, carries, tree, protection } = request;
        let charge = carries.div_ceil(CREDIT).max(1) as u16;
        let (id, wanted) = self.wait_until(CREDIT_SEEKER, |state| state.begin(charge))?;
        let command = u16_at(&message[ROOM..], COMMAND);
        // It is abandoned if it cannot be sent.
        let ticket = Ticket { connection: Arc::clone(self), id, command, protection };
        let header = &mut message[ROOM..ROOM + HEADER];
        number(header, id, charge, wanted);
        header[TREE..TREE + 4].copy_from_slice(&tree.to_le_bytes());
        header[SESSION..SESSION + 8].copy_from_slice(&self.session.load(Ordering::Relaxed).to_le_bytes());
        note(&message[ROOM..]);
        let keys = self.keys.get();
        let missing = || self.lose("it demands what was not agreed on: signatures or encryption");
        let (begins, data) = match protection {
            Protection::None => (TRANSFORM, data),
            Protection::Signed => {
                let signer = keys.and_then(|keys| keys.signer.as_ref()).ok_or_else(missing)?;
                message.extend_from_slice(data);
                signer.sign(&mut message[ROOM..]);
                (TRANSFORM, &[][..])
            }
            Protection::Sealed => {
                message.extend_from_slice(data);
                let sealer = keys.and_then(|keys| keys.sealer.as_ref());
                sealer.and_then(|sealer| sealer.seal(&mut message[ROOM - TRANSFORM..])).ok_or_else(missing)?;
                (0, &[][..])
            }
        };
        frame(&mut message[begins..], data.len());
        self.stir();
        let sent = self.send(&message[begins..], data);
        sent.map_err(|error| self.lose(&self.why(&error)))?;
        Ok(ticket)
    }

    /// Asks whether the server is there, unless it was asked before or something else is being sent. Nobody waits for the answer.
    fn ask_for_life(&self) -> io::Result<()> {
        let Ok(_turn) = self.sending.try_lock() else { return Ok(()) };
        let mut state = self.state();
        if state.echo.is_some_and(|id| state.calls.contains_key(&id)) {
            return Ok(());
        }
        let Some((id, wanted)) = state.begin(1) else { return Ok(()) };
        // Of no session, and so neither signed nor encrypted.
        let mut message = Request::echo().message;
        number(&mut message[ROOM..], id, 1, wanted);
        frame(&mut message[TRANSFORM..], 0);
        match self.offer(&[IoSlice::new(&message[TRANSFORM..])]) {
            Ok(sent) if sent == message.len() - TRANSFORM => {
                state.calls.insert(id, Call::Abandoned);
                state.echo = Some(id);
                Ok(())
            }
            Ok(_) => Err(io::Error::other("half of a message could be sent")),
            Err(Errno::EAGAIN | Errno::EINTR) => {
                // It never was: its number and its credit are the next call's.
                state.calls.remove(&id);
                (state.next, state.credits) = (id, state.credits + 1);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends as much as goes at once.
    fn offer(&self, parts: &[IoSlice<'_>]) -> nix::Result<usize> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(self.stream.as_raw_fd(), parts, &[], flags, None)
    }

    /// Sends a message: all of it before any other one.
    fn send(&self, mut head: &[u8], mut data: &[u8]) -> io::Result<()> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        while !(head.is_empty() && data.is_empty()) {
            match self.offer(&[IoSlice::new(head), IoSlice::new(data)]) {
                Ok(sent) => {
                    self.stir();
                    let of_head = sent.min(head.len());
                    (head, data) = (&head[of_head..], &data[sent - of_head..]);
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => self.wait_for_room()?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until more can be sent, and receives meanwhile: a server whose answers nobody takes may take no more requests.
    fn wait_for_room(&self) -> io::Result<()> {
        let wait = |events, time| {
            let mut ready = [PollFd::new(self.stream.as_fd(), events)];
            match poll(&mut ready, PollTimeout::from(time)) {
                Ok(_) | Err(Errno::EINTR) => Ok(ready[0].revents().unwrap_or(PollFlags::empty())),
                Err(error) => Err(io::Error::from(error)),
            }
        };
        match self.receiver.try_lock() {
            Ok(mut receiver) => {
                if receiver.has_whole()
                    || wait(PollFlags::POLLOUT | PollFlags::POLLIN, LOOK.as_millis() as u16)?
                        .contains(PollFlags::POLLIN)
                {
                    receiver.step(self)?;
                }
                drop(receiver);
                self.state().hand_over();
            }
            Err(_) => {
                wait(PollFlags::POLLOUT, STEP)?;
            }
        }
        if self.is_quiet(1) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Waits until `ready`, and receives meanwhile if nobody else does. `id` is the call that it is about.
    fn wait_until<T>(&self, id: u64, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T, CallError> {
        let mut outcome = |state: &mut State| {
            let lost = |why: &Arc<str>| Err(CallError::Lost(Arc::clone(why)));
            ready(state).map(Ok).or_else(|| state.lost.as_ref().map(lost))
        };
        let mut slept = false;
        loop {
            let mut state = self.state();
            if let Some(outcome) = outcome(&mut state) {
                // It may have been woken to receive as well.
                if slept && self.receiver.try_lock().is_ok() {
                    state.hand_over();
                }
                return outcome;
            }
            let mut receiver = match self.receiver.try_lock() {
                Ok(receiver) => receiver,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    let own = thread::current();
                    state.sleepers.push((id, own.clone()));
                    drop(state);
                    thread::park_timeout(LOOK);
                    self.state().sleepers.retain(|(_, sleeper)| sleeper.id() != own.id());
                    slept = true;
                    continue;
                }
            };
            drop(state);
            let outcome = loop {
                if let Err(error) = receiver.step(self) {
                    self.lose(&self.why(&error));
                }
                if let Some(outcome) = outcome(&mut self.state()) {
                    break outcome;
                }
            };
            drop(receiver);
            self.state().hand_over();
            return outcome;
        }
    }

    /// Takes in a message that came.
    fn deliver(&self, mut bytes: Vec<u8>) -> io::Result<()> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let (mut begins, mut protection) = (0, Protection::None);
        if bytes.starts_with(b"\xfdSMB") {
            let sealer = self.keys.get().and_then(|keys| keys.sealer.as_ref());
            let opened = sealer.and_then(|sealer| sealer.open(&mut bytes));
            opened
                .ok_or_else(|| invalid("it sent what cannot be decrypted; something on the way may have changed it"))?;
            (begins, protection) = (TRANSFORM, Protection::Sealed);
        }
        let message = &bytes[begins..];
        let (Some(credits), Some(id), true) = (
            u16_at(message, CREDITS),
            u64_at(message, MESSAGE_ID),
            message.len() >= HEADER && message.starts_with(b"\xfeSMB"),
        ) else {
            return Err(invalid("it sent what is no message of SMB 2 or 3"));
        };
        // What was sent must not come back as its own answer, whose signature would fit.
        if u32_at(message, FLAGS).unwrap_or_default() & FROM_SERVER == 0 {
            return Err(invalid("it sent a request; something on the way may have changed it"));
        }
        let answer = Answer { bytes, begins, protection };
        let mut state = self.state();
        if credits > 0 {
            state.credits = state.credits.saturating_add(credits.into());
            state.wake(CREDIT_SEEKER);
        }
        if answer.is_interim() {
            return Ok(());
        }
        match state.calls.get_mut(&id) {
            Some(call @ Call::Waiting) => {
                *call = Call::Answered(answer);
                state.wake(id);
            }
            Some(Call::Abandoned) => {
                state.calls.remove(&id);
                drop(state);
                self.recycle(answer.bytes);
            }
            // Nobody asked for it: a notification (MS-SMB2 3.2.5.19), or none of our business.
            Some(Call::Answered(_)) | None => {}
        }
        Ok(())
    }

    /// It is of no more use; the first reason stays.
    fn lose(&self, why: &str) -> CallError {
        let mut state = self.state();
        let why = Arc::clone(state.lost.get_or_insert_with(|| why.into()));
        state.sleepers.iter().for_each(|(_, sleeper)| sleeper.unpark());
        CallError::Lost(why)
    }

    fn why(&self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => String::from("the server closed the connection"),
            io::ErrorKind::TimedOut => {
                format!("the server was silent for {:?}", Duration::from_millis(self.silence.load(Ordering::Relaxed)))
            }
            _ => error.to_string(),
        }
    }

    /// Sends its farewell and ends.
    pub(crate) fn close(self: &Arc<Self>, farewell: Request<'_>, within: Duration) {
        if self.state().lost.is_none() {
            self.allow_silence(within);
            let _ = self.submit(farewell).and_then(Ticket::wait);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Room for a message of so many bytes.
    fn room(&self, bytes: usize) -> Vec<u8> {
        let used = if bytes < CREDIT { None } else { self.spare().pop() };
        let mut room = used.unwrap_or_default();
        room.reserve_exact(bytes);
        room
    }

    /// Keeps a buffer for the next message.
    pub(crate) fn recycle(&self, mut buffer: Vec<u8>) {
        let mut spare = self.spare();
        if buffer.capacity() >= CREDIT && spare.len() < KEPT {
            buffer.clear();
            spare.push(buffer);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stir(&self) {
        self.stirred.store(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Nothing has passed for this part of the time for which the server may be silent.
    fn is_quiet(&self, part: u64) -> bool {
        let now = self.since.elapsed().as_millis() as u64;
        now.saturating_sub(self.stirred.load(Ordering::Relaxed)) >= self.silence.load(Ordering::Relaxed) / part
    }

    /// The server has ended it, and nothing was under way.
    pub(crate) fn is_ended(&self) -> bool {
        let state = self.state();
        let peeked = || recv(self.stream.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT);
        state.lost.is_none()
            && state.calls.is_empty()
            && !matches!(peeked(), Ok(1..) | Err(Errno::EAGAIN | Errno::EINTR))
    }
}

/// Gives a message its number, what it costs, and the credits that it asks for.
fn number(header: &mut [u8], id: u64, charge: u16, wanted: u16) {
    header[CHARGE..CHARGE + 2].copy_from_slice(&charge.to_le_bytes());
    header[CREDITS..CREDITS + 2].copy_from_slice(&wanted.to_le_bytes());
    header[MESSAGE_ID..MESSAGE_ID + 8].copy_from_slice(&id.to_le_bytes());
}

/// Puts the length of a message in front of it, `more` bytes of which are elsewhere (MS-SMB2 2.1: a zero byte, and three of it).
fn frame(message: &mut [u8], more: usize) {
    let length = (message.len() - 4 + more) as u32;
    message[..4].copy_from_slice(&length.to_be_bytes());
}

impl State {
    /// The number of a call that costs so many credits, and how many to ask for; none while there are too few.
    fn begin(&mut self, charge: u16) -> Option<(u64, u16)> {
        if self.lost.is_some() {
            return None;
        }
        self.credits = self.credits.checked_sub(charge.into())?;
        let id = self.next;
        self.next += u64::from(charge);
        self.calls.insert(id, Call::Waiting);
        let lacking = ENOUGH.saturating_sub(self.credits);
        Some((id, lacking.max(charge.into()) as u16))
    }

    /// Wakes those who wait for this call.
    fn wake(&self, id: u64) {
        self.sleepers.iter().filter(|(of, _)| *of == id).for_each(|(_, sleeper)| sleeper.unpark());
    }

    /// Nobody receives any more: one of those does who still wait.
    fn hand_over(&self) {
        let waits = |id: &u64| !matches!(self.calls.get(id), Some(Call::Answered(_)));
        if let Some((_, sleeper)) = self.sleepers.iter().find(|(id, _)| waits(id)) {
            sleeper.unpark();
        }
    }

    fn owes(&self) -> bool {
        self.calls.values().any(|call| matches!(call, Call::Waiting | Call::Abandoned))
    }
}

impl Receiver {
    /// Receives until one message is whole, or nothing comes for a while.
    fn step(&mut self, connection: &Connection) -> io::Result<()> {
        match self.receive(connection) {
            Ok(message) => connection.deliver(message),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                let owes = connection.state().owes();
                match owes {
                    true if connection.is_quiet(1) => Err(io::ErrorKind::TimedOut.into()),
                    true if connection.is_quiet(DOUBT) => connection.ask_for_life(),
                    true => Ok(()),
                    // Whoever waits then, waits for credits.
                    false => Err(io::Error::other("the server lets nothing more be asked")),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn receive(&mut self, connection: &Connection) -> io::Result<Vec<u8>> {
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
                    self.message = Some((connection.room(length), length));
                } else {
                    self.ahead.copy_within(self.from..self.to, 0);
                    (self.from, self.to) = (0, there);
                    self.to += Self::some(connection, (&connection.stream).read(&mut self.ahead[there..])?)?;
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
                (self.from, self.to) = (0, Self::some(connection, (&connection.stream).read(&mut self.ahead)?)?);
            } else {
                // Its memory is not cleared before it is filled.
                let (before, gulp) = (message.len(), missing.min(GULP));
                let read = (&connection.stream).take(gulp as u64).read_to_end(message);
                if message.len() > before {
                    connection.stir();
                }
                if read? < gulp {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }

    /// A whole message has come and was not taken.
    fn has_whole(&self) -> bool {
        let there = &self.ahead[self.from..self.to];
        let whole = |head: &[u8; 4]| there.len() - 4 >= u32::from_be_bytes(*head) as usize;
        self.message.is_none() && there.first_chunk().is_some_and(whole)
    }

    /// So many bytes came; none means that no more will.
    fn some(connection: &Connection, bytes: usize) -> io::Result<usize> {
        connection.stir();
        if bytes == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
    }
}

impl Ticket {
    /// The answer, where it is what was asked for.
    pub(crate) fn wait(self) -> Result<Answer, CallError> {
        let answer = self.wait_any()?;
        match answer.status() {
            0 => Ok(answer),
            status => Err(CallError::Status(status)),
        }
    }

    /// The answer, whatever its status. Where its request was protected it is known to be the server's, but for one that says that the
    /// session is no more.
    pub(crate) fn wait_any(self) -> Result<Answer, CallError> {
        let mut answer = self.connection.wait_until(self.id, |state| match state.calls.get(&self.id) {
            Some(Call::Answered(_)) => match state.calls.remove(&self.id) {
                Some(Call::Answered(answer)) => Some(answer),
                _ => None,
            },
            _ => None,
        })?;
        let protected = match self.protection {
            Protection::Signed if answer.protection != Protection::Sealed => {
                let signer = self.connection.keys.get().and_then(|keys| keys.signer.as_ref());
                let begins = answer.begins;
                signer.is_some_and(|signer| signer.verify(&mut answer.bytes[begins..]))
            }
            wanted => answer.protection >= wanted,
        };
        let answers = u16_at(answer.message(), COMMAND) == self.command;
        // A server that no longer knows the session has no key of it.
        if !(answers && (protected || answer.status() == status::SESSION_DELETED)) {
            return Err(self
                .connection
                .lose("an answer could not be verified; something on the way may have changed it"));
        }
        Ok(answer)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.connection.state();
        if let Some(call) = state.calls.get_mut(&self.id) {
            match call {
                Call::Waiting => *call = Call::Abandoned,
                Call::Answered(_) | Call::Abandoned => drop(state.calls.remove(&self.id)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};

    const FILE: [u8; 16] = [7; 16];

    /// A connection to a server that does `serve`.
    fn connect(silence: Duration, serve: impl FnOnce(TcpStream) + Send + 'static) -> Arc<Connection> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        thread::spawn(move || serve(listener.accept().expect("accepted").0));
        Connection::new(stream, silence).expect("set up")
    }

    /// The next request, from its header on; none when there are no more.
    fn request(client: &mut TcpStream) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        client.read_exact(&mut head).ok()?;
        let mut message = vec![0; u32::from_be_bytes(head) as usize];
        client.read_exact(&mut message).expect("whole");
        Some(message)
    }

    /// An answer to it, with `data` behind its header, that brings what credits it asks for.
    fn answer(request: &[u8], data: &[u8]) -> Vec<u8> {
        let length = (HEADER + data.len()) as u32;
        let mut answer = length.to_be_bytes().to_vec();
        answer.extend_from_slice(&request[..HEADER]);
        answer[4 + FLAGS] |= FROM_SERVER as u8;
        answer.extend_from_slice(data);
        answer
    }

    fn read(bytes: usize) -> Request<'static> {
        Request::read(&FILE, 0, bytes)
    }

    /// Gets the credits that a negotiation brings.
    fn begin(connection: &Arc<Connection>) {
        connection.submit(read(1)).and_then(Ticket::wait).expect("answered");
    }

    #[test]
    fn each_thread_gets_its_own_answer_whatever_their_order() {
        const THREADS: usize = 8;
        let connection = connect(SILENCE, |mut client| {
            let first = request(&mut client).expect("one");
            client.write_all(&answer(&first, b"")).expect("sent");
            loop {
                let asked: Vec<_> = (0..THREADS).map_while(|_| request(&mut client)).collect();
                if asked.len() < THREADS {
                    return;
                }
                for request in asked.iter().rev() {
                    client.write_all(&answer(request, &request[TREE..TREE + 4])).expect("sent");
                }
            }
        });
        begin(&connection);
        thread::scope(|scope| {
            for number in 0..THREADS as u32 {
                let connection = &connection;
                scope.spawn(move || {
                    for round in 0..200 {
                        let tree = number * 1000 + round;
                        let answer = connection.submit(Request { tree, ..read(1) }).and_then(Ticket::wait);
                        assert_eq!(answer.expect("answered").message()[HEADER..], tree.to_le_bytes());
                    }
                });
            }
        });
    }

    /// It takes its time for each: `pieces` bytes of an answer, a quarter of the time apart for which it may be silent.
    fn answered_in(pieces: usize) -> Result<Answer, CallError> {
        let silence = Duration::from_secs(2);
        let connection = connect(silence, move |mut client| {
            let asked = request(&mut client).expect("one");
            let whole = answer(&asked, b"");
            let (slow, rest) = whole.split_at(8);
            for byte in slow.iter().take(pieces) {
                thread::sleep(silence / 4);
                client.write_all(&[*byte]).expect("sent");
            }
            if pieces == slow.len() {
                client.write_all(rest).expect("sent");
            }
            thread::sleep(silence * 4);
        });
        connection.submit(read(1)).and_then(Ticket::wait)
    }

    #[test]
    fn an_answer_may_take_long_as_long_as_it_comes() {
        assert_eq!(answered_in(8).expect("whole").message().len(), HEADER);
    }

    #[test]
    fn a_server_that_owes_an_answer_is_not_silent_for_long() {
        let lost = answered_in(3).expect_err("not whole").to_string();
        assert_eq!(lost, "the server was silent for 2s");
    }

    #[test]
    fn a_server_that_is_at_work_for_long_is_asked_whether_it_is_there() {
        let silence = Duration::from_secs(2);
        let connection = connect(silence, move |mut client| {
            let first = request(&mut client).expect("one");
            client.write_all(&answer(&first, b"")).expect("sent");
            let slow = request(&mut client).expect("another");
            let until = Instant::now() + silence * 2;
            while Instant::now() < until {
                let echo = request(&mut client).expect("asked");
                assert_eq!(echo[COMMAND], 13);
                client.write_all(&answer(&echo, b"")).expect("sent");
            }
            client.write_all(&answer(&slow, b"")).expect("sent");
        });
        begin(&connection);
        connection.submit(read(1)).and_then(Ticket::wait).expect("answered at last");
    }

    #[test]
    fn what_nobody_asked_for_is_no_answer() {
        let reflecting = connect(SILENCE, |mut client| {
            let sent = request(&mut client).expect("one");
            let back = [&(sent.len() as u32).to_be_bytes()[..], &sent].concat();
            client.write_all(&back).expect("sent");
        });
        let lost = reflecting.submit(read(1)).and_then(Ticket::wait).expect_err("its own").to_string();
        assert!(lost.starts_with("it sent a request"), "{lost}");
        let another = connect(SILENCE, |mut client| {
            let mut sent = request(&mut client).expect("one");
            sent[COMMAND] = 9;
            client.write_all(&answer(&sent, b"")).expect("sent");
        });
        let lost = another.submit(read(1)).and_then(Ticket::wait).expect_err("another's").to_string();
        assert!(lost.starts_with("an answer could not be verified"), "{lost}");
        let long = connect(SILENCE, |mut client| client.write_all(&[0, 0x20, 0, 0]).expect("sent"));
        let lost = long.submit(read(1)).and_then(Ticket::wait).expect_err("2 MiB").to_string();
        assert!(lost.contains("none that was asked for"), "{lost}");
    }

    #[test]
    fn an_end_while_nothing_is_under_way_is_seen() {
        let connection = connect(SILENCE, |mut client| {
            let first = request(&mut client).expect("one");
            client.write_all(&answer(&first, b"")).expect("sent");
            thread::sleep(Duration::from_millis(500));
        });
        begin(&connection);
        assert!(!connection.is_ended());
        let until = Instant::now() + Duration::from_secs(10);
        while !connection.is_ended() {
            assert!(Instant::now() < until, "it is never seen");
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn a_server_that_lets_nothing_more_be_asked_is_not_waited_for() {
        let connection = connect(Duration::from_secs(1), |mut client| {
            while let Some(mut asked) = request(&mut client) {
                asked[CREDITS..CREDITS + 2].fill(0);
                client.write_all(&answer(&asked, b"")).expect("sent");
            }
        });
        begin(&connection);
        let lost = connection.submit(read(1)).err().expect("no credits").to_string();
        assert_eq!(lost, "the server lets nothing more be asked");
    }

    #[test]
    fn a_peer_that_ends_or_is_none_is_named() {
        let gone = connect(SILENCE, |mut client| drop(request(&mut client)));
        let lost = gone.submit(read(1)).and_then(Ticket::wait).expect_err("nobody is there").to_string();
        assert_eq!(lost, "the server closed the connection");
        assert_eq!(gone.submit(read(1)).err().expect("still so").to_string(), lost);
        let other = connect(SILENCE, |mut client| client.write_all(b"220 mail.example ESMTP\r\n").expect("sent"));
        let lost = other.submit(read(1)).and_then(Ticket::wait).expect_err("none").to_string();
        assert!(lost.starts_with("it sent what is no message of SMB 2 or 3"), "{lost}");
    }

    /// A server that answers one request after the other takes no more of them while nobody takes its answers.
    #[test]
    fn what_is_sent_does_not_stand_in_the_way_of_what_comes() {
        const PIECE: usize = 1 << 20;
        let connection = connect(SILENCE, |mut client| {
            let content = vec![1; PIECE];
            while let Some(asked) = request(&mut client) {
                let reads = asked[COMMAND] == 8 && asked.len() < PIECE;
                let data = if reads { &content[..] } else { b"" };
                if client.write_all(&answer(&asked, data)).is_err() {
                    return;
                }
            }
        });
        begin(&connection);
        let content = vec![2; PIECE];
        let both = (0..32).flat_map(|_| [read(PIECE), Request::write(&FILE, 0, &content)]);
        // 16 credits each: the last ones wait for those of the first.
        let asked: Vec<_> = both.map(|request| connection.submit(request).expect("sent")).collect();
        let bytes: usize =
            asked.into_iter().map(|asked| asked.wait().expect("answered").message().len() - HEADER).sum();
        assert_eq!(bytes, 32 * PIECE);
    }
}
