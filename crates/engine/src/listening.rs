//! Listeners of a host's ends for a trial's data: allowed peers and ports.

use crate::error::{SocketError, failed};
use crate::inbox::{Greets, Inbox};
use crate::peers::AllowedPeers;
use crate::reply_allowance::StrangerReplies;
use crate::shared_port::{BACKLOG, SharedPort, WAITING_CONNECTIONS, WAITING_DATAGRAMS, share};
use crate::socket::{SocketSpec, check_receive_buffer, set_options, socket};
use crate::zone::own_with_zone;
use linerate_model::{SocketOptions, Transport};
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::{SHARES_DATAGRAM_PORTS, accept, reuse_closed_port};
use linerate_sys::udp::ignore_unreachable;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Listens at `address`. The unspecified IPv6 address includes IPv4, whatever the value of `net.ipv6.bindv6only`.
///
/// # Errors
/// See bind(2).
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // As in the standard library: a port stays usable after its last connections have closed.
    reuse_closed_port(socket.as_socket())?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Opens a listener for connections at `address`, and a socket for datagrams at the same port. If the kernel chooses
/// the port, it is free for both.
///
/// # Errors
/// Those of `connections` and `datagrams`.
pub fn at_one_port<C, D, E>(
    address: SocketAddr,
    connections: impl Fn(SocketAddr) -> Result<C, E>,
    datagrams: impl Fn(&C) -> Result<D, E>,
) -> Result<(C, D), E> {
    const MAX_ATTEMPTS: usize = 100;
    // Kept open, so that the kernel chooses another port.
    let mut rejected = Vec::new();
    loop {
        let opened = connections(address)?;
        match datagrams(&opened) {
            Ok(both) => return Ok((opened, both)),
            Err(_) if address.port() == 0 && rejected.len() < MAX_ATTEMPTS => rejected.push(opened),
            Err(error) => return Err(error),
        }
    }
}

/// Listening options of the ends of a session.
#[derive(Debug, Clone, Default)]
pub struct ListenOptions {
    /// Peers that may open data connections.
    pub peers: AllowedPeers,
    /// Port of the agent, if sessions listen there. If it is not at a session's address, `ports` are used.
    pub shared: Option<SharedPort>,
    /// Ports of other listeners.
    pub ports: DataPorts,
    /// Allowance for replies to callers without a key.
    pub replies: Arc<StrangerReplies>,
}

impl ListenOptions {
    /// Listens at `address` for connections, with sockets of `spec`. At a shared port, only connections arrive here
    /// that begin with a greeting accepted by `greets`.
    ///
    /// # Errors
    /// A socket cannot have its options, the address does not belong to this host, or all ports are in use.
    pub fn connections(&self, spec: SocketSpec<'_>, address: IpAddr, greets: Greets) -> Result<Listener, SocketError> {
        // Created even if another listener accepts, to check the options.
        let socket = socket(spec)?;
        let shared = self.shared.as_ref().and_then(|port| Some((port, port.at(address)?)));
        let Some((port, address)) = shared else {
            self.ports.bind_in(&socket, address)?;
            return Listener::of(socket.into()).map_err(failed(format!("listening on {address}")));
        };
        check_receive_buffer(spec.options)?;
        let inbox = Arc::new(Inbox::new(greets, WAITING_CONNECTIONS).map_err(failed("eventfd"))?);
        port.add_connections(&inbox);
        let options = (*spec.options != SocketOptions::default()).then(|| Arc::new(spec.options.clone()));
        Ok(Listener {
            address,
            way: Way::Shared(SharedConnections { port: port.clone(), inbox, options, accepts: None }),
        })
    }

    /// Listens at `address` for datagrams, with sockets of `spec`. At a shared port, only greetings accepted by
    /// `greets` arrive here.
    ///
    /// # Errors
    /// See [`ListenOptions::connections`].
    pub fn datagrams(
        &self,
        spec: SocketSpec<'_>,
        address: IpAddr,
        greets: Greets,
    ) -> Result<DatagramListener, SocketError> {
        let v6 = spec.v6;
        let options = spec.options.clone();
        // Created even if each flow gets its own socket later, to check the options.
        let socket = socket(spec)?;
        let shared = self.shared.as_ref().filter(|_| SHARES_DATAGRAM_PORTS);
        let Some((port, address)) = shared.and_then(|port| Some((port, port.at(address)?))) else {
            self.ports.bind_in(&socket, address)?;
            socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
            let socket = UdpSocket::from(socket);
            ignore_unreachable(&socket).map_err(failed("ignoring ICMP"))?;
            let address = socket.local_addr().map_err(failed("getsockname"))?;
            return Ok(DatagramListener { address, v6, options, way: DatagramWay::Own(socket, self.ports) });
        };
        let inbox = Arc::new(Inbox::new(greets, WAITING_DATAGRAMS).map_err(failed("eventfd"))?);
        port.add_datagrams(&inbox);
        Ok(DatagramListener { address, v6, options, way: DatagramWay::Shared(port.clone(), inbox) })
    }

    /// Checks that there are enough ports for `sockets` for datagrams of one session.
    ///
    /// # Errors
    /// There are fewer.
    pub fn check_ports(&self, sockets: usize) -> Result<(), SocketError> {
        if self.shared.is_some() && SHARES_DATAGRAM_PORTS { Ok(()) } else { self.ports.check(sockets) }
    }
}

/// Listener for connections of one end of a session. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Listener {
    address: SocketAddr,
    way: Way,
}

#[derive(Debug, Clone)]
enum Way {
    Own(Arc<TcpListener>),
    Shared(SharedConnections),
}

/// Connections at the port of the agent.
#[derive(Debug, Clone)]
struct SharedConnections {
    port: SharedPort,
    inbox: Arc<Inbox<TcpStream>>,
    /// `None` for the default options, which connections inherit from the port's listener.
    options: Option<Arc<SocketOptions>>,
    /// Guard of threads that accept by themselves.
    accepts: Option<Arc<Accepting>>,
}

/// Guard that registers a listener at the port whose threads accept by themselves.
#[derive(Debug)]
struct Accepting(SharedPort);

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.stops_accepting();
    }
}

impl Listener {
    /// Creates a listener for all connections to `listener`.
    ///
    /// # Errors
    /// The socket does not listen.
    pub fn of(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { address: listener.local_addr()?, way: Way::Own(Arc::new(listener)) })
    }

    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the sockets to wait for before [`Listener::accept`].
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedSocket<'_>> {
        let (first, second) = match &self.way {
            Way::Own(listener) => (listener.as_socket(), None),
            Way::Shared(shared) => (shared.inbox.as_socket(), shared.accepts.is_some().then(|| shared.port.listener())),
        };
        [first].into_iter().chain(second)
    }

    /// Accepts a connection with the options of the session, without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; otherwise see accept(2).
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.way {
            Way::Own(listener) => accept(listener),
            Way::Shared(shared) => shared.accept(),
        }
    }

    /// Returns the same listener for threads with very many connections. At a shared port they accept by themselves,
    /// instead of receiving each connection from another thread.
    #[must_use]
    pub fn for_many(mut self) -> Self {
        if let Way::Shared(shared) = &mut self.way {
            shared.port.starts_accepting();
            shared.accepts = Some(Arc::new(Accepting(shared.port.clone())));
        }
        self
    }
}

impl SharedConnections {
    fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = match self.inbox.take() {
            Some(accepted) => Ok(accepted),
            None if self.accepts.is_some() => self.port.accept(&self.inbox),
            None => Err(io::ErrorKind::WouldBlock.into()),
        };
        let (stream, peer) = accepted?;
        if let Some(options) = &self.options {
            // A separate listener would have passed them on.
            let result = set_options(&SockRef::from(&stream), Transport::Tcp, peer.is_ipv6(), options);
            result.map_err(|error| io::Error::new(io::ErrorKind::ConnectionAborted, error))?;
        }
        if self.options.as_ref().is_none_or(|options| options.congestion.is_none()) {
            let result = self.port.congestion().give(stream.as_socket());
            result.map_err(|error| io::Error::new(io::ErrorKind::ConnectionAborted, error))?;
        }
        Ok((stream, peer))
    }
}

/// Listener for greetings of one end of a session, which creates sockets for peers that greeted.
#[derive(Debug)]
pub struct DatagramListener {
    address: SocketAddr,
    v6: bool,
    options: SocketOptions,
    way: DatagramWay,
}

#[derive(Debug)]
enum DatagramWay {
    Own(UdpSocket, DataPorts),
    Shared(SharedPort, Arc<Inbox<Vec<u8>>>),
}

impl DatagramListener {
    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the socket to wait for before [`DatagramListener::receive`].
    pub fn socket(&self) -> BorrowedSocket<'_> {
        match &self.way {
            DatagramWay::Own(socket, _) => socket.as_socket(),
            DatagramWay::Shared(_, inbox) => inbox.as_socket(),
        }
    }

    /// Receives a datagram without waiting. Returns its length and its sender.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; otherwise see recvfrom(2).
    pub fn receive(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match &self.way {
            DatagramWay::Own(socket, _) => socket.recv_from(into),
            DatagramWay::Shared(_, inbox) => {
                let (bytes, peer) = inbox.take().ok_or(io::ErrorKind::WouldBlock)?;
                let length = bytes.len().min(into.len());
                into[..length].copy_from_slice(&bytes[..length]);
                Ok((length, peer))
            }
        }
    }

    /// Returns the socket that receives from all peers.
    ///
    /// # Errors
    /// Returns the listener itself if its port is shared.
    pub fn into_socket(self) -> Result<UdpSocket, Box<Self>> {
        match self.way {
            DatagramWay::Own(socket, _) => Ok(socket),
            way @ DatagramWay::Shared(..) => Err(Box::new(Self { way, ..self })),
        }
    }

    /// Creates a non-blocking socket connected to `peer`: at the same port if that is shared, otherwise at another one.
    ///
    /// # Errors
    /// The socket cannot be created, bound or connected.
    pub fn connected_to(&self, peer: SocketAddr) -> Result<UdpSocket, SocketError> {
        let spec =
            SocketSpec { transport: Transport::Udp, v6: self.v6, options: &self.options, bind: None, device: false };
        let socket = socket(spec)?;
        socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        match &self.way {
            DatagramWay::Own(_, ports) => ports.bind_in(&socket, self.address.ip())?,
            DatagramWay::Shared(..) => self.share(&socket)?,
        }
        let socket = UdpSocket::from(socket);
        match &self.way {
            DatagramWay::Own(..) => socket.connect(peer),
            DatagramWay::Shared(port, _) => port.connect(&socket, peer),
        }
        .map_err(failed(format!("connecting to {peer}")))?;
        Ok(socket)
    }

    /// Binds `socket` at the shared port. Behind a NAT, clients may use an address that this host does not have. Then
    /// the route to the client decides the local address.
    fn share(&self, socket: &Socket) -> Result<(), SocketError> {
        let mut result = share(socket, self.address);
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable) {
            let any = match self.address.ip() {
                IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            result = share(socket, SocketAddr::new(any, self.address.port()));
        }
        result.map_err(failed(format!("binding to {}", self.address)))
    }

    /// Answers a datagram of `peer` from the address that it was sent to. `connected` is the socket created for `peer`.
    pub fn answer(&self, connected: &UdpSocket, bytes: &[u8], peer: SocketAddr) {
        // The peer repeats its request after a lost answer.
        let _ = match &self.way {
            DatagramWay::Own(socket, _) => socket.send_to(bytes, peer),
            DatagramWay::Shared(..) => connected.send(bytes),
        };
    }
}

/// Ports of trials' listeners, by default the kernel's choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataPorts(Option<(u16, u16)>);

impl DataPorts {
    /// First port above those of system services.
    const FIRST: u16 = 1_024;

    /// Binds `socket` at `address` to a free port. A TCP socket listens afterwards.
    ///
    /// # Errors
    /// The address does not belong to this host, or all ports are in use.
    fn bind_in(self, socket: &Socket, address: IpAddr) -> Result<(), SocketError> {
        let is_tcp = socket.r#type().map_err(failed("getsockopt(SO_TYPE)"))? == Type::STREAM;
        let mut local = own_with_zone(SocketAddr::new(address, 0));
        let binding = format!("binding to {address} (it must be an address of this host: see `ip address`)");
        let Some((first, last)) = self.0 else {
            socket.bind(&SockAddr::from(local)).map_err(failed(binding))?;
            if is_tcp {
                socket.listen(BACKLOG).map_err(failed(format!("listening on {address}")))?;
            }
            return Ok(());
        };
        // Connections of the previous trial may still be closing, so a port is free as soon as nobody listens there.
        // With this option, a conflict of two sockets shows only in listen(2), too late for another port.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if is_tcp {
            reuse_closed_port(socket.as_socket()).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        }
        for port in first..=last {
            local.set_port(port);
            match socket.bind(&SockAddr::from(local)) {
                Ok(()) if is_tcp => {
                    return socket.listen(BACKLOG).map_err(failed(format!("listening on {address}, port {port}")));
                }
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => (),
                Err(error) => return Err(failed(binding)(error)),
            }
        }
        let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
        Err(SocketError::InvalidRequest(format!(
            "all ports {self} ({transport}) of {address} are taken: widen --data-ports, or wait until other trials are over"
        )))
    }

    /// Checks that there are enough ports for `sockets` of one session.
    ///
    /// # Errors
    /// There are fewer.
    fn check(self, sockets: usize) -> Result<(), SocketError> {
        match self.0.map(|(first, last)| usize::from(last - first) + 1) {
            Some(ports) if ports < sockets => Err(SocketError::InvalidRequest(format!(
                "this trial takes {sockets} UDP ports of this host, one for each flow and listener, and --data-ports {self} has {ports}: \
                 widen it there, or use fewer flows"
            ))),
            _ => Ok(()),
        }
    }
}

impl FromStr for DataPorts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if Self::FIRST <= first && first <= last => Ok(Self(Some((first, last)))),
            _ => Err(format!("expected ports from {} on, the lower one first, as in 5000-5010", Self::FIRST)),
        }
    }
}

impl fmt::Display for DataPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((first, last)) => write!(f, "{first}-{last}"),
            None => f.write_str("of the kernel's choice"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::Protocol;

    /// Returns a loopback address that no other process uses.
    fn here() -> IpAddr {
        let [.., high, low] = std::process::id().to_be_bytes();
        Ipv4Addr::new(127, 99, high, low).into()
    }

    fn bound(ports: DataPorts, transport: Transport) -> Result<(Socket, u16), String> {
        let (kind, protocol) = match transport {
            Transport::Tcp => (Type::STREAM, Protocol::TCP),
            Transport::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let socket = Socket::new(Domain::IPV4, kind, Some(protocol)).expect("a socket");
        ports.bind_in(&socket, here()).map_err(|error| error.to_string())?;
        let port = socket.local_addr().expect("bound").as_socket().expect("of the Internet").port();
        Ok((socket, port))
    }

    #[test]
    fn ports_of_a_range_are_used_and_freed() {
        for transport in [Transport::Tcp, Transport::Udp] {
            // The port belongs to this test while the socket is open.
            let (socket, port) = bound(DataPorts::default(), transport).expect("a port");
            let one = DataPorts(Some((port, port)));
            let error = bound(one, transport).expect_err("it is in use");
            assert!(
                error.contains(&format!("{port}-{port} ({transport})")) && error.contains("--data-ports"),
                "{error}"
            );
            drop(socket);
            let (_socket, free_port) = bound(one, transport).expect("free again");
            assert_eq!(free_port, port);
        }
    }

    #[test]
    fn port_is_free_right_after_its_last_connection() {
        let (_, port) = bound(DataPorts::default(), Transport::Tcp).expect("a port");
        let one = DataPorts(Some((port, port)));
        let (listener, _) = bound(one, Transport::Tcp).expect("a port");
        let client = std::net::TcpStream::connect((here(), port)).expect("connects");
        // The side that closes first keeps the port for a minute (TIME_WAIT).
        drop(listener.accept().expect("accepts"));
        drop((client, listener));
        bound(one, Transport::Tcp).expect("free");
    }

    #[test]
    fn ranges_are_read_and_checked() {
        for (text, ports) in [("5000-5010", "5000-5010"), ("1024", "1024-1024"), ("1024-65535", "1024-65535")] {
            assert_eq!(text.parse().map(|ports: DataPorts| ports.to_string()), Ok(ports.to_owned()));
        }
        for wrong in ["", "-", "5010-5000", "80-90", "5000-", "5000-70000", "5000:5010", "0"] {
            assert!(wrong.parse::<DataPorts>().is_err_and(|error| error.contains("5000-5010")), "{wrong}");
        }
        let ports: DataPorts = "5000-5010".parse().expect("valid");
        ports.check(11).expect("enough");
        let error = ports.check(12).expect_err("one more").to_string();
        assert!(error.contains("12 UDP ports") && error.contains("has 11"), "{error}");
        DataPorts::default().check(60_000).expect("the kernel has more");
    }
}
