//! The port: which connections and datagrams belong to which test.

use super::test::Test;
use super::tests_under_way::{AcceptedFlow, Known, TestsUnderWay, Wants};
use super::{Observer, ServiceLimits};
use crate::control::Cookie;
use crate::flows::{ANSWER, GREETING};
use crate::reading::is_timeout;
use crate::state::State;
use linerate_engine::{DefaultCongestion, SocketError, Stop, StrangerLimits, Strangers, at_one_port, failed, listen};
use linerate_model::{SocketOptions, Transport};
use linerate_streams::BulkSocket;
use linerate_sys::clock;
use linerate_sys::socket::wait_readable;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How soon a stop and what is due are seen.
const TICK_NS: u64 = 20_000_000;
/// Connections that have not named their test.
const STRANGERS: StrangerLimits = StrangerLimits { places: 64, places_each: 32, time_ns: 5_000_000_000 };
/// Connections taken before their cookies are read: fewer than one address has places, or a client of many flows would close its own first.
const CONNECTIONS_AT_A_TIME: usize = STRANGERS.places_each / 2;
/// First datagrams taken at a time.
const DATAGRAMS_AT_A_TIME: usize = 64;
/// No connection can be taken, for want of descriptors or memory: as long until the next attempt.
const EXHAUSTED: Duration = Duration::from_millis(1);
/// What to do about a port that is taken.
const TAKEN: &str =
    "perhaps `iperf3 -s` or another agent, see `ss -tulnp`; stop it, or choose another port, as in --iperf3 5202";
/// A UDP flow's buffer unless another is asked for, as for linerate's own streams.
const UDP_RECEIVE_BUFFER: usize = 4 << 20;

/// A server of iperf3's protocol. Dropping it ends its tests.
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
        let listening = |address, transport| SocketError::listening(address, transport, TAKEN);
        let connections = |address| listen(address).map_err(listening(address, Transport::Tcp));
        let datagrams = |tcp: &TcpListener| {
            let address = tcp.local_addr().map_err(failed("getsockname"))?;
            service_socket(address).map_err(listening(address, Transport::Udp))
        };
        let (tcp, udp) = at_one_port(address, connections, datagrams)?;
        let address = tcp.local_addr().map_err(failed("getsockname"))?;
        let congestion = DefaultCongestion::of(&tcp).map_err(failed("TCP_CONGESTION"))?;
        let nonblocking = tcp.set_nonblocking(true).and_then(|()| udp.set_nonblocking(true));
        nonblocking.map_err(failed("fcntl(O_NONBLOCK)"))?;
        let stop = Arc::<Stop>::default();
        let listener = Listener {
            tcp,
            congestion,
            udp,
            accepted: 0,
            limits,
            observer,
            stop: Arc::clone(&stop),
            under_way: Arc::default(),
            strangers: Strangers::new(STRANGERS),
            tests: Vec::new(),
        };
        let named = thread::Builder::new().name("iperf3".to_owned());
        let listener = named.spawn(move || listener.run()).map_err(failed("starting a thread"))?;
        Ok(Self { address, stop, listener: Some(listener) })
    }

    /// Where it listens.
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
    under_way: Arc<TestsUnderWay>,
    strangers: Strangers<Newcomer>,
    tests: Vec<JoinHandle<()>>,
}

/// A connection that has not named its test.
struct Newcomer {
    number: u64,
    stream: TcpStream,
    peer: IpAddr,
    cookie: [u8; Cookie::BYTES],
    filled: usize,
}

impl Listener {
    fn run(mut self) {
        while !self.stop.is_set() {
            let waiting = wait_readable(&[self.tcp.as_fd(), self.udp.as_fd()], TICK_NS);
            if waiting.is_err() {
                break;
            }
            self.accept();
            self.greet();
            self.attend();
            self.tests.retain(|test| !test.is_finished());
        }
        for test in self.tests {
            // A panic has been printed by its thread.
            let _ = test.join();
        }
    }

    fn accept(&mut self) {
        for _ in 0..CONNECTIONS_AT_A_TIME {
            let (stream, peer) = match self.tcp.accept() {
                Ok(accepted) => accepted,
                Err(error) if is_timeout(&error) => return,
                // The tests under way will close some.
                Err(_) => return thread::sleep(EXHAUSTED),
            };
            if self.limits.peers.allow(peer.ip()) && stream.set_nonblocking(true).is_ok() {
                let (number, cookie) = (self.next_number(), [0; Cookie::BYTES]);
                let newcomer = Newcomer { number, stream, peer: peer.ip(), cookie, filled: 0 };
                self.strangers.take(peer, clock::now(), newcomer);
            }
        }
    }

    fn next_number(&mut self) -> u64 {
        self.accepted += 1;
        self.accepted
    }

    /// Reads the cookies of newcomers.
    fn attend(&mut self) {
        let mut named = Vec::new();
        self.strangers.attend(clock::now(), |mut newcomer| {
            match newcomer.stream.read(&mut newcomer.cookie[newcomer.filled..]) {
                Ok(0) => return None,
                Ok(read) => newcomer.filled += read,
                Err(error) if is_timeout(&error) => (),
                Err(_) => return None,
            }
            if newcomer.filled < Cookie::BYTES {
                return Some(newcomer);
            }
            named.push(newcomer);
            None
        });
        for newcomer in named {
            self.place(newcomer);
        }
    }

    /// Gives a connection that has named its test to that test, or begins one.
    fn place(&mut self, Newcomer { number, mut stream, peer, cookie, .. }: Newcomer) {
        // One address leaves room for others.
        let most_each = self.limits.max_tests.div_ceil(2).max(1);
        let place = match self.under_way.take(cookie, peer, self.limits.max_tests) {
            Known::Flow(flows, options) => {
                set_options(&SockRef::from(&stream), &options, peer, Some(&self.congestion));
                // A test that has ended meanwhile takes none.
                let _ = flows.send(AcceptedFlow { number, socket: BulkSocket::Tcp(stream) });
                return;
            }
            Known::Begins(place) if self.under_way.from(peer) <= most_each => place,
            Known::Begins(_) | Known::Full => {
                let _ = stream.write_all(&[State::AccessDenied.byte()]);
                return;
            }
            Known::Stray => return,
        };
        let (limits, stop, observer) = (self.limits.clone(), Arc::clone(&self.stop), Arc::clone(&self.observer));
        let test = Test { control: stream, peer, place, limits, stop, observer };
        let named = thread::Builder::new().name("iperf3 test".to_owned());
        // Without a thread the connection closes.
        if let Ok(test) = named.spawn(move || test.serve()) {
            self.tests.push(test);
        }
    }

    /// Makes a flow of each first datagram.
    fn greet(&mut self) {
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
        let Some((flows, wants)) = self.under_way.take_datagram(peer.ip()) else { return };
        let made = connected_socket(peer, &wants);
        // What fails here the client sees as no answer.
        let Ok(socket) = made else { return };
        if socket.send(&ANSWER).is_ok() {
            let _ = flows.send(AcceptedFlow { number: self.next_number(), socket: BulkSocket::Udp(socket) });
        }
    }
}

/// A UDP socket of the family of `address`.
fn datagram_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

/// The service's UDP socket at `address`, whose port the flows' sockets share.
fn service_socket(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = datagram_socket(address)?;
    socket.bind(&SockAddr::from(address))?;
    // Only now: before, it would take a port that another program's socket shares.
    socket.set_reuse_address(true)?;
    Ok(socket.into())
}

/// A flow's own socket: at the service's address and port that the client uses, connected to the client. The kernel gives it what comes from
/// there, and all else to the service's socket.
fn connected_socket(peer: SocketAddr, wants: &Wants) -> std::io::Result<UdpSocket> {
    let peer = canonical(peer);
    let own = canonical(wants.service);
    let socket = datagram_socket(own)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(own))?;
    let socket = UdpSocket::from(socket);
    let borrowed = SockRef::from(&socket);
    set_options(&borrowed, &wants.socket, peer.ip(), None);
    if wants.socket.receive_buffer.is_none() {
        borrowed.set_recv_buffer_size(UDP_RECEIVE_BUFFER)?;
    }
    socket.connect(peer)?;
    Ok(socket)
}

/// An IPv4 address that an IPv6 socket names (RFC 4291 section 2.5.5.2) as itself. Others stay as they are, with their interface.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Sets what a client asked for, as far as this host allows it. iperf3 does not fail either, and results tell the congestion control.
/// Over TCP, `congestion` is that of a client that asks for none, or for one that this host does not have.
fn set_options(socket: &SockRef<'_>, options: &SocketOptions, peer: IpAddr, congestion: Option<&DefaultCongestion>) {
    if let Some(dscp) = options.dscp {
        let tos = u32::from(dscp) << 2;
        let _ = match peer.to_canonical() {
            IpAddr::V4(_) => socket.set_tos_v4(tos),
            IpAddr::V6(_) => socket.set_tclass_v6(tos),
        };
    }
    if let Some(bytes) = options.send_buffer {
        let _ = socket.set_send_buffer_size(bytes.get() as usize);
    }
    if let Some(bytes) = options.receive_buffer {
        let _ = socket.set_recv_buffer_size(bytes.get() as usize);
    }
    if let Some(default) = congestion {
        let has_asked =
            options.congestion.as_ref().is_some_and(|asked| socket.set_tcp_congestion(asked.as_bytes()).is_ok());
        if !has_asked {
            let _ = default.give(socket);
        }
        let _ = socket.set_tcp_nodelay(true);
    }
}
