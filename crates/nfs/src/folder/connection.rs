//! Connections to the server. Idle ones are kept for the next call; a broken one is not used again.

use super::{Stopped, status_error};
use crate::answers::{self, Answer};
use crate::calls::{self, Ask};
use crate::identity::CallerIdentity;
use crate::status;
use linerate_engine::{KEEPALIVE, KEEPALIVE_RETRIES, PEER_GONE, PeerSilence, SocketError, SocketSpec};
use linerate_model::{NfsOperation, SocketOptions, Transport};
use linerate_oncrpc::client::Caller;
use linerate_oncrpc::message::{Credential, Reply};
use linerate_oncrpc::{RpcError, socket_from_privileged_port};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::{clock, tcp};
use linerate_units::Nanos;
use socket2::SockAddr;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

/// Time that connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// A server that is not there any more is noticed after this.
const LOST: Duration = PEER_GONE;
/// Time that a running server has to answer.
const REPLY_TIMEOUT_NS: u64 = 60_000_000_000;
/// COMMIT takes as long as the server's disks take for all that it holds of a file.
const COMMIT_TIMEOUT_NS: u64 = 600_000_000_000;
const TICK: Nanos = Nanos::from_millis(100);
/// Time for the calls after the stop, all together.
const GRACE_NS: u64 = 3_000_000_000;
/// Interval of retries while a server is not ready (NFS3ERR_JUKEBOX).
pub(super) const AGAIN: Duration = Duration::from_millis(100);

/// Why a call came to nothing, where the server is there.
pub(super) enum Failure {
    /// The server's status.
    Status(u32),
    /// Its results are of another kind than RFC 1813 has for the call.
    Unfit,
}

/// Pool of the connections of one mount.
pub(super) struct ConnectionPool {
    pub(super) address: SocketAddr,
    identity: CallerIdentity,
    /// From a privileged port, as many servers want it.
    privileged: bool,
    answer_time: Arc<AnswerTime>,
    /// With what their calls show.
    idle: Mutex<Vec<(Caller, Credential)>>,
    /// The server could not be reached again.
    lost: AtomicBool,
}

/// Time limit of calls.
struct AnswerTime {
    stopped: Stopped,
    /// End of the calls after a stop; 0 before it.
    ends: AtomicU64,
}

impl AnswerTime {
    fn has_ended(&self, now: u64) -> bool {
        if !(self.stopped)() {
            return false;
        }
        // Whoever sees the stop first sets the end.
        let _ = self.ends.compare_exchange(0, now + GRACE_NS, Ordering::AcqRel, Ordering::Acquire);
        now > self.ends.load(Ordering::Acquire)
    }
}

/// A connection taken out of the pool.
pub(super) struct Connection {
    answer_time: Arc<AnswerTime>,
    caller: Caller,
    credential: Credential,
    /// Operations under way, by xid.
    asked: HashMap<u32, NfsOperation>,
    arguments: Vec<u8>,
    heard: u64,
    silence: PeerSilence,
}

impl ConnectionPool {
    pub(super) fn new(address: SocketAddr, identity: CallerIdentity, privileged: bool, stopped: Stopped) -> Self {
        let answer_time = Arc::new(AnswerTime { stopped, ends: AtomicU64::new(0) });
        Self { address, identity, privileged, answer_time, idle: Mutex::default(), lost: AtomicBool::new(false) }
    }

    /// Connects to a port of the server, and says what calls to it show.
    pub(super) fn dial(&self, address: SocketAddr) -> Result<(Caller, Credential), RpcError> {
        let mut caller = dial(address, self.privileged)?;
        let credential = self.identity.credential(&mut caller)?;
        Ok((caller, credential))
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes an idle connection, or opens one. Servers close connections that were idle for some minutes: such are left
    /// out.
    pub(super) fn take(&self) -> io::Result<Connection> {
        loop {
            let idle = self.idle().pop();
            let Some((mut caller, credential)) = idle else { return self.fresh() };
            if caller.poll(Nanos::default(), &mut |_, _| ()).is_ok() {
                return Ok(self.connection((caller, credential)));
            }
        }
    }

    /// Opens a connection.
    fn fresh(&self) -> io::Result<Connection> {
        if self.is_lost() {
            return Err(lost(format!("{} is lost", self.address)));
        }
        let dialled = self.dial(self.address).map_err(|error| {
            self.lost.store(true, Ordering::Relaxed);
            lost(error)
        })?;
        Ok(self.connection(dialled))
    }

    fn connection(&self, (caller, credential): (Caller, Credential)) -> Connection {
        Connection {
            answer_time: Arc::clone(&self.answer_time),
            caller,
            credential,
            asked: HashMap::new(),
            arguments: Vec::new(),
            heard: clock::now(),
            silence: PeerSilence::default(),
        }
    }

    /// Takes one back that has no call under way.
    pub(super) fn give(&self, connection: Connection) {
        if connection.asked.is_empty() {
            self.idle().push((connection.caller, connection.credential));
        }
    }

    /// Makes one call, and returns what `take` makes of its answer.
    pub(super) fn one<T>(
        &self,
        call: &str,
        ask: &Ask<'_>,
        take: impl FnMut(Answer<'_>) -> Result<T, Failure>,
    ) -> io::Result<T> {
        self.on(self.take()?, call, ask, take)
    }

    /// Makes one call on a new connection: all others may have just been cut.
    pub(super) fn anew<T>(
        &self,
        call: &str,
        ask: &Ask<'_>,
        take: impl FnMut(Answer<'_>) -> Result<T, Failure>,
    ) -> io::Result<T> {
        self.on(self.fresh()?, call, ask, take)
    }

    /// Two calls that do not wait for each other, and what came of each: `done` takes their answers.
    pub(super) fn both(
        &self,
        calls: [(&str, Ask<'_>); 2],
        done: fn(Answer<'_>) -> Result<(), Failure>,
    ) -> io::Result<[io::Result<()>; 2]> {
        let mut connection = self.take()?;
        let xids = [connection.ask(&calls[0].1)?, connection.ask(&calls[1].1)?];
        let mut taken = [None, None];
        while taken.iter().any(Option::is_none) {
            connection.hear(|xid, answer| {
                if let Some(at) = xids.iter().position(|known| *known == xid) {
                    taken[at] = Some(answer.map_err(|()| Failure::Unfit).and_then(done));
                }
            })?;
        }
        self.give(connection);
        let [first, second] = taken;
        let settle = |(call, ask): &(&str, Ask<'_>), taken: Option<Result<(), Failure>>| match taken {
            // It is asked again by itself.
            Some(Err(Failure::Status(status::JUKEBOX))) | None => self.one(call, ask, done),
            Some(taken) => taken.map_err(|failure| failure.of(call)),
        };
        Ok([settle(&calls[0], first), settle(&calls[1], second)])
    }

    fn on<T>(
        &self,
        mut connection: Connection,
        call: &str,
        ask: &Ask<'_>,
        mut take: impl FnMut(Answer<'_>) -> Result<T, Failure>,
    ) -> io::Result<T> {
        let taken = loop {
            connection.ask(ask)?;
            let mut taken = None;
            while taken.is_none() {
                connection.hear(|_, answer| taken = Some(answer.map_err(|()| Failure::Unfit).and_then(&mut take)))?;
            }
            match taken {
                Some(Err(Failure::Status(status::JUKEBOX))) => thread::sleep(AGAIN),
                Some(taken) => break taken,
                None => {}
            }
        };
        self.give(connection);
        taken.map_err(|failure| failure.of(call))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Caller, Credential)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Sends a call; its number.
    pub(super) fn ask(&mut self, ask: &Ask<'_>) -> io::Result<u32> {
        let operation = ask.pack(&mut self.arguments);
        let xid = self.caller.call(calls::procedure(operation), &self.credential, &self.arguments);
        if self.asked.is_empty() {
            self.heard = clock::now();
        }
        self.asked.insert(xid, operation);
        Ok(xid)
    }

    /// Waits for answers and gives those that are there, with their numbers; nothing in place of one that cannot be
    /// read.
    pub(super) fn hear(&mut self, on_answer: impl FnMut(u32, Result<Answer<'_>, ()>)) -> io::Result<()> {
        self.poll(TICK, on_answer)?;
        let now = clock::now();
        if self.answer_time.has_ended(now) {
            return Err(lost("it was stopped"));
        }
        if let Some(stream) = self.caller.stream()
            && self.silence.look(stream.as_socket()).map_err(lost)?.map(u128::from) > Some(LOST.as_nanos())
        {
            return Err(lost(format!("{} has shown no sign for {} s", self.caller.server(), LOST.as_secs())));
        }
        let only_commits = self.asked.values().all(|asked| *asked == NfsOperation::Commit);
        let longest = if only_commits { COMMIT_TIMEOUT_NS } else { REPLY_TIMEOUT_NS };
        if now.saturating_sub(self.heard) > longest {
            return Err(lost(format!("{} has not answered for {} s", self.caller.server(), longest / 1_000_000_000)));
        }
        Ok(())
    }

    /// Takes the answers that are there, without waiting.
    pub(super) fn look(&mut self, on_answer: impl FnMut(u32, Result<Answer<'_>, ()>)) -> io::Result<()> {
        self.poll(Nanos::default(), on_answer)
    }

    fn poll(&mut self, wait: Nanos, mut on_answer: impl FnMut(u32, Result<Answer<'_>, ()>)) -> io::Result<()> {
        let asked = &mut self.asked;
        let server = self.caller.server();
        let mut refused = None;
        let mut heard = false;
        let polled = self.caller.poll(wait, &mut |xid, reply| {
            let Some(operation) = asked.remove(&xid) else { return };
            heard = true;
            match reply {
                Reply::Accepted(results) => on_answer(xid, answers::read(operation, results).ok_or(())),
                Reply::Refused(why) => refused = Some(RpcError::refused(server, operation.to_string(), why)),
                Reply::Lost => {}
            }
        });
        if heard {
            self.heard = clock::now();
        }
        polled.map_err(lost)?;
        refused.map_or(Ok(()), |refused| Err(lost(refused)))
    }
}

impl Failure {
    /// For people: `call` failed so.
    pub(super) fn of(self, call: &str) -> io::Error {
        match self {
            Self::Status(status) => status_error(call, status),
            Self::Unfit => io::Error::other(format!("the NFS server's results of {call} are not those of RFC 1813")),
        }
    }
}

/// Nothing more can come of the server.
fn lost(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, why.to_string())
}

/// Connects to a port of a server.
pub(super) fn dial(address: SocketAddr, from_privileged: bool) -> Result<Caller, RpcError> {
    let options = SocketOptions::default();
    let spec =
        SocketSpec { transport: Transport::Tcp, v6: address.is_ipv6(), options: &options, bind: None, device: false };
    let socket = if from_privileged { socket_from_privileged_port(spec)? } else { linerate_engine::socket(spec)? };
    socket.connect_timeout(&SockAddr::from(address), CONNECT).map_err(|error| {
        SocketError::connecting(address, error).map_or_else(
            |error| {
                let what = String::from("a connection");
                RpcError::NoAnswer { server: address, what, seconds: CONNECT.as_secs(), reason: error.to_string() }
            },
            RpcError::from,
        )
    })?;
    tcp::set_keepalive(socket.as_socket(), KEEPALIVE, KEEPALIVE, KEEPALIVE_RETRIES)
        // It would end the connection to a live server that takes nothing for a while: see PeerSilence.
        .and_then(|()| tcp::set_user_timeout(socket.as_socket(), None))
        .map_err(RpcError::socket("setting up a connection"))?;
    Caller::tcp(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_connection_that_the_server_closed_while_it_was_idle_is_not_used_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
        let address = listener.local_addr().expect("listens");
        let identity = CallerIdentity::User(Credential::none());
        let pool = ConnectionPool::new(address, identity, false, Box::new(|| false));
        let accepted = |listener: &TcpListener| listener.accept().expect("a connection").0;
        pool.give(pool.take().expect("connects"));
        let first = accepted(&listener);
        let port = |connection: &Connection| connection.caller.stream().and_then(|stream| stream.local_addr().ok());
        let reused = pool.take().expect("an idle one");
        assert_eq!(port(&reused), first.peer_addr().ok(), "it is used again while it is open");
        pool.give(reused);
        // The end is in the queue of the other side before this returns: loopback delivers at once.
        drop(first);
        let fresh = pool.take().expect("connects again");
        assert_eq!(port(&fresh), accepted(&listener).peer_addr().ok());
    }
}
