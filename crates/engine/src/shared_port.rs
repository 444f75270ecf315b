//! One port for all: an agent's API and the data of its sessions, over TCP and UDP.
//!
//! A thread looks at the first bytes of each connection and leaves them where they are. A greeting with the key of a listener goes
//! to that listener, and what begins as TLS to the API. Then the connection is theirs: nothing stands between them and the kernel.
//! A datagram with a greeting goes to its listener too, which makes a socket at the same port that is connected to the sender. The
//! kernel hands further datagrams of that sender to that socket (Linux: the lookup prefers connected sockets).
//!
//! Strangers have few places and little time, and are told nothing: see [`crate::Strangers`].

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
use linerate_sys::netlink::Route;
use linerate_sys::socket::wait_readable;
use linerate_sys::{clock, tcp};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

/// Connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 4_096;
/// Connections that have yet to show what they are. A client opens 32 flows of a path at a time.
const STRANGERS: StrangerLimits = StrangerLimits { places: 256, places_each: 128, time_ns: 2_000_000_000 };
/// Connections of a listener that wait to be taken.
pub(crate) const WAITING_CONNECTIONS: usize = 4_096;
/// Datagrams of a listener that wait to be taken: greetings, which are repeated.
pub(crate) const WAITING_DATAGRAMS: usize = 256;
/// How soon a connection is looked at again that has sent half of a greeting, or that another thread was to accept.
const TICK_NS: u64 = 20_000_000;
/// How soon the thread looks around when nothing is to come but what wakes it.
const IDLE_NS: u64 = 1_000_000_000;
/// Connections, or datagrams, taken before the others are looked at.
const AT_ONCE: usize = 64;
/// After a call that failed for want of descriptors or memory: others may give some back.
const EXHAUSTED_NS: u64 = 1_000_000;

/// The first byte of TLS: a record of a handshake (RFC 8446 section 5.1).
const TLS: u8 = 22;
/// How greetings of linerate's own protocols begin: see [`crate::greeting`].
const OWN: [u8; 4] = *b"lnrt";
/// Bytes of the mark before a call of ONC RPC over TCP (RFC 5531 section 11).
const MARK: usize = 4;
/// Bytes of a call that greets: the longest greeting there is.
const CALL: usize = 72;
/// No greeting is longer.
const LONGEST: usize = MARK + CALL;

/// What takes connections to the API.
pub type TakesApiConnection = Box<dyn FnMut(TcpStream) + Send>;

/// The port of an agent, TCP and UDP, at which sessions may listen as well.
#[derive(Debug, Clone)]
pub struct SharedPort(Arc<Inner>);

/// Serves a [`SharedPort`] for as long as it lives.
#[derive(Debug)]
pub struct PortServer {
    port: SharedPort,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    /// Where it listens; IPv4 addresses are not mapped to IPv6.
    address: SocketAddr,
    /// The listener at all IPv6 addresses listens at those of IPv4 too.
    takes_v4: bool,
    listener: TcpListener,
    congestion: DefaultCongestion,
    datagrams: UdpSocket,
    connection_inboxes: Inboxes<TcpStream>,
    datagram_inboxes: Inboxes<Vec<u8>>,
    /// Connections that threads of sessions accepted and that are none of theirs.
    passed_on: Mutex<Vec<(TcpStream, SocketAddr)>>,
    /// Listeners whose threads accept by themselves.
    accepting: AtomicUsize,
    stopped: AtomicBool,
    /// Wakes the thread.
    event: Event,
}

/// The listeners of sessions. A session that is over leaves nothing but a weak reference, which goes when another begins.
#[derive(Debug)]
struct Inboxes<T>(Mutex<Vec<Weak<Inbox<T>>>>);

impl<T> Inboxes<T> {
    fn add(&self, inbox: &Arc<Inbox<T>>) {
        let mut all = self.all();
        all.retain(|inbox| inbox.strong_count() > 0);
        all.push(Arc::downgrade(inbox));
    }

    /// Whether no other listener is there: `inbox` is told of each greeting then, and reads it anyway. Listeners are added before anybody
    /// knows where to greet them.
    fn has_only(&self, inbox: &Inbox<T>) -> bool {
        self.all().iter().all(|known| known.strong_count() == 0 || std::ptr::eq(known.as_ptr(), inbox))
    }

    /// The listener that is greeted by `bytes`.
    fn find(&self, bytes: &[u8]) -> Option<Arc<Inbox<T>>> {
        let all: Vec<_> = self.all().iter().filter_map(Weak::upgrade).collect();
        all.into_iter().find(|inbox| inbox.is_greeted_by(bytes))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Inbox<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the first bytes of a connection show.
enum Shown {
    /// Too few of them to tell.
    Nothing,
    Tls,
    /// A whole greeting for somebody, of so many bytes.
    Greeting(usize),
    Nonsense,
}

impl PortServer {
    /// Keeps the port of `listener` for datagrams until a server is started, which shares it. Drop it as soon as the server is
    /// started, because the kernel gives it a part of the datagrams.
    ///
    /// # Errors
    /// `AddrInUse`: another socket has the port of UDP.
    pub fn keep_datagram_port(listener: &TcpListener) -> io::Result<UdpSocket> {
        let address = listener.local_addr()?;
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(!takes_v4(listener)?)?;
        }
        socket.bind(&SockAddr::from(address))?;
        // Only now: one that shares its port would be given that of another program of this user which shares its own.
        socket.set_reuse_port(true)?;
        Ok(socket.into())
    }

    /// Takes connections to `listener`, and datagrams at its port, until dropped. `api` is given those that begin as TLS. They block.
    ///
    /// # Errors
    /// Another program has the port of UDP, or no thread can be started.
    pub fn start(listener: TcpListener, api: TakesApiConnection) -> Result<Self, SocketError> {
        let local = listener.local_addr().map_err(failed("getsockname"))?;
        let takes_v4 = takes_v4(&listener).map_err(failed("getsockopt"))?;
        listener.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        SockRef::from(&listener).listen(BACKLOG).map_err(failed(format!("listening on {local}")))?;
        // Handed down to each connection of a session, which costs no call of the kernel then.
        set_options(&SockRef::from(&listener), Transport::Tcp, local.is_ipv6(), &SocketOptions::default())?;
        let congestion = DefaultCongestion::of(&listener).map_err(failed("TCP_CONGESTION"))?;
        // Without TCP_DEFER_ACCEPT: the kernel would make the socket of each connection when its first data come, and transactions
        // with a connection each would be a tenth slower (docs/benchmarks.md).
        let remedy = "stop it, choose another port, or name ports of their own for data with --data-ports";
        let datagrams =
            sharing(local, takes_v4).map_err(|error| SocketError::listening(local, Transport::Udp, remedy)(error))?;
        let port = SharedPort(Arc::new(Inner {
            address: SocketAddr::new(local.ip().to_canonical(), local.port()),
            takes_v4,
            listener,
            congestion,
            datagrams: datagrams.into(),
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

    /// The port that it serves.
    pub fn port(&self) -> &SharedPort {
        &self.port
    }
}

impl Drop for PortServer {
    fn drop(&mut self) {
        self.port.0.stopped.store(true, Ordering::Release);
        self.port.0.event.add();
        if let Some(thread) = self.thread.take() {
            // Its own panic has been printed.
            let _ = thread.join();
        }
    }
}

/// Returns whether this host has `address`. It has it if its addresses cannot be read.
fn is_own(address: IpAddr) -> bool {
    let addresses = Route::open().and_then(|mut route| route.addresses());
    address.is_loopback() || addresses.map_or(true, |all| all.iter().any(|own| own.address == address))
}

impl SharedPort {
    /// Returns where a listener at `address` is reached, or `None` if the port is at other addresses of this host.
    ///
    /// An address that this host does not have is translated on the way to the port, or the connection would not have come.
    pub(crate) fn at(&self, address: IpAddr) -> Option<SocketAddr> {
        let (own, address) = (self.0.address, address.to_canonical());
        let is_any = own.ip().is_unspecified() && (own.is_ipv4() == address.is_ipv4() || self.0.takes_v4);
        let is_here = own.ip() == address || is_any || !is_own(address);
        is_here.then(|| own_with_zone(SocketAddr::new(address, own.port())))
    }

    /// Gives `inbox` the connections that greet it, from now on.
    pub(crate) fn add_connections(&self, inbox: &Arc<Inbox<TcpStream>>) {
        self.0.connection_inboxes.add(inbox);
    }

    /// Gives `inbox` the datagrams that greet it, from now on.
    pub(crate) fn add_datagrams(&self, inbox: &Arc<Inbox<Vec<u8>>>) {
        self.0.datagram_inboxes.add(inbox);
    }

    /// The threads of one more listener accept by themselves, until [`SharedPort::stops_accepting`].
    pub(crate) fn starts_accepting(&self) {
        self.0.accepting.fetch_add(1, Ordering::Relaxed);
        self.0.event.add();
    }

    /// The reverse of [`SharedPort::starts_accepting`].
    pub(crate) fn stops_accepting(&self) {
        self.0.accepting.fetch_sub(1, Ordering::Relaxed);
        self.0.event.add();
    }

    /// What its connections get that ask for no congestion control.
    pub(crate) fn congestion(&self) -> &DefaultCongestion {
        &self.0.congestion
    }

    /// What to wait for before [`SharedPort::accept`].
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.0.listener.as_fd()
    }

    /// Accepts a connection that greets `inbox`, or anybody if no other listener is there. Any other is left to the thread of the port.
    pub(crate) fn accept(&self, inbox: &Inbox<TcpStream>) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.0.listener.accept()?;
        let mut bytes = [0; LONGEST];
        if let Shown::Greeting(length) = shown(&stream, &mut bytes)
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
    /// Until it is connected, the kernel gives it datagrams of those that have no socket of theirs. They go where they belong;
    /// those of peers that have one never come here.
    pub(crate) fn give_to(&self, socket: &UdpSocket, peer: SocketAddr) -> io::Result<()> {
        socket.connect(peer)?;
        let mut bytes = [0; LONGEST + 1];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            self.sort_datagram(&bytes[..length], canonical(from));
        }
        Ok(())
    }

    /// Hands a datagram from `peer` to the listener that it greets.
    fn sort_datagram(&self, bytes: &[u8], peer: SocketAddr) {
        let is_greeting = match bytes.len() {
            GREETING => bytes.starts_with(&OWN),
            length => length == CALL,
        };
        if let Some(inbox) = is_greeting.then(|| self.0.datagram_inboxes.find(bytes)).flatten() {
            inbox.add(bytes.to_vec(), peer);
        }
    }

    fn serve(&self, mut api: TakesApiConnection) {
        let mut strangers: Strangers<Unsorted> = Strangers::new(STRANGERS);
        let inner = &*self.0;
        while !inner.stopped.load(Ordering::Acquire) {
            // Threads that accept by themselves are first, and this one sees that nobody waits for long.
            let accepts = inner.accepting.load(Ordering::Relaxed) == 0;
            let sockets: Vec<_> = [inner.event.as_fd(), inner.datagrams.as_fd()]
                .into_iter()
                .chain(accepts.then(|| inner.listener.as_fd()))
                .chain(strangers.iter().filter(|stranger| !stranger.has_spoken).map(|stranger| stranger.stream.as_fd()))
                .collect();
            let time = if accepts && strangers.is_empty() { IDLE_NS } else { TICK_NS };
            if wait_readable(&sockets, time).is_err() {
                clock::sleep_until(clock::now() + EXHAUSTED_NS);
            }
            while inner.event.take() {}
            let passed_on = std::mem::take(&mut *inner.passed_on());
            let accepted = (0..AT_ONCE).map_while(|_| match inner.listener.accept() {
                Ok(accepted) => Some(accepted),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                // It went away again, or there is no descriptor for it: others may give some back.
                Err(_) => {
                    clock::sleep_until(clock::now() + EXHAUSTED_NS);
                    None
                }
            });
            let mut sort = |unsorted| inner.sort(unsorted, &mut api);
            for (stream, peer) in passed_on.into_iter().chain(accepted) {
                if let Some(unsorted) = sort(Unsorted { stream, peer, has_spoken: false }) {
                    strangers.take(peer, clock::now(), unsorted);
                }
            }
            strangers.attend(clock::now(), sort);
            self.take_datagrams();
        }
    }

    fn take_datagrams(&self) {
        let mut bytes = [0; LONGEST + 1];
        for _ in 0..AT_ONCE {
            match self.0.datagrams.recv_from(&mut bytes) {
                Ok((length, peer)) => self.sort_datagram(&bytes[..length], canonical(peer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Word of ICMP about an answer.
                Err(_) => {}
            }
        }
    }
}

/// A connection of which nobody knows yet whose it is.
struct Unsorted {
    stream: TcpStream,
    peer: SocketAddr,
    /// Something came, and it is no whole greeting.
    has_spoken: bool,
}

impl Inner {
    /// Hands a connection to whom it is for; closes one that is for nobody. Returns it while that cannot be told.
    fn sort(&self, unsorted: Unsorted, api: &mut TakesApiConnection) -> Option<Unsorted> {
        let mut bytes = [0; LONGEST];
        match shown(&unsorted.stream, &mut bytes) {
            Shown::Nothing => {
                // What is there already would end each wait at once.
                let has_spoken = tcp::peek(&unsorted.stream, &mut bytes).is_ok();
                return Some(Unsorted { has_spoken, ..unsorted });
            }
            Shown::Tls => {
                // Requests may wait behind the load of a trial. It cannot fail.
                let _ = end_if_vanished(&unsorted.stream);
                api(unsorted.stream);
            }
            Shown::Greeting(length) => {
                if let Some(inbox) = self.connection_inboxes.find(&bytes[..length]) {
                    inbox.add(unsorted.stream, canonical(unsorted.peer));
                }
            }
            Shown::Nonsense => {}
        }
        None
    }

    fn passed_on(&self) -> MutexGuard<'_, Vec<(TcpStream, SocketAddr)>> {
        self.passed_on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what `stream` begins with, and leaves it there.
fn shown(stream: &TcpStream, bytes: &mut [u8; LONGEST]) -> Shown {
    let length = match tcp::peek(stream, bytes) {
        Ok(0) => return Shown::Nonsense,
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Shown::Nothing,
        Err(_) => return Shown::Nonsense,
    };
    let said = &bytes[..length];
    if said[0] == TLS {
        return Shown::Tls;
    }
    let Some(begin) = said.first_chunk::<MARK>() else { return Shown::Nothing };
    let whole = match *begin {
        OWN => GREETING,
        // One fragment, which is the last.
        mark if mark == (1_u32 << 31 | CALL as u32).to_be_bytes() => MARK + CALL,
        _ => return Shown::Nonsense,
    };
    if length < whole { Shown::Nothing } else { Shown::Greeting(whole) }
}

/// Whether `listener` is one of IPv6 that takes connections of IPv4 too.
fn takes_v4(listener: &TcpListener) -> io::Result<bool> {
    Ok(listener.local_addr()?.is_ipv6() && !SockRef::from(listener).only_v6()?)
}

/// A socket for datagrams at `address` that shares the port with others of this process.
pub(crate) fn sharing(address: SocketAddr, takes_v4: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!takes_v4)?;
    }
    socket.set_nonblocking(true)?;
    share(&socket, address)?;
    Ok(socket)
}

/// Binds `socket` at `address`, where this process has others.
pub(crate) fn share(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    socket.set_reuse_port(true)?;
    socket.bind(&SockAddr::from(address))
}

/// The same address and port; an IPv4 address that is mapped to IPv6 is one of IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        v4 @ IpAddr::V4(_) => SocketAddr::new(v4, address.port()),
        // With its scope.
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests;
