//! Calls over connections: a thread for each.

use super::later::Later;
use super::memory::ConnectionMemory;
use super::unproven::{ProvenConnection, UnprovenConnections};
use super::{Executed, Shared, TICK_NS, name, spawn, wait_ns};
use crate::error::RpcError;
use crate::greeting::KnownCallers;
use crate::record::{Records, put_record};
use linerate_engine::{Listener, origin};
use linerate_model::Transport;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::{clock, socket};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// Size of the replies waiting for their caller at which no more calls are taken, in bytes.
pub(super) const OWED_MAXIMUM: usize = 2 << 20;

/// While all memory of a server is taken, a connection looks this often whether some was given back.
const FULL_NS: u64 = 1_000_000;

/// Accepts connections until the server ends, and then waits for their threads. Connections get a thread when their
/// callers have shown the session's key; where there is none, at once.
pub(super) fn accept(listener: &Listener, shared: &Arc<Shared>) {
    let mut threads = Threads::default();
    let mut unproven = UnprovenConnections::new();
    while !shared.is_stopped() {
        let sockets: Vec<_> = listener.sockets().chain(unproven.sockets()).collect();
        if socket::wait_readable(&sockets, TICK_NS).unwrap_or(false) {
            match listener.accept() {
                Ok((_, peer)) if !shared.options.peers.allow(peer.ip()) => {}
                Ok((stream, peer)) if shared.admission.is_some() => unproven.take(stream, peer),
                Ok((stream, peer)) => threads.serve(stream, peer, Vec::new(), shared),
                Err(error) if is_timeout(&error) => {}
                // A connection that went away again, or no descriptor left for it: the others go on.
                Err(_) => clock::sleep_until(clock::now() + 1_000_000),
            }
        }
        // Also after a timeout: strangers out of time are closed, and one may greet at this very moment.
        for ProvenConnection { stream, peer, reply } in unproven.attend(shared) {
            threads.serve(stream, peer, reply, shared);
        }
    }
    for (_, thread) in threads.0 {
        let _ = thread.join();
    }
}

/// The threads that serve connections, and where those come from.
#[derive(Default)]
struct Threads(Vec<(IpAddr, JoinHandle<()>)>);

impl Threads {
    /// Serves a connection on a thread of its own, beginning with `reply`. Closes it if there are too many.
    fn serve(&mut self, stream: TcpStream, peer: SocketAddr, reply: Vec<u8>, shared: &Arc<Shared>) {
        self.0.retain(|(_, thread)| !thread.is_finished());
        let origin = origin(peer.ip());
        let here = self.0.iter().filter(|(other, _)| *other == origin).count();
        if here >= shared.options.connections_each {
            return;
        }
        // Counted before the caller hears of it.
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= shared.options.connections {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
        let own = Arc::clone(shared);
        let work = move || {
            // A connection that fails is its caller's to report.
            own.work(number, || {
                drop(Connection::new(stream, peer, reply).and_then(|connection| connection.serve(&own)));
            });
            own.connections.fetch_sub(1, Ordering::Relaxed);
        };
        match spawn(name(number), work) {
            Ok(thread) => self.0.push((origin, thread)),
            Err(_) => {
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Connection of a caller.
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    known: KnownCallers,
    /// Replies; the first `sent` bytes are with the kernel.
    out: Vec<u8>,
    sent: usize,
    /// Arrival times of the calls with replies in `out`.
    arrived: Vec<u64>,
    later: Later<()>,
}

impl Connection {
    /// Makes a connection on which `out` is sent first.
    fn new(stream: TcpStream, peer: SocketAddr, out: Vec<u8>) -> Result<Self, RpcError> {
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(RpcError::socket("setting up a connection"))?;
        Ok(Self {
            stream,
            peer,
            known: KnownCallers::default(),
            out,
            sent: 0,
            arrived: Vec::new(),
            later: Later::new(),
        })
    }

    fn serve(mut self, shared: &Shared) -> Result<(), RpcError> {
        let mut records = Records::new(shared.options.call_maximum);
        let mut memory = shared.memory.connection();
        let mut heard = clock::now();
        let mut read = clock::now();
        while !shared.is_stopped() {
            while let Some(held) = self.later.take(clock::now()) {
                self.out.extend_from_slice(&held.bytes);
                self.arrived.push(held.arrived);
            }
            // As many calls as there are, until too much is owed for them: the rest is executed when that is read.
            let calls = self.execute(&mut records, &mut memory, read, shared)?;
            let has_sent = self.write(shared).map_err(RpcError::socket("sending replies"))?;
            // Neither half of a call nor a caller that does not read its replies is a reason to stay.
            if calls.executed > 0 || has_sent {
                heard = clock::now();
            } else if self.is_idle(heard, shared) {
                return Ok(());
            }
            let wait_ns = wait_ns(self.later.next_due());
            let is_held_back = !self.may_grow(&mut records, &mut memory, shared);
            let descriptor = self.stream.as_socket();
            if is_held_back && !self.owes_too_much() {
                // The others give some back.
                match self.owed() {
                    0 => clock::sleep_until(clock::now() + wait_ns.min(FULL_NS)),
                    _ => drop(socket::wait_writable(descriptor, wait_ns.min(FULL_NS))?),
                }
                continue;
            }
            match (calls.more_left, self.owed()) {
                (true, owed) => {
                    // All of it may be held back for later.
                    if self.owes_too_much() && owed == 0 {
                        clock::sleep_until(clock::now() + wait_ns);
                    } else if self.owes_too_much() {
                        socket::wait_writable(descriptor, wait_ns)?;
                    }
                    continue;
                }
                (_, 0) => socket::wait_readable(&[descriptor], wait_ns)?,
                (_, owed) if owed < OWED_MAXIMUM => socket::wait_ready(descriptor, wait_ns)?,
                _ => {
                    socket::wait_writable(descriptor, wait_ns)?;
                    continue;
                }
            };
            match self.stream.read(records.room()) {
                Ok(0) => return Ok(()),
                Ok(taken) => records.filled(taken),
                Err(error) if is_timeout(&error) => continue,
                Err(error) => return Err(RpcError::socket("reading calls")(error)),
            }
            read = clock::now();
        }
        Ok(())
    }

    /// Whether the caller has had its time since `heard`, when a call of it was executed or it took a part of a reply.
    fn is_idle(&self, heard: u64, shared: &Shared) -> bool {
        let is_over = |limit| clock::now() > heard + limit && self.later.next_due().is_none();
        shared.options.idle_ns.is_some_and(is_over)
    }

    /// Whether there is memory for more calls and replies. Where all is taken, gives back what is not in use.
    fn may_grow(&mut self, records: &mut Records, memory: &mut ConnectionMemory<'_>, shared: &Shared) -> bool {
        if !memory.is_full(self.memory(records)) {
            return true;
        }
        if self.owed() == 0 {
            (self.out, self.sent) = (Vec::new(), 0);
        }
        if records.is_empty() {
            *records = Records::new(shared.options.call_maximum);
        }
        let bytes = self.memory(records);
        !memory.is_full(bytes) || memory.is_exempt(bytes)
    }

    /// Memory that the connection takes, bytes.
    fn memory(&self, records: &Records) -> u64 {
        (self.out.capacity() + self.later.memory() + records.memory()) as u64
    }

    /// Executes the calls in `records`, which were read at `now`.
    fn execute(
        &mut self,
        records: &mut Records,
        memory: &mut ConnectionMemory<'_>,
        now: u64,
        shared: &Shared,
    ) -> Result<Executions, RpcError> {
        let mut executed = 0;
        while !self.owes_too_much() && self.may_grow(records, memory, shared) {
            let malformed = |what| RpcError::Malformed { peer: self.peer, what };
            let Some(call) = records.next().map_err(|error| malformed(error.to_string()))? else {
                return Ok(Executions { executed, more_left: false });
            };
            executed += 1;
            let begin = self.out.len();
            let caller = (self.peer, Transport::Tcp);
            let known = &mut self.known;
            match put_record(&mut self.out, |out| shared.execute(call, caller, now, Some(known), out)) {
                // The stream cannot be trusted from here on.
                None => return Err(malformed("a record that is no call".to_owned())),
                Some(Executed { due, .. }) if due > now => self.later.hold(due, now, self.out.split_off(begin), ()),
                Some(Executed { caller, .. }) if shared.counts(caller) => self.arrived.push(now),
                Some(_) => {}
            }
        }
        Ok(Executions { executed, more_left: true })
    }

    /// Bytes of replies that the kernel has not taken.
    fn owed(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Returns whether the caller is owed the most bytes of replies, due now or later, so that no more calls are
    /// executed.
    fn owes_too_much(&self) -> bool {
        self.owed() + self.later.memory() >= OWED_MAXIMUM
    }

    /// Hands over as much as there is room for. Returns whether that was anything.
    fn write(&mut self, shared: &Shared) -> io::Result<bool> {
        // A reply is done before it is first offered: what the network and the caller take from then on is no time of
        // the server, and sending over a link of this machine may run them.
        let now = clock::now();
        let mut has_sent = false;
        let mut has_room = true;
        while has_room && self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(taken) => {
                    self.sent += taken;
                    has_sent |= taken > 0;
                }
                Err(error) if is_timeout(&error) => has_room = false,
                Err(error) => return Err(error),
            }
        }
        if self.sent > self.out.len() / 2 {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        // Counted afterwards, so that no reply waits for it.
        self.arrived.iter_mut().for_each(|at| *at = now.saturating_sub(*at));
        shared.account.answered(&mut self.arrived, now);
        Ok(has_sent)
    }
}

/// Result of executing the calls that had come.
#[derive(Debug, Clone, Copy)]
struct Executions {
    executed: usize,
    /// More may be there, but too much is owed already.
    more_left: bool,
}
