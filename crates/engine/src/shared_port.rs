//! One port for an agent's API and the data of its sessions, over TCP and UDP.
//!
//! A thread peeks at the first bytes of each connection. A connection that begins with a greeting of a listener is
//! passed to that listener, one that begins as TLS to the API. A datagram with a greeting is passed to its listener
//! too, which creates a socket at the same port, connected to the sender. The kernel delivers further datagrams of that
//! sender to that socket (Linux prefers connected sockets in its lookup).
//!
//! Unauthenticated peers have few places and little time, and get no answer: see [`crate::Strangers`].

use crate::default_congestion::DefaultCongestion;
use crate::error::{SocketError, failed};
use crate::greeting::GREETING;
use crate::inbox::Inbox;
use crate::socket::set_options;
use crate::strangers::{StrangerLimits, Strangers};
use crate::vanished_peer::end_if_vanished;
use crate::zone::own_with_zone;
use linerate_model::{SocketOptions, Transport};
use linerate_sys::event::Event;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::netlink::Route;
use linerate_sys::socket::{SHARES_DATAGRAM_PORTS, accept, share_port, wait_readable};
use linerate_sys::{clock, tcp};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

/// Most connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 4_096;
/// Limits for connections without a whole greeting. A client opens 32 flows of a path at a time.
const STRANGERS: StrangerLimits = StrangerLimits { places: 256, places_each: 128, time_ns: 2_000_000_000 };
/// Most connections that wait in the inbox of a listener.
pub(crate) const WAITING_CONNECTIONS: usize = 4_096;
/// Most datagrams that wait in the inbox of a listener: greetings, which are repeated.
pub(crate) const WAITING_DATAGRAMS: usize = 256;
/// Interval of checking connections with a partial greeting, or that another thread was to accept.
const TICK_NS: u64 = 20_000_000;
/// Longest wait of the thread while it is idle.
const IDLE_NS: u64 = 1_000_000_000;
/// Connections, or datagrams, accepted before the others are read.
const ACCEPT_BATCH: usize = 64;
/// Pause after a call that failed for lack of descriptors or memory, which others may free meanwhile.
const EXHAUSTED_NS: u64 = 1_000_000;

/// First byte of TLS: a record of a handshake (RFC 8446 section 5.1).
const TLS: u8 = 22;
/// First bytes of greetings: see [`crate::greeting`].
const GREETING_MAGIC: [u8; 4] = *b"lnrt";
/// Bytes of the record mark of ONC RPC over TCP (RFC 5531 section 11).
const MARK: usize = 4;
/// Bytes of an RPC call with a greeting.
const CALL: usize = 72;
/// Bytes of an authenticated STAMP test packet (RFC 8762 section 4.2.2), the greeting of probes.
const STAMP: usize = 112;
/// Bytes of the longest greeting.
const LONGEST: usize = MARK + CALL;

/// Handler of connections to the API.
pub type TakesApiConnection = Box<dyn FnMut(TcpStream) + Send>;

/// Port of an agent, TCP and UDP, at which sessions may listen as well.
#[derive(Debug, Clone)]
pub struct SharedPort(Arc<Inner>);

/// Server of a [`SharedPort`]. Dropping it ends the service.
#[derive(Debug)]
pub struct PortServer {
    port: SharedPort,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    /// Address of the listener. IPv4 addresses are not mapped to IPv6.
    address: SocketAddr,
    /// Whether the listener at the unspecified IPv6 address includes IPv4.
    takes_v4: bool,
    listener: TcpListener,
    congestion: DefaultCongestion,
    /// `None` if the system cannot share a port between sockets for datagrams.
    datagrams: Option<UdpSocket>,
    connection_inboxes: Inboxes<TcpStream>,
    datagram_inboxes: Inboxes<Vec<u8>>,
    /// Connections that threads of sessions accepted and that belong to others.
    passed_on: Mutex<Vec<(TcpStream, SocketAddr)>>,
    /// Number of listeners with threads that accept by themselves.
    accepting: AtomicUsize,
    stopped: AtomicBool,
    /// Event that wakes the thread.
    event: Event,
}

/// Inboxes of sessions' listeners. A finished session leaves a weak reference, which is removed when another begins.
#[derive(Debug)]
struct Inboxes<T>(Mutex<Vec<Weak<Inbox<T>>>>);

impl<T> Inboxes<T> {
    fn add(&self, inbox: &Arc<Inbox<T>>) {
        let mut all = self.all();
        all.retain(|inbox| inbox.strong_count() > 0);
        all.push(Arc::downgrade(inbox));
    }

    /// Returns whether `inbox` is the only one. Then it gets each greeting without a check here, because its listener
    /// checks it anyway. Listeners are added before their address is announced.
    fn has_only(&self, inbox: &Inbox<T>) -> bool {
        self.all().iter().all(|other| other.strong_count() == 0 || std::ptr::eq(other.as_ptr(), inbox))
    }

    /// Returns the inbox that is greeted by `bytes`.
    fn find(&self, bytes: &[u8]) -> Option<Arc<Inbox<T>>> {
        let all: Vec<_> = self.all().iter().filter_map(Weak::upgrade).collect();
        all.into_iter().find(|inbox| inbox.is_greeted_by(bytes))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Inbox<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kind of a connection by its first bytes.
enum Beginning {
    /// Too few bytes to decide.
    Incomplete,
    Tls,
    /// Whole greeting with this number of bytes.
    Greeting(usize),
    Invalid,
}

impl PortServer {
    /// Reserves the port of `listener` for datagrams until a server is started, which shares it. The returned socket
    /// should be dropped then, because the kernel delivers a part of the datagrams to it.
    ///
    /// # Errors
    /// `AddrInUse`: another socket has the UDP port.
    pub fn keep_datagram_port(listener: &TcpListener) -> io::Result<UdpSocket> {
        let address = listener.local_addr()?;
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(!takes_v4(listener)?)?;
        }
        socket.bind(&SockAddr::from(address))?;
        if SHARES_DATAGRAM_PORTS {
            // Set only after bind, which would otherwise share the port of another program of this user.
            share_port(socket.as_socket())?;
        }
        Ok(socket.into())
    }

    /// Serves connections to `listener`, and datagrams at its port, until dropped. `api` gets blocking connections that
    /// begin as TLS.
    ///
    /// # Errors
    /// Another program has the UDP port, or no thread can be started.
    pub fn start(listener: TcpListener, api: TakesApiConnection) -> Result<Self, SocketError> {
        let local = listener.local_addr().map_err(failed("getsockname"))?;
        let takes_v4 = takes_v4(&listener).map_err(failed("getsockopt"))?;
        listener.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        SockRef::from(&listener).listen(BACKLOG).map_err(failed(format!("listening on {local}")))?;
        // Connections of sessions inherit the options without another system call.
        set_options(&SockRef::from(&listener), Transport::Tcp, local.is_ipv6(), &SocketOptions::default())?;
        let congestion = DefaultCongestion::of(&listener).map_err(failed("TCP_CONGESTION"))?;
        // Without TCP_DEFER_ACCEPT, with which the kernel would create sockets when the first data arrive, and
        // transactions with a connection each would be a tenth slower (docs/benchmarks.md).
        let remedy = "stop it, choose another port, or name ports of their own for data with --data-ports";
        let mut datagrams = None;
        if SHARES_DATAGRAM_PORTS {
            let socket = sharing(local, takes_v4).map_err(SocketError::listening(local, Transport::Udp, remedy))?;
            datagrams = Some(socket.into());
        }
        let port = SharedPort(Arc::new(Inner {
            address: SocketAddr::new(local.ip().to_canonical(), local.port()),
            takes_v4,
            listener,
            congestion,
            datagrams,
            connection_inboxes: Inboxes(Mutex::default()),
            datagram_inboxes: Inboxes(Mutex::default()),
            passed_on: Mutex::default(),
            accepting: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            event: Event::new().map_err(failed("eventfd"))?,
        }));
        let serving = port.clone();
        let thread = thread::Builder::new().name("port".to_owned()).spawn(move || serving.serve(api));
        Ok(Self { port, thread: Some(thread.map_err(failed("starting a thread"))?) })
    }

    /// Returns the served port.
    pub fn port(&self) -> &SharedPort {
        &self.port
    }
}

impl Drop for PortServer {
    fn drop(&mut self) {
        self.port.0.stopped.store(true, Ordering::Release);
        self.port.0.event.add();
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread.
            let _ = thread.join();
        }
    }
}

/// Returns whether this host has `address`, or its addresses cannot be read.
fn is_local(address: IpAddr) -> bool {
    let addresses = Route::open().and_then(|mut route| route.addresses());
    address.is_loopback() || addresses.map_or(true, |all| all.iter().any(|local| local.address == address))
}

impl SharedPort {
    /// Returns the address at which a listener at `address` is reached, or `None` if the port is at other addresses of
    /// this host.
    ///
    /// An address that this host does not have must be translated on the way to the port, because the request arrived
    /// here.
    pub(crate) fn at(&self, address: IpAddr) -> Option<SocketAddr> {
        let port_address = self.0.address;
        let address = address.to_canonical();
        let has_family = port_address.is_ipv4() == address.is_ipv4() || self.0.takes_v4;
        let is_any = port_address.ip().is_unspecified() && has_family;
        let is_here = port_address.ip() == address || is_any || !is_local(address);
        is_here.then(|| own_with_zone(SocketAddr::new(address, port_address.port())))
    }

    /// Passes connections that greet `inbox` to it, from now on.
    pub(crate) fn add_connections(&self, inbox: &Arc<Inbox<TcpStream>>) {
        self.0.connection_inboxes.add(inbox);
    }

    /// Passes datagrams that greet `inbox` to it, from now on.
    pub(crate) fn add_datagrams(&self, inbox: &Arc<Inbox<Vec<u8>>>) {
        self.0.datagram_inboxes.add(inbox);
    }

    /// Registers a listener with threads that accept by themselves, until [`SharedPort::stops_accepting`].
    pub(crate) fn starts_accepting(&self) {
        self.0.accepting.fetch_add(1, Ordering::Relaxed);
        self.0.event.add();
    }

    /// The reverse of [`SharedPort::starts_accepting`].
    pub(crate) fn stops_accepting(&self) {
        self.0.accepting.fetch_sub(1, Ordering::Relaxed);
        self.0.event.add();
    }

    /// Returns the congestion control of connections that request none.
    pub(crate) fn congestion(&self) -> &DefaultCongestion {
        &self.0.congestion
    }

    /// Returns the socket to wait for before [`SharedPort::accept`].
    pub(crate) fn listener(&self) -> BorrowedSocket<'_> {
        self.0.listener.as_socket()
    }

    /// Accepts a connection that greets `inbox`, or any listener if there is no other. Other connections are left to
    /// the thread of the port.
    pub(crate) fn accept(&self, inbox: &Inbox<TcpStream>) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = accept(&self.0.listener)?;
        let mut bytes = [0; LONGEST];
        if let Beginning::Greeting(length) = beginning(&stream, &mut bytes)
            && (self.0.connection_inboxes.has_only(inbox) || inbox.is_greeted_by(&bytes[..length]))
        {
            return Ok((stream, canonical(peer)));
        }
        self.0.passed_on().push((stream, peer));
        self.0.event.add();
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Connects `socket`, which shares the port and does not block, to `peer`.
    ///
    /// Until it is connected, the kernel delivers datagrams of peers without a connected socket to it. These are passed
    /// to their listeners.
    pub(crate) fn connect(&self, socket: &UdpSocket, peer: SocketAddr) -> io::Result<()> {
        socket.connect(peer)?;
        let mut bytes = [0; STAMP + 1];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            self.dispatch_datagram(&bytes[..length], canonical(from));
        }
        Ok(())
    }

    /// Passes a datagram from `peer` to the listener that it greets.
    fn dispatch_datagram(&self, bytes: &[u8], peer: SocketAddr) {
        let is_greeting = match bytes.len() {
            GREETING => bytes.starts_with(&GREETING_MAGIC),
            length => length == CALL || length == STAMP,
        };
        if let Some(inbox) = is_greeting.then(|| self.0.datagram_inboxes.find(bytes)).flatten() {
            inbox.add(bytes.to_vec(), peer);
        }
    }

    fn serve(&self, mut api: TakesApiConnection) {
        let mut strangers: Strangers<PendingConnection> = Strangers::new(STRANGERS);
        let inner = &*self.0;
        while !inner.stopped.load(Ordering::Acquire) {
            // Threads that accept by themselves have priority; this one accepts connections that they leave.
            let accepts = inner.accepting.load(Ordering::Relaxed) == 0;
            let sockets: Vec<_> = [inner.event.as_socket()]
                .into_iter()
                .chain(inner.datagrams.as_ref().map(|socket| socket.as_socket()))
                .chain(accepts.then(|| inner.listener.as_socket()))
                .chain(strangers.iter().filter(|pending| !pending.is_partial).map(|pending| pending.stream.as_socket()))
                .collect();
            let time = if accepts && strangers.is_empty() { IDLE_NS } else { TICK_NS };
            if wait_readable(&sockets, time).is_err() {
                clock::sleep_until(clock::now() + EXHAUSTED_NS);
            }
            while inner.event.take() {}
            let passed_on = std::mem::take(&mut *inner.passed_on());
            let accepted = (0..ACCEPT_BATCH).map_while(|_| match accept(&inner.listener) {
                Ok(accepted) => Some(accepted),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                // The connection is gone, or descriptors are lacking, which others may free.
                Err(_) => {
                    clock::sleep_until(clock::now() + EXHAUSTED_NS);
                    None
                }
            });
            for (stream, peer) in passed_on.into_iter().chain(accepted) {
                let connection = PendingConnection { stream, peer, is_partial: false };
                if let Some(pending) = inner.dispatch(connection, &mut api) {
                    strangers.take(peer, clock::now(), pending);
                }
            }
            strangers.attend(clock::now(), |pending| inner.dispatch(pending, &mut api));
            self.take_datagrams();
        }
    }

    fn take_datagrams(&self) {
        let Some(socket) = &self.0.datagrams else { return };
        let mut bytes = [0; STAMP + 1];
        for _ in 0..ACCEPT_BATCH {
            match socket.recv_from(&mut bytes) {
                Ok((length, peer)) => self.dispatch_datagram(&bytes[..length], canonical(peer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error of an answer.
                Err(_) => {}
            }
        }
    }
}

/// Connection without a whole greeting.
struct PendingConnection {
    stream: TcpStream,
    peer: SocketAddr,
    /// Whether a part of a greeting has arrived.
    is_partial: bool,
}

impl Inner {
    /// Passes a connection to its listener or the API, or closes it. Returns it while its greeting is incomplete.
    fn dispatch(&self, connection: PendingConnection, api: &mut TakesApiConnection) -> Option<PendingConnection> {
        let mut bytes = [0; LONGEST];
        match beginning(&connection.stream, &mut bytes) {
            Beginning::Incomplete => {
                // Bytes in the socket buffer would end each wait at once.
                let is_partial = tcp::peek(&connection.stream, &mut bytes).is_ok();
                return Some(PendingConnection { is_partial, ..connection });
            }
            Beginning::Tls => {
                // Requests may be delayed by the load of a trial. The call cannot fail.
                let _ = end_if_vanished(&connection.stream);
                api(connection.stream);
            }
            Beginning::Greeting(length) => {
                if let Some(inbox) = self.connection_inboxes.find(&bytes[..length]) {
                    inbox.add(connection.stream, canonical(connection.peer));
                }
            }
            Beginning::Invalid => {}
        }
        None
    }

    fn passed_on(&self) -> MutexGuard<'_, Vec<(TcpStream, SocketAddr)>> {
        self.passed_on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Peeks at the first bytes of `stream`.
fn beginning(stream: &TcpStream, bytes: &mut [u8; LONGEST]) -> Beginning {
    let length = match tcp::peek(stream, bytes) {
        Ok(0) => return Beginning::Invalid,
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Beginning::Incomplete,
        Err(_) => return Beginning::Invalid,
    };
    let bytes = &bytes[..length];
    if bytes[0] == TLS {
        return Beginning::Tls;
    }
    let Some(mark) = bytes.first_chunk::<MARK>() else { return Beginning::Incomplete };
    let whole = match *mark {
        GREETING_MAGIC => GREETING,
        // A single fragment.
        mark if mark == (1_u32 << 31 | CALL as u32).to_be_bytes() => MARK + CALL,
        _ => return Beginning::Invalid,
    };
    if length < whole { Beginning::Incomplete } else { Beginning::Greeting(whole) }
}

/// Returns whether `listener` is an IPv6 listener that accepts IPv4 connections too.
fn takes_v4(listener: &TcpListener) -> io::Result<bool> {
    Ok(listener.local_addr()?.is_ipv6() && !SockRef::from(listener).only_v6()?)
}

/// Creates a socket for datagrams at `address` that shares the port with others of this process.
pub(crate) fn sharing(address: SocketAddr, takes_v4: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!takes_v4)?;
    }
    socket.set_nonblocking(true)?;
    share(&socket, address)?;
    Ok(socket)
}

/// Binds `socket` at `address`, which it shares with others of this process.
pub(crate) fn share(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    share_port(socket.as_socket())?;
    socket.bind(&SockAddr::from(address))
}

/// Converts an IPv4-mapped IPv6 address to IPv4. Other addresses stay as they are.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        v4 @ IpAddr::V4(_) => SocketAddr::new(v4, address.port()),
        // Keeps the scope.
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests;
