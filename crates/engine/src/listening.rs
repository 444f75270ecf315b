//! How a host's ends listen for a trial's data: for whom, and at which ports.

use crate::error::{SocketError, failed};
use crate::inbox::{Greets, Inbox};
use crate::peers::AllowedPeers;
use crate::reply_allowance::StrangerReplies;
use crate::shared_port::{BACKLOG, SharedPort, WAITING_CONNECTIONS, WAITING_DATAGRAMS, share};
use crate::socket::{SocketSpec, check_receive_buffer, set_options, socket};
use crate::zone::own_with_zone;
use linerate_model::{SocketOptions, Transport};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Listens at `address`. All addresses of IPv6 are those of IPv4 too, whatever `net.ipv6.bindv6only` says.
///
/// # Errors
/// See bind(2).
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // As the standard library does: a port whose last connections have just closed can be had.
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Opens what takes connections at `address`, and with it what takes datagrams at the same port. Where the kernel chooses the port, it is
/// one that UDP has free too.
///
/// # Errors
/// Those of `connections` and `datagrams`.
pub fn at_one_port<C, D, E>(
    address: SocketAddr,
    connections: impl Fn(SocketAddr) -> Result<C, E>,
    datagrams: impl Fn(&C) -> Result<D, E>,
) -> Result<(C, D), E> {
    const MOST: usize = 100;
    // Held meanwhile, so that the kernel chooses another one.
    let mut taken = Vec::new();
    loop {
        let opened = connections(address)?;
        match datagrams(&opened) {
            Ok(both) => return Ok((opened, both)),
            Err(_) if address.port() == 0 && taken.len() < MOST => taken.push(opened),
            Err(error) => return Err(error),
        }
    }
}

/// How the ends of a session listen.
#[derive(Debug, Clone, Default)]
pub struct ListenOptions {
    /// Who may open data connections.
    pub peers: AllowedPeers,
    /// The port of the agent, if sessions listen there. Where it is no port of a session's address, `ports` are used.
    pub shared: Option<SharedPort>,
    /// The ports that are listened at otherwise.
    pub ports: DataPorts,
    /// What strangers may be sent.
    pub replies: Arc<StrangerReplies>,
}

impl ListenOptions {
    /// Listens at `address` for connections to sockets as `spec` says. Where others listen at the same port, only those come
    /// whose first bytes are a greeting by `greets`.
    ///
    /// # Errors
    /// A socket cannot have its options, the address is none of this host, or all ports are taken.
    pub fn connections(&self, spec: SocketSpec<'_>, address: IpAddr, greets: Greets) -> Result<Listener, SocketError> {
        // Also where another listener accepts: it finds out what cannot be had.
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

    /// Listens at `address` for datagrams to sockets as `spec` says. Where others listen at the same port, only those come that
    /// are a greeting by `greets`.
    ///
    /// # Errors
    /// As [`ListenOptions::connections`].
    pub fn datagrams(
        &self,
        spec: SocketSpec<'_>,
        address: IpAddr,
        greets: Greets,
    ) -> Result<DatagramListener, SocketError> {
        let (v6, options) = (spec.v6, spec.options.clone());
        // Also where each flow gets a socket of its own later: it finds out what cannot be had.
        let socket = socket(spec)?;
        let Some((port, address)) = self.shared.as_ref().and_then(|port| Some((port, port.at(address)?))) else {
            self.ports.bind_in(&socket, address)?;
            socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
            let socket = UdpSocket::from(socket);
            let address = socket.local_addr().map_err(failed("getsockname"))?;
            return Ok(DatagramListener { address, v6, options, way: DatagramWay::Own(socket, self.ports) });
        };
        let inbox = Arc::new(Inbox::new(greets, WAITING_DATAGRAMS).map_err(failed("eventfd"))?);
        port.add_datagrams(&inbox);
        Ok(DatagramListener { address, v6, options, way: DatagramWay::Shared(port.clone(), inbox) })
    }

    /// Checks that there are as many ports as `sockets` for datagrams of one session.
    ///
    /// # Errors
    /// There are fewer.
    pub fn check_ports(&self, sockets: usize) -> Result<(), SocketError> {
        if self.shared.is_some() { Ok(()) } else { self.ports.check(sockets) }
    }
}

/// Accepts connections of one end of a session. Clones accept the same ones.
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

/// Connections that come to the port of the agent.
#[derive(Debug, Clone)]
struct SharedConnections {
    port: SharedPort,
    inbox: Arc<Inbox<TcpStream>>,
    /// None if they are the plain ones, which the port's own listener hands down.
    options: Option<Arc<SocketOptions>>,
    /// Its threads accept by themselves, for as long as one of them has this.
    accepts: Option<Arc<Accepting>>,
}

/// Told to the port while it lives.
#[derive(Debug)]
struct Accepting(SharedPort);

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.stops_accepting();
    }
}

impl Listener {
    /// Accepts the connections to `listener`, whoever opens them.
    ///
    /// # Errors
    /// It does not listen.
    pub fn of(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { address: listener.local_addr()?, way: Way::Own(Arc::new(listener)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to wait for before [`Listener::accept`].
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let (first, second) = match &self.way {
            Way::Own(listener) => (listener.as_fd(), None),
            Way::Shared(shared) => (shared.inbox.as_fd(), shared.accepts.is_some().then(|| shared.port.listener())),
        };
        [first].into_iter().chain(second)
    }

    /// Takes a connection, which has the options of the session, without waiting.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; otherwise see accept(2).
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.way {
            Way::Own(listener) => listener.accept(),
            Way::Shared(shared) => shared.accept(),
        }
    }

    /// The same for threads that accept very many connections: at a port that is shared they accept by themselves, where
    /// otherwise another thread hands each over.
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
            // A listener of its own would have handed them down.
            let set = set_options(&SockRef::from(&stream), Transport::Tcp, peer.is_ipv6(), options);
            set.map_err(|error| io::Error::new(io::ErrorKind::ConnectionAborted, error))?;
        }
        if self.options.as_ref().is_none_or(|options| options.congestion.is_none()) {
            let given = self.port.congestion().give(&SockRef::from(&stream));
            given.map_err(|error| io::Error::new(io::ErrorKind::ConnectionAborted, error))?;
        }
        Ok((stream, peer))
    }
}

/// Takes the greetings of one end of a session, and makes sockets for those that greeted.
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
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to wait for before [`DatagramListener::receive`].
    pub fn socket(&self) -> BorrowedFd<'_> {
        match &self.way {
            DatagramWay::Own(socket, _) => socket.as_fd(),
            DatagramWay::Shared(_, inbox) => inbox.as_fd(),
        }
    }

    /// Takes a datagram without waiting. Returns its length and its sender.
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

    /// Returns the socket that hears of everybody.
    ///
    /// # Errors
    /// The listener itself: others listen at its port, so that there is no such socket.
    pub fn into_socket(self) -> Result<UdpSocket, Box<Self>> {
        match self.way {
            DatagramWay::Own(socket, _) => Ok(socket),
            way @ DatagramWay::Shared(..) => Err(Box::new(Self { way, ..self })),
        }
    }

    /// Makes a socket that hears of `peer` only, and does not block: at the same port if that is shared, else at one of its own.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn connected_to(&self, peer: SocketAddr) -> Result<UdpSocket, SocketError> {
        let (options, v6) = (&self.options, self.v6);
        let own = socket(SocketSpec { transport: Transport::Udp, v6, options, bind: None, device: false })?;
        own.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        match &self.way {
            DatagramWay::Own(_, ports) => ports.bind_in(&own, self.address.ip())?,
            DatagramWay::Shared(..) => self.share(&own)?,
        }
        let own = UdpSocket::from(own);
        match &self.way {
            DatagramWay::Own(..) => own.connect(peer),
            DatagramWay::Shared(port, _) => port.give_to(&own, peer),
        }
        .map_err(failed(format!("connecting to {peer}")))?;
        Ok(own)
    }

    /// Binds `socket` at the port that is shared. Behind a translation of addresses clients name this host by one that it does not have:
    /// then the route to the client says which of its own it is.
    fn share(&self, socket: &Socket) -> Result<(), SocketError> {
        let any = || match self.address.ip() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = share(socket, self.address).or_else(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable => share(socket, SocketAddr::new(any(), self.address.port())),
            _ => Err(error),
        });
        bound.map_err(failed(format!("binding to {}", self.address)))
    }

    /// Answers a datagram of `peer`, for which `connected` was made: from where the datagram was sent to.
    pub fn answer(&self, connected: &UdpSocket, bytes: &[u8], peer: SocketAddr) {
        // A lost answer is asked for again.
        let _ = match &self.way {
            DatagramWay::Own(socket, _) => socket.send_to(bytes, peer),
            DatagramWay::Shared(..) => connected.send(bytes),
        };
    }
}

/// The ports that trials listen at; the kernel's choice by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataPorts(Option<(u16, u16)>);

impl DataPorts {
    /// Ports below this are those of system services.
    const FIRST: u16 = 1_024;

    /// Binds `socket` at `address` to a free port. One of TCP listens afterwards.
    ///
    /// # Errors
    /// The address is none of this host, or all ports are taken.
    fn bind_in(self, socket: &Socket, address: IpAddr) -> Result<(), SocketError> {
        let is_tcp = socket.r#type().map_err(failed("getsockopt(SO_TYPE)"))? == Type::STREAM;
        let own = own_with_zone(SocketAddr::new(address, 0));
        let bind = |port| {
            let mut own = own;
            own.set_port(port);
            socket.bind(&SockAddr::from(own))
        };
        let binding = || failed(format!("binding to {address} (it must be an address of this host: see `ip address`)"));
        let listen = || if is_tcp { socket.listen(BACKLOG) } else { Ok(()) };
        let Some((first, last)) = self.0 else {
            bind(0).map_err(binding())?;
            return listen().map_err(failed(format!("listening on {address}")));
        };
        // Connections of the trial before may still close: a port is free as soon as nobody listens there. Sockets that may share a
        // port so are found out only when they listen, and then it is too late for another port.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if is_tcp {
            socket.set_reuse_address(true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        }
        for port in first..=last {
            match bind(port) {
                Ok(()) => return listen().map_err(failed(format!("listening on {address}, port {port}"))),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => (),
                Err(error) => return Err(binding()(error)),
            }
        }
        let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
        Err(SocketError::InvalidRequest(format!(
            "all ports {self} ({transport}) of {address} are taken: widen --data-ports, or wait until other trials are over"
        )))
    }

    /// Checks that there are as many ports as `sockets` of one session.
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
        let ends = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.parse().ok().filter(|port| *port >= Self::FIRST);
        match (port(ends.0), port(ends.1)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(Some((first, last)))),
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

    /// An address of loopback at which nobody else takes a port.
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
    fn a_range_is_used_up_and_given_back() {
        for transport in [Transport::Tcp, Transport::Udp] {
            // A port that was free a moment ago, and is the test's own while this socket has it.
            let (held, port) = bound(DataPorts::default(), transport).expect("a port");
            let one = DataPorts(Some((port, port)));
            let error = bound(one, transport).expect_err("it is taken");
            assert!(
                error.contains(&format!("{port}-{port} ({transport})")) && error.contains("--data-ports"),
                "{error}"
            );
            drop(held);
            let (_own, again) = bound(one, transport).expect("free again");
            assert_eq!(again, port);
        }
    }

    #[test]
    fn a_port_whose_last_connection_has_just_closed_is_free() {
        let (_, port) = bound(DataPorts::default(), Transport::Tcp).expect("a port");
        let one = DataPorts(Some((port, port)));
        let (listener, _) = bound(one, Transport::Tcp).expect("a port");
        let client = std::net::TcpStream::connect((here(), port)).expect("connects");
        // Who closes first keeps the port for a minute (TIME_WAIT).
        drop(listener.accept().expect("accepts"));
        drop((client, listener));
        bound(one, Transport::Tcp).expect("free");
    }

    #[test]
    fn ranges_are_read_and_checked() {
        for (text, read) in [("5000-5010", "5000-5010"), ("1024", "1024-1024"), ("1024-65535", "1024-65535")] {
            assert_eq!(text.parse().map(|ports: DataPorts| ports.to_string()), Ok(read.to_owned()));
        }
        for wrong in ["", "-", "5010-5000", "80-90", "5000-", "5000-70000", "5000:5010", "0"] {
            assert!(wrong.parse::<DataPorts>().is_err_and(|error| error.contains("5000-5010")), "{wrong}");
        }
        let ports: DataPorts = "5000-5010".parse().expect("valid");
        ports.check(11).expect("as many");
        let error = ports.check(12).expect_err("one more").to_string();
        assert!(error.contains("12 UDP ports") && error.contains("has 11"), "{error}");
        DataPorts::default().check(60_000).expect("the kernel has more");
    }
}
