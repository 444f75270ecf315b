//! A TCP connection over which several calls are under way at once, for threads that block.
//!
//! The connection has no thread of its own. One of the threads that wait for an answer receives for all of them, and
//! passes this on when it has its own answer. A thread that calls alone sends and receives by itself, without a
//! wake-up.

use crate::answer::Answer;
use crate::crypto::{Sealer, Signer};
use crate::error::{CallError, status};
use crate::receiver::Receiver;
use crate::request::{Protection, ROOM, Request};
use crate::socket::Socket;
use crate::wire::{
    CHARGE, COMMAND, CREDIT, CREDITS, FLAGS, FROM_SERVER, HEADER, MESSAGE_ID, SESSION, TRANSFORM, TREE, u16_at, u32_at,
    u64_at,
};
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Time without a byte in either direction after which a server that owes an answer is lost. The time of one answer is
/// no measure: after others on a slow line it may be minutes.
pub(crate) const SILENCE: Duration = Duration::from_secs(20);
/// Interval of looking at the silence.
const LOOK: Duration = Duration::from_secs(1);
/// A server that is silent for this part of that is asked whether it is there: it may be at work on what takes long
/// (MS-SMB2 2.2.28).
const DOUBT: u64 = 4;
/// Time to wait for room to send while another thread receives.
const STEP: Duration = Duration::from_millis(50);
/// Credits (MS-SMB2 1.3) to have: for all pieces that files have on their way.
const ENOUGH: u32 = 512;
/// Buffers of content that are kept for more of it: new ones come from the system page by page.
const KEPT: usize = 4;
/// Sleepers that wait for credits, not for an answer.
const CREDIT_SEEKER: u64 = u64::MAX;

/// A connection.
pub(crate) struct Connection {
    socket: Socket,
    /// Milliseconds for which the server may be silent.
    silence: AtomicU64,
    since: Instant,
    /// When bytes last passed, either way: milliseconds from `since` on.
    stirred: AtomicU64,
    /// Session of the messages; 0 before the login.
    session: AtomicU64,
    keys: OnceLock<Keys>,
    sending: Mutex<()>,
    receiver: Mutex<Receiver>,
    state: Mutex<State>,
    spare: Mutex<Vec<Vec<u8>>>,
}

/// Keys that protect messages, as far as they were agreed on.
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
    /// Threads that sleep until their call is answered or the receiving thread stops.
    sleepers: Vec<(u64, Thread)>,
    lost: Option<Arc<str>>,
}

enum Call {
    Waiting,
    Answered(Answer),
    /// Nobody wants its answer.
    Abandoned,
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
        // One message may be sent before any was answered (MS-SMB2 3.2.4.1.2).
        let state = State { credits: 1, next: 0, calls: HashMap::new(), echo: None, sleepers: Vec::new(), lost: None };
        let connection = Self {
            socket: Socket::new(stream, LOOK.min(silence))?,
            silence: AtomicU64::default(),
            since: Instant::now(),
            stirred: AtomicU64::default(),
            session: AtomicU64::default(),
            keys: OnceLock::new(),
            sending: Mutex::new(()),
            receiver: Mutex::default(),
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

    /// Sends a request like [`Self::submit`], and gives `note` the message as it is sent.
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

    /// Asks whether the server is there, unless it was asked before or something else is being sent. Nobody waits for
    /// the answer.
    fn probe_server(&self) -> io::Result<()> {
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
        match self.socket.offer(&[IoSlice::new(&message[TRANSFORM..])]) {
            Ok(sent) if sent == message.len() - TRANSFORM => {
                state.calls.insert(id, Call::Abandoned);
                state.echo = Some(id);
                Ok(())
            }
            Ok(_) => Err(io::Error::other("half of a message could be sent")),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                // It never was: its number and its credit are the next call's.
                state.calls.remove(&id);
                (state.next, state.credits) = (id, state.credits + 1);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a message: all of it before any other one.
    fn send(&self, mut head: &[u8], mut data: &[u8]) -> io::Result<()> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        while !(head.is_empty() && data.is_empty()) {
            match self.socket.offer(&[IoSlice::new(head), IoSlice::new(data)]) {
                Ok(sent) => {
                    self.stir();
                    let of_head = sent.min(head.len());
                    (head, data) = (&head[of_head..], &data[sent - of_head..]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until more can be sent, and receives meanwhile: a server with unread answers may take no more requests.
    fn wait_for_room(&self) -> io::Result<()> {
        match self.receiver.try_lock() {
            Ok(mut receiver) => {
                if receiver.has_whole() || self.socket.wait(LOOK)? {
                    self.step(&mut receiver)?;
                }
                drop(receiver);
                self.state().hand_over();
            }
            Err(_) => self.socket.wait_for_room(STEP)?,
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
                    let thread = thread::current();
                    state.sleepers.push((id, thread.clone()));
                    drop(state);
                    thread::park_timeout(LOOK);
                    self.state().sleepers.retain(|(_, sleeper)| sleeper.id() != thread.id());
                    slept = true;
                    continue;
                }
            };
            drop(state);
            let outcome = loop {
                if let Err(error) = self.step(&mut receiver) {
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

    /// Receives until one message is whole, or nothing comes for a while.
    fn step(&self, receiver: &mut Receiver) -> io::Result<()> {
        match receiver.receive(self.socket.incoming(), || self.stir(), |bytes| self.room(bytes)) {
            Ok(message) => self.deliver(message),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                let owes = self.state().owes();
                if !owes {
                    // The caller waits for credits, which only an answer could bring.
                    Err(io::Error::other("the server lets nothing more be asked"))
                } else if self.is_quiet(1) {
                    Err(io::ErrorKind::TimedOut.into())
                } else if self.is_quiet(DOUBT) {
                    self.probe_server()
                } else {
                    Ok(())
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes in a message that came.
    fn deliver(&self, mut bytes: Vec<u8>) -> io::Result<()> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        let mut begins = 0;
        let mut protection = Protection::None;
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
        // A request must not come back as its own answer, since its signature would fit.
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
            // An answer without a call: a notification (MS-SMB2 3.2.5.19), or of no concern here.
            Some(Call::Answered(_)) | None => {}
        }
        Ok(())
    }

    /// Gives up the connection; the first reason stays.
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
        self.socket.shut_down();
    }

    /// Returns a buffer for a message of `bytes` bytes.
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
        if state.lost.is_some() || !state.calls.is_empty() {
            return false;
        }
        self.socket.is_over()
    }
}

/// Gives a message its number, what it costs, and the credits that it asks for.
fn number(header: &mut [u8], id: u64, charge: u16, wanted: u16) {
    header[CHARGE..CHARGE + 2].copy_from_slice(&charge.to_le_bytes());
    header[CREDITS..CREDITS + 2].copy_from_slice(&wanted.to_le_bytes());
    header[MESSAGE_ID..MESSAGE_ID + 8].copy_from_slice(&id.to_le_bytes());
}

/// Puts the length of a message in front of it, `more` bytes of which are elsewhere (MS-SMB2 2.1: a zero byte, and
/// three of it).
fn frame(message: &mut [u8], more: usize) {
    let length = (message.len() - 4 + more) as u32;
    message[..4].copy_from_slice(&length.to_be_bytes());
}

impl State {
    /// Returns the number of a call of `charge` credits, and the credits to ask for. Returns `None` while there are too
    /// few.
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
        let waiting = self.sleepers.iter().find(|(id, _)| !matches!(self.calls.get(id), Some(Call::Answered(_))));
        if let Some((_, sleeper)) = waiting {
            sleeper.unpark();
        }
    }

    fn owes(&self) -> bool {
        self.calls.values().any(|call| matches!(call, Call::Waiting | Call::Abandoned))
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

    /// The answer, whatever its status. Where its request was protected it is known to be the server's, but for one
    /// that says that the session is no more.
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
mod tests;
