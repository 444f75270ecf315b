//! Servers of RPC programs: a thread for each connection, or a few for a UDP socket; calls are taken and replies sent
//! in batches, in the order in which they are ready.

mod account;
mod later;
mod memory;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;
mod unproven;

use crate::error::RpcError;
use crate::greeting::{GREET, GreetingServer, KnownCallers, is_greeting};
use crate::message::{BadCall, CallMessage, Refused, put_accepted, put_refused, read_call};
use account::Account;
use linerate_engine::{AllowedPeers, ListenOptions, Listener, SocketError, SocketSpec, StrangerReplies, Timeline};
use linerate_model::{Service, SessionKey, Transport};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::thread::{EngineThread, current_tid, sharpen_timers};
use linerate_sys::{affinity, clock, socket};
use memory::ServerMemory;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle};
use udp::{Callers, Datagrams};
pub(crate) use unproven::LIMITS as STRANGERS;

/// Time within which a stop is noticed.
const TICK_NS: u64 = 50_000_000;
/// Enough for the calls that arrive within a few milliseconds of a busy core; the system's default of 208 KiB is three
/// calls of 60 KB.
const UDP_RECEIVE_BUFFER: i32 = 4 << 20;

/// The most memory of one caller's connection: replies that it has not read, one more that was just made, and a call
/// that is gathered from its fragments.
pub(crate) const CONNECTION_MEMORY: u64 = tcp::OWED_MAXIMUM as u64 + (4 << 20);

/// A program that executes calls.
pub trait Program: Send + Sync {
    /// The program's number.
    fn number(&self) -> u32;

    /// Its versions.
    fn versions(&self) -> RangeInclusive<u32>;

    /// Executes one call: appends its results in XDR to `reply`, or returns the refusal (then what was appended is
    /// dropped). Returns when the reply is due by [`linerate_sys::clock::now`], `None` if at once. The server goes on
    /// meanwhile.
    ///
    /// A call over UDP may come again with the same xid and peer: the caller did not see the reply in time. Who must
    /// not do a thing twice remembers it.
    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused>;

    /// Counts calls that arrive within the window of `timeline`, and forgets others. Programs that count nothing ignore
    /// it.
    fn observe(&self, _timeline: &Timeline) {}

    /// Returns the data it carried since it began, or within the window of [`Program::observe`]; `None` if it does not
    /// count them.
    fn moved(&self) -> Option<Moved> {
        None
    }

    /// Returns the data it carried since it began, or since [`Program::observe`], before and after the window too;
    /// `None` if it does not count them.
    fn moved_so_far(&self) -> Option<Moved> {
        None
    }

    /// A caller has said that it is not done, and will say when it is.
    fn is_in_use(&self) -> bool {
        false
    }
}

/// The data that a program carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes of data in calls, each call counted once.
    pub received_bytes: u64,
    /// Calls that carried data, each counted once.
    pub received_calls: u64,
    /// UDP: calls that had been executed before.
    pub duplicates: u64,
    /// Bytes of data in replies.
    pub sent_bytes: u64,
    /// Replies that carried data.
    pub sent_calls: u64,
}

/// A call as a program sees it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The call's number, chosen by its caller.
    pub xid: u32,
    /// The version of the program.
    pub version: u32,
    /// The procedure's number.
    pub procedure: u32,
    /// In XDR.
    pub args: &'a [u8],
    /// Address of the caller.
    pub peer: SocketAddr,
    /// Over which transport it came.
    pub transport: Transport,
    /// When it was taken from the kernel, by [`linerate_sys::clock::now`].
    pub arrived_ns: u64,
}

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// UDP: threads that share the socket.
    pub threads: usize,
    /// The number of the first answering thread, by which it is named and its core is chosen.
    pub first: usize,
    /// Key that callers must hold for all but null calls; `None` admits anyone.
    pub key: Option<SessionKey>,
    /// Hosts that are answered.
    pub peers: AllowedPeers,
    /// Limit of replies to all callers without the key.
    pub replies: Arc<StrangerReplies>,
    /// Connections at a time; more are closed at once. Over UDP, at a port that is shared: callers.
    pub connections: usize,
    /// TCP: those of one address, or of one IPv6 network of 64 bits.
    pub connections_each: usize,
    /// TCP: time without a call after which a connection is closed; `None` leaves it open.
    pub idle_ns: Option<u64>,
    /// Bytes of a call at the most.
    pub call_maximum: usize,
    /// TCP: memory that all connections may take together, bytes.
    pub memory: u64,
    /// Cores that the threads are pinned to, in turn; empty leaves the choice to the scheduler.
    pub cpus: Vec<u32>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            first: 0,
            key: None,
            peers: AllowedPeers::default(),
            replies: Arc::default(),
            connections: 1_024,
            connections_each: 1_024,
            idle_ns: None,
            call_maximum: (1 << 20) + (64 << 10),
            memory: u64::MAX,
            cpus: Vec::new(),
        }
    }
}

/// A server at work. Dropping it ends its threads and closes its connections.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    main: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// State that the threads of a server share.
struct Shared {
    programs: Vec<Arc<dyn Program>>,
    /// Admission by the session's key; `None` admits anyone.
    admission: Option<GreetingServer>,
    options: ServerOptions,
    account: Account,
    memory: ServerMemory,
    stop: AtomicBool,
    threads: Mutex<Vec<EngineThread>>,
    connections: AtomicUsize,
    numbers: AtomicUsize,
}

impl Server {
    /// Serves `programs` to anyone at `address`, with what most servers allow.
    pub fn start(transport: Transport, address: SocketAddr, programs: Vec<Arc<dyn Program>>) -> Result<Self, RpcError> {
        Self::at(transport, address, programs, ServerOptions::default())
    }

    /// Serves `programs` at `address`; port 0 is one of the system's choice.
    pub fn at(
        transport: Transport,
        address: SocketAddr,
        programs: Vec<Arc<dyn Program>>,
        options: ServerOptions,
    ) -> Result<Self, RpcError> {
        let (kind, protocol) = match transport {
            Transport::Tcp => (Type::STREAM, Protocol::TCP),
            Transport::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let listening = || RpcError::socket(format!("listening on {address} for RPC over {transport}"));
        let socket = Socket::new(Domain::for_address(address), kind, Some(protocol)).map_err(listening())?;
        if transport == Transport::Tcp {
            // A port whose last connections have only just closed can be taken again.
            socket::reuse_closed_port(socket.as_socket()).map_err(listening())?;
        }
        let remedy = "choose another, or 0 for one that is free";
        socket.bind(&SockAddr::from(address)).map_err(SocketError::listening(address, transport, remedy))?;
        match transport {
            Transport::Tcp => {
                socket.listen(4_096).map_err(listening())?;
                let listener = Listener::of(socket.into()).map_err(listening())?;
                Self::over_tcp(listener, programs, options)
            }
            Transport::Udp => {
                socket.set_nonblocking(true).map_err(listening())?;
                let socket = UdpSocket::from(socket);
                let address = socket.local_addr().map_err(RpcError::socket("getsockname"))?;
                Self::over_udp(Datagrams::One(Arc::new(prepared(socket)?)), address, programs, options)
            }
        }
    }

    /// Serves `programs` to a session, at `address` as `listening` says, with sockets as `spec` says. Callers show the
    /// key of `options`.
    pub fn in_session(
        spec: SocketSpec<'_>,
        address: IpAddr,
        listening: &ListenOptions,
        programs: Vec<Arc<dyn Program>>,
        options: ServerOptions,
    ) -> Result<Self, RpcError> {
        let key = options.key;
        let greets = Box::new(move |bytes: &[u8]| key.is_some_and(|key| is_greeting(&key, bytes)));
        match spec.transport {
            Transport::Tcp => Self::over_tcp(listening.connections(spec, address, greets)?, programs, options),
            Transport::Udp => {
                let listener = listening.datagrams(spec, address, greets)?;
                let address = listener.address();
                let datagrams = match listener.into_socket() {
                    Ok(socket) => Datagrams::One(Arc::new(prepared(socket)?)),
                    Err(listener) => Datagrams::Each(Box::new(Callers::new(*listener, options.threads.max(1))?)),
                };
                Self::over_udp(datagrams, address, programs, options)
            }
        }
    }

    fn over_tcp(listener: Listener, programs: Vec<Arc<dyn Program>>, options: ServerOptions) -> Result<Self, RpcError> {
        let mut server = Self::new(listener.address(), programs, options);
        let shared = Arc::clone(&server.shared);
        server.main.push(spawn("rpc accept".to_owned(), move || tcp::accept(&listener, &shared))?);
        Ok(server)
    }

    fn over_udp(
        datagrams: Datagrams,
        address: SocketAddr,
        programs: Vec<Arc<dyn Program>>,
        options: ServerOptions,
    ) -> Result<Self, RpcError> {
        let mut server = Self::new(address, programs, options);
        let datagrams = Arc::new(datagrams);
        for thread in 0..server.shared.options.threads.max(1) {
            let datagrams = Arc::clone(&datagrams);
            let shared = Arc::clone(&server.shared);
            let number = server.shared.numbers.fetch_add(1, Ordering::Relaxed);
            let work = move || shared.work(number, || udp::serve(&datagrams, thread, &shared));
            server.main.push(spawn(name(number), work)?);
        }
        Ok(server)
    }

    /// A server without threads.
    fn new(address: SocketAddr, programs: Vec<Arc<dyn Program>>, options: ServerOptions) -> Self {
        let numbers = AtomicUsize::new(options.first);
        let shared = Arc::new(Shared {
            programs,
            memory: ServerMemory::new(options.memory),
            admission: options.key.map(|key| GreetingServer::new(key, options.connections)),
            options,
            account: Account::default(),
            stop: AtomicBool::new(false),
            threads: Mutex::default(),
            connections: AtomicUsize::new(0),
            numbers,
        });
        Self { address, shared, main: Vec::new() }
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts calls with replies that are ready to be sent within the window of `timeline`, and forgets others. Its
    /// programs count over the same window.
    pub fn observe(&self, timeline: &Timeline) {
        self.shared.programs.iter().for_each(|program| program.observe(timeline));
        self.shared.account.observe(timeline);
    }

    /// Returns the counts since the start, or within the window of [`Server::observe`].
    pub fn service(&self) -> Service {
        self.shared.account.service()
    }

    /// Returns the data that its programs carried; `None` if they do not count any.
    pub fn moved(&self) -> Option<Moved> {
        self.shared.moved()
    }

    /// Returns the running counts of its programs' data. It keeps neither server nor programs.
    pub fn meter(&self) -> ServerMeter {
        ServerMeter(Arc::downgrade(&self.shared))
    }

    /// TCP: the connections at the moment.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// When it last sent a reply, by [`linerate_sys::clock::now`]; zero before the first.
    pub fn last_reply(&self) -> u64 {
        self.shared.account.last()
    }

    /// A caller of one of its programs is not done.
    pub fn is_in_use(&self) -> bool {
        self.shared.programs.iter().any(|program| program.is_in_use())
    }

    /// The threads that answer calls at the moment.
    pub fn threads(&self) -> Vec<EngineThread> {
        let mut threads = self.shared.threads.lock().expect("no holder panics").clone();
        threads.sort_by_key(|thread| thread.tid);
        threads
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.main.drain(..) {
            // A panic has been printed by its thread; a destructor must not panic again.
            let _ = thread.join();
        }
    }
}

/// Running counts of the data that a server's programs have carried since their load began.
#[derive(Clone)]
pub struct ServerMeter(Weak<Shared>);

impl ServerMeter {
    /// Returns the data carried; `None` if no program counts any, or the server has ended.
    pub fn moved(&self) -> Option<Moved> {
        self.0.upgrade()?.programs.iter().find_map(|program| program.moved_so_far())
    }
}

/// Room for calls and no bound but UDP's own on their size.
fn prepared(socket: UdpSocket) -> Result<UdpSocket, RpcError> {
    let address = socket.local_addr().map_err(RpcError::socket("getsockname"))?;
    socket::allow_fragments(socket.as_socket(), address.is_ipv6())?;
    if socket::force_receive_buffer(socket.as_socket(), UDP_RECEIVE_BUFFER).is_err() {
        // What the system grants of it will do.
        let _ = SockRef::from(&socket).set_recv_buffer_size(UDP_RECEIVE_BUFFER as usize);
    }
    Ok(socket)
}

fn name(number: usize) -> String {
    format!("answer {number}")
}

fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, RpcError> {
    thread::Builder::new().name(name).spawn(work).map_err(RpcError::socket("starting a thread"))
}

impl Shared {
    fn moved(&self) -> Option<Moved> {
        self.programs.iter().find_map(|program| program.moved())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs `work` as the answering thread of this number, known to [`Server::threads`] for as long.
    fn work(&self, number: usize, work: impl FnOnce()) {
        let cpus = &self.options.cpus;
        if !cpus.is_empty() {
            // A core that is not there leaves the choice to the scheduler.
            let _ = affinity::pin(cpus[number % cpus.len()]);
        }
        sharpen_timers();
        let tid = current_tid();
        let lock = || self.threads.lock().expect("no holder panics");
        lock().push(EngineThread { name: name(number), tid, sends: false });
        work();
        lock().retain(|thread| thread.tid != tid);
    }

    /// Executes the call in `message` and appends the reply to `out`. Returns `None` if there is nothing to answer.
    /// `known` are the callers with accepted tickets; without it, no ticket is accepted.
    fn execute(
        &self,
        message: &[u8],
        (peer, transport): (SocketAddr, Transport),
        arrived_ns: u64,
        known: Option<&mut KnownCallers>,
        out: &mut Vec<u8>,
    ) -> Option<Executed> {
        let stranger = Executed { due: 0, caller: CallerProof::None };
        let call = match read_call(message) {
            Ok(call) => call,
            Err(BadCall::Version(xid)) => {
                put_refused(out, xid, Refused::RpcMismatch { low: 2, high: 2 });
                return Some(stranger);
            }
            Err(BadCall::NoCall) => return None,
        };
        let begin = out.len();
        put_accepted(out, call.xid);
        let is_known = match (&self.admission, known) {
            (Some(admission), Some(known)) => known.admits(admission, peer, call.credential),
            _ => false,
        };
        let executed = match &self.admission {
            Some(admission) if call.to == GREET => admission.answer(call.args, peer).map(|results| {
                out.extend_from_slice(&results);
                Executed { caller: CallerProof::Key, ..stranger }
            }),
            admission => {
                let is_admitted = is_known || admission.is_none();
                let caller = if is_known { CallerProof::KeyAndAddress } else { CallerProof::None };
                self.call(&call, (peer, transport), arrived_ns, is_admitted, out)
                    .map(|due| Executed { due: due.unwrap_or(0), caller })
            }
        };
        Some(executed.unwrap_or_else(|why| {
            out.truncate(begin);
            put_refused(out, call.xid, why);
            if is_known { Executed { caller: CallerProof::KeyAndAddress, ..stranger } } else { stranger }
        }))
    }

    /// Has a program do `call`. Null calls need no admission.
    fn call(
        &self,
        call: &CallMessage<'_>,
        (peer, transport): (SocketAddr, Transport),
        arrived_ns: u64,
        is_admitted: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<u64>, Refused> {
        let mut programs = self.programs.iter().filter(|program| program.number() == call.to.program);
        let program = programs.next().ok_or(Refused::ProgramUnavailable)?;
        let versions = program.versions();
        if !versions.contains(&call.to.version) {
            return Err(Refused::ProgramMismatch { low: *versions.start(), high: *versions.end() });
        }
        if call.to.procedure != 0 && !is_admitted {
            return Err(Refused::BAD_CREDENTIAL);
        }
        let call = Call {
            xid: call.xid,
            version: call.to.version,
            procedure: call.to.procedure,
            args: call.args,
            peer,
            transport,
            arrived_ns,
        };
        program.call(&call, out)
    }

    /// Returns whether a reply to `caller` is counted: replies to strangers are not.
    fn counts(&self, caller: CallerProof) -> bool {
        self.admission.is_none() || caller == CallerProof::KeyAndAddress
    }
}

/// A call that was executed.
#[derive(Debug, Clone, Copy)]
struct Executed {
    /// When the reply is due.
    due: u64,
    caller: CallerProof,
}

/// Proof that a caller has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerProof {
    /// Nothing. Over UDP it may not even have called.
    None,
    /// The caller has shown that it holds the session's key, and still has to show that it reads the reply.
    Key,
    /// The caller holds the key and reads the replies at its address.
    KeyAndAddress,
}

/// Returns the time to wait for the next call when a reply is due at `due`.
fn wait_ns(due: Option<u64>) -> u64 {
    due.map_or(TICK_NS, |due| due.saturating_sub(clock::now()).min(TICK_NS))
}
