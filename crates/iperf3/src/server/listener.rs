//! The port of the service, which assigns connections and datagrams to tests.

use super::running_tests::{AcceptedFlow, ExpectedFlows, Purpose, RunningTests};
use super::test::Test;
use super::{Observer, ServiceLimits};
use crate::control::Cookie;
use crate::flows::{ANSWER, GREETING};
use crate::state::State;
use linerate_engine::{DefaultCongestion, SocketError, Stop, StrangerLimits, Strangers, at_one_port, failed, listen};
use linerate_model::{SocketOptions, Transport};
use linerate_streams::BulkSocket;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::{is_timeout, set_traffic_class, wait_readable};
use linerate_sys::{clock, tcp};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest time until a stop or a timeout is seen.
const TICK_NS: u64 = 20_000_000;
/// Limits for connections that have not named their test.
const STRANGERS: StrangerLimits = StrangerLimits { places: 64, places_each: 32, time_ns: 5_000_000_000 };
/// Connections accepted before their cookies are read. With as many as the places of one address, a client of many
/// flows would close its own first.
const CONNECTIONS_AT_A_TIME: usize = STRANGERS.places_each / 2;
/// First datagrams read at a time.
const DATAGRAMS_AT_A_TIME: usize = 64;
/// Pause after a failed accept for lack of descriptors or memory.
const EXHAUSTED: Duration = Duration::from_millis(1);
/// Remedy for a port that is in use.
const PORT_IN_USE: &str =
    "perhaps `iperf3 -s` or another agent, see `ss -tulnp`; stop it, or choose another port, as in --iperf3 5202";
/// Default receive buffer of a UDP flow, as in `linerate_streams`.
const UDP_RECEIVE_BUFFER: usize = 4 << 20;

/// Server of iperf3's protocol. Dropping it ends its tests.
#[derive(Debug)]
pub struct Iperf3Service {
    address: SocketAddr,
    stop: Arc<Stop>,
    listener: Option<JoinHandle<()>>,
}

impl Iperf3Service {
    /// Serves clients at `address`, TCP and UDP, within `limits`. `observer` sees each test.
    ///
    /// # Errors
    /// The port is taken, or there are no more sockets or threads.
    pub fn start(address: SocketAddr, limits: ServiceLimits, observer: Arc<dyn Observer>) -> Result<Self, SocketError> {
        let (tcp, udp) = at_one_port(
            address,
            |address| listen(address).map_err(SocketError::listening(address, Transport::Tcp, PORT_IN_USE)),
            |tcp: &TcpListener| {
                let address = tcp.local_addr().map_err(failed("getsockname"))?;
                service_socket(address).map_err(SocketError::listening(address, Transport::Udp, PORT_IN_USE))
            },
        )?;
        let address = tcp.local_addr().map_err(failed("getsockname"))?;
        let congestion = DefaultCongestion::of(&tcp).map_err(failed("TCP_CONGESTION"))?;
        tcp.set_nonblocking(true).and_then(|()| udp.set_nonblocking(true)).map_err(failed("fcntl(O_NONBLOCK)"))?;
        let stop = Arc::<Stop>::default();
        let listener = Listener {
            tcp,
            congestion,
            udp,
            accepted: 0,
            limits,
            observer,
            stop: Arc::clone(&stop),
            running_tests: Arc::default(),
            strangers: Strangers::new(STRANGERS),
            threads: Vec::new(),
        };
        let builder = thread::Builder::new().name("iperf3".to_owned());
        let listener = builder.spawn(move || listener.run()).map_err(failed("starting a thread"))?;
        Ok(Self { address, stop, listener: Some(listener) })
    }

    /// Returns the address of the service.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Iperf3Service {
    fn drop(&mut self) {
        self.stop.set("the service ends".to_owned());
        // A panic has been printed by its thread; a destructor must not panic again.
        let _ = self.listener.take().map(JoinHandle::join);
    }
}

struct Listener {
    tcp: TcpListener,
    congestion: DefaultCongestion,
    udp: UdpSocket,
    /// Flows and connections accepted so far.
    accepted: u64,
    limits: ServiceLimits,
    observer: Arc<dyn Observer>,
    stop: Arc<Stop>,
    running_tests: Arc<RunningTests>,
    strangers: Strangers<PendingConnection>,
    threads: Vec<JoinHandle<()>>,
}

/// Connection that has not named its test.
struct PendingConnection {
    number: u64,
    stream: TcpStream,
    peer: IpAddr,
    cookie: [u8; Cookie::BYTES],
    filled: usize,
}

impl Listener {
    fn run(mut self) {
        while !self.stop.is_set() {
            let waiting = wait_readable(&[self.tcp.as_socket(), self.udp.as_socket()], TICK_NS);
            if waiting.is_err() {
                break;
            }
            self.accept();
            self.read_datagrams();
            self.read_cookies();
            self.threads.retain(|test| !test.is_finished());
        }
        for test in self.threads {
            // A panic has been printed by its thread.
            let _ = test.join();
        }
    }

    fn accept(&mut self) {
        for _ in 0..CONNECTIONS_AT_A_TIME {
            let (stream, peer) = match self.tcp.accept() {
                Ok(accepted) => accepted,
                Err(error) if is_timeout(&error) => return,
                // Running tests will close some connections.
                Err(_) => return thread::sleep(EXHAUSTED),
            };
            if self.limits.peers.allow(peer.ip()) && stream.set_nonblocking(true).is_ok() {
                let number = self.next_number();
                let cookie = [0; Cookie::BYTES];
                let pending = PendingConnection { number, stream, peer: peer.ip(), cookie, filled: 0 };
                self.strangers.take(peer, clock::now(), pending);
            }
        }
    }

    fn next_number(&mut self) -> u64 {
        self.accepted += 1;
        self.accepted
    }

    /// Reads the cookies of pending connections.
    fn read_cookies(&mut self) {
        let mut complete = Vec::new();
        self.strangers.attend(clock::now(), |mut pending| {
            match pending.stream.read(&mut pending.cookie[pending.filled..]) {
                Ok(0) => return None,
                Ok(bytes) => pending.filled += bytes,
                Err(error) if is_timeout(&error) => (),
                Err(_) => return None,
            }
            if pending.filled < Cookie::BYTES {
                return Some(pending);
            }
            complete.push(pending);
            None
        });
        for connection in complete {
            self.assign(connection);
        }
    }

    /// Passes a connection to its test, or begins a test.
    fn assign(&mut self, PendingConnection { number, mut stream, peer, cookie, .. }: PendingConnection) {
        // One address leaves room for others.
        let max_per_address = self.limits.max_tests.div_ceil(2).max(1);
        let slot = match self.running_tests.purpose(cookie, peer, self.limits.max_tests) {
            Purpose::Flow(flows, options) => {
                set_options(stream.as_socket(), &options, peer, Some(&self.congestion));
                // A test that has ended meanwhile accepts no flows.
                let _ = flows.send(AcceptedFlow { number, socket: BulkSocket::Tcp(stream) });
                return;
            }
            Purpose::NewTest(slot) if self.running_tests.from(peer) <= max_per_address => slot,
            Purpose::NewTest(_) | Purpose::Full => {
                let _ = stream.write_all(&[State::AccessDenied.byte()]);
                return;
            }
            Purpose::Unexpected => return,
        };
        let test = Test {
            control: stream,
            peer,
            slot,
            limits: self.limits.clone(),
            stop: Arc::clone(&self.stop),
            observer: Arc::clone(&self.observer),
        };
        let builder = thread::Builder::new().name("iperf3 test".to_owned());
        // Without a thread the connection closes.
        if let Ok(thread) = builder.spawn(move || test.serve()) {
            self.threads.push(thread);
        }
    }

    /// Creates a flow for each first datagram.
    fn read_datagrams(&mut self) {
        let mut datagram = [0; 64];
        for _ in 0..DATAGRAMS_AT_A_TIME {
            match self.udp.recv_from(&mut datagram) {
                Ok((length, peer)) if length == GREETING.len() => self.flow(peer),
                Ok(_) => (),
                Err(error) if is_timeout(&error) => return,
                Err(_) => return,
            }
        }
    }

    fn flow(&mut self, peer: SocketAddr) {
        let Some((flows, expected)) = self.running_tests.take_datagram(peer.ip()) else { return };
        // After a failure here, the client gets no answer.
        let Ok(socket) = connected_socket(peer, &expected) else { return };
        if socket.send(&ANSWER).is_ok() {
            let _ = flows.send(AcceptedFlow { number: self.next_number(), socket: BulkSocket::Udp(socket) });
        }
    }
}

/// Creates a UDP socket of the family of `address`.
fn datagram_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

/// Creates the service's UDP socket at `address`. The flows' sockets share its port.
fn service_socket(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = datagram_socket(address)?;
    socket.bind(&SockAddr::from(address))?;
    // Set only after bind, which would otherwise share the port of another program.
    socket.set_reuse_address(true)?;
    Ok(socket.into())
}

/// Creates the socket of a flow, at the service's address and port that the client uses, connected to the client.
///
/// The kernel delivers datagrams of the client to this socket, and all others to the service's socket.
fn connected_socket(peer: SocketAddr, expected: &ExpectedFlows) -> std::io::Result<UdpSocket> {
    let peer = canonical(peer);
    let local = canonical(expected.service);
    let socket = datagram_socket(local)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(local))?;
    let socket = UdpSocket::from(socket);
    set_options(socket.as_socket(), &expected.socket, peer.ip(), None);
    if expected.socket.receive_buffer.is_none() {
        SockRef::from(&socket).set_recv_buffer_size(UDP_RECEIVE_BUFFER)?;
    }
    socket.connect(peer)?;
    Ok(socket)
}

/// Converts an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) to IPv4. Other addresses stay as they are, with
/// their zone.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Sets the options that a client requested, as far as this host allows. iperf3 ignores failures too, and the results
/// report the congestion control.
///
/// Over TCP, `congestion` applies if the client requests none, or one that this host does not have.
fn set_options(
    socket: BorrowedSocket<'_>,
    options: &SocketOptions,
    peer: IpAddr,
    congestion: Option<&DefaultCongestion>,
) {
    let borrowed = SockRef::from(&socket);
    if let Some(dscp) = options.dscp {
        let _ = set_traffic_class(socket, peer.to_canonical().is_ipv6(), dscp << 2);
    }
    if let Some(bytes) = options.send_buffer {
        let _ = borrowed.set_send_buffer_size(bytes.get() as usize);
    }
    if let Some(bytes) = options.receive_buffer {
        let _ = borrowed.set_recv_buffer_size(bytes.get() as usize);
    }
    if let Some(default) = congestion {
        let is_set = options.congestion.as_ref().is_some_and(|name| tcp::set_congestion(socket, name).is_ok());
        if !is_set {
            let _ = default.give(socket);
        }
        let _ = borrowed.set_tcp_nodelay(true);
    }
}
