//! UDP datagrams.

use super::contract::{
    ATTEMPTS, Arrived, Event, Packets, ProbeId, RouterProbes, is_of_earlier, link_mtu, no_route, set_ttl,
};
use super::echo_service;
use crate::survey::FAR_TTL;
use linerate_engine::{AllowedPeers, DatagramListener, SocketError, failed};
use linerate_sys::datagram_details::{receive_with_details, report_details};
use linerate_sys::echo_requests::EchoRequests;
use linerate_sys::error_queue::{QueuedError, probe_path_mtu, queue_errors, take_error};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::wait_readable;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Length of the headers of IPv4 and UDP, and of IPv6 and UDP, in bytes.
const HEADERS_V4: u32 = 28;
const HEADERS_V6: u32 = 48;

/// Source of the answers of routers.
enum RouterAnswers {
    /// The error queue of the socket.
    ErrorQueue,
    /// Echo requests that the system sends. It reports no answers of routers to datagrams.
    Echo(EchoRequests),
    /// No source: the system reports no answers of routers.
    None,
}

/// Sockets of one end.
pub(crate) struct UdpPackets {
    /// `None` until a peer has greeted at a shared port.
    socket: Option<UdpSocket>,
    /// Listener at a port that sessions share.
    listener: Option<DatagramListener>,
    router_answers: RouterAnswers,
    peer: Option<SocketAddr>,
    is_connected: bool,
    allowed: AllowedPeers,
    local: SocketAddr,
    ttl: u8,
}

impl UdpPackets {
    /// Returns the packets of an end that knows its peer.
    ///
    /// # Errors
    /// There is no route to the peer, or the kernel lacks an option.
    pub(crate) fn to(socket: UdpSocket, peer: SocketAddr) -> Result<Self, SocketError> {
        let router_answers = prepare(&socket, peer.is_ipv6())?;
        socket.connect(peer).map_err(no_route(peer))?;
        let local = socket.local_addr().map_err(failed("getsockname"))?;
        Ok(Self {
            socket: Some(socket),
            listener: None,
            router_answers,
            peer: Some(peer),
            is_connected: true,
            allowed: AllowedPeers::default(),
            local,
            ttl: 0,
        })
    }

    /// Returns the packets of an end that learns its peer from the first packet with the session's key.
    ///
    /// # Errors
    /// The kernel lacks an option.
    pub(crate) fn of(listener: DatagramListener, allowed: AllowedPeers) -> Result<Self, SocketError> {
        let local = listener.address();
        let mut router_answers = RouterAnswers::None;
        let (socket, listener) = match listener.into_socket() {
            Ok(socket) => {
                router_answers = prepare(&socket, local.is_ipv6())?;
                (Some(socket), None)
            }
            Err(listener) => (None, Some(*listener)),
        };
        Ok(Self { socket, listener, router_answers, peer: None, is_connected: false, allowed, local, ttl: 0 })
    }

    /// Takes the oldest ICMP error.
    ///
    /// # Errors
    /// recvmsg(2) fails.
    fn error(&self, into: &mut [u8]) -> Result<Option<QueuedError>, SocketError> {
        let (Some(socket), RouterAnswers::ErrorQueue) = (&self.socket, &self.router_answers) else { return Ok(None) };
        take_error(socket.as_socket(), into).map_err(failed("recvmsg(MSG_ERRQUEUE)"))
    }

    /// Receives a packet without waiting.
    ///
    /// # Errors
    /// recvmsg(2) fails.
    fn receive(&mut self, into: &mut [u8]) -> Result<Option<Arrived>, SocketError> {
        if self.socket.is_none() {
            return self.receive_greeting(into);
        }
        let Some(socket) = &self.socket else { return Ok(None) };
        for _ in 0..ATTEMPTS {
            match receive_with_details(socket, into) {
                Ok(received) => {
                    let from = SocketAddr::new(received.from.ip().to_canonical(), received.from.port());
                    return Ok(Some(Arrived {
                        length: received.length,
                        from,
                        ttl: received.ttl,
                        arrived_unix_ns: received.arrived_unix_ns,
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if is_of_earlier(&error) => {}
                Err(error) => return Err(failed("recvmsg")(error)),
            }
        }
        Ok(None)
    }

    /// Receives the first packet of a peer at a shared port, and opens a socket for it.
    fn receive_greeting(&mut self, into: &mut [u8]) -> Result<Option<Arrived>, SocketError> {
        let Some(listener) = &self.listener else { return Ok(None) };
        let (length, from) = match listener.receive(into) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(failed("recvfrom")(error)),
        };
        if !self.allowed.allow(from.ip()) {
            return Ok(None);
        }
        let socket = listener.connected_to(from)?;
        self.router_answers = prepare(&socket, from.is_ipv6())?;
        (self.socket, self.peer, self.is_connected) = (Some(socket), Some(from), true);
        Ok(Some(Arrived { length, from, ttl: None, arrived_unix_ns: None }))
    }
}

impl Packets for UdpPackets {
    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn local(&self) -> IpAddr {
        self.local.ip().to_canonical()
    }

    fn headers(&self) -> u32 {
        if self.is_v6() { HEADERS_V6 } else { HEADERS_V4 }
    }

    /// Returns `None` if the system does not report packets that are too big for a router.
    fn link_mtu(&self) -> Option<u32> {
        match self.router_answers {
            RouterAnswers::ErrorQueue => link_mtu(self.peer?),
            RouterAnswers::Echo(_) | RouterAnswers::None => None,
        }
    }

    fn router_probes(&self) -> RouterProbes {
        match self.router_answers {
            RouterAnswers::ErrorQueue => RouterProbes::Same,
            RouterAnswers::Echo(_) => RouterProbes::Echo,
            RouterAnswers::None => RouterProbes::None,
        }
    }

    fn send(&mut self, sequence: u32, payload: &[u8], ttl: u8) -> io::Result<u32> {
        let (Some(socket), Some(peer)) = (&self.socket, self.peer) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if ttl < FAR_TTL
            && let RouterAnswers::Echo(requests) = &self.router_answers
        {
            echo_service::send(requests, self.local(), peer, sequence, payload, ttl)?;
            return Ok(self.headers() + payload.len() as u32);
        }
        if self.ttl != ttl {
            let v6 = self.local.is_ipv6();
            set_ttl(socket, ttl, v6, !v6 || peer.ip().to_canonical().is_ipv4())?;
            self.ttl = ttl;
        }
        let mut result = Ok(0);
        for _ in 0..ATTEMPTS {
            result = if self.is_connected { socket.send(payload) } else { socket.send_to(payload, peer) };
            // The error of an earlier packet is reported once.
            if !matches!(&result, Err(error) if is_of_earlier(error)) {
                break;
            }
        }
        result.map(|_| self.headers() + payload.len() as u32)
    }

    fn wait(&self, nanos: u64) -> Result<bool, SocketError> {
        let descriptor = match (&self.socket, &self.listener) {
            (Some(socket), _) => socket.as_socket(),
            (None, Some(listener)) => listener.socket(),
            (None, None) => return Ok(false),
        };
        let mut descriptors = vec![descriptor];
        if let RouterAnswers::Echo(requests) = &self.router_answers {
            descriptors.push(requests.as_socket());
        }
        Ok(wait_readable(&descriptors, nanos)?)
    }

    fn event(&mut self, into: &mut [u8]) -> Result<Option<Event>, SocketError> {
        if let Some(error) = self.error(into)? {
            let payload = 0..error.extension.unwrap_or(error.quoted).min(into.len());
            return Ok(Some(Event::Error { error, probe: ProbeId::Payload(payload) }));
        }
        if let RouterAnswers::Echo(requests) = &self.router_answers
            && let Some(answer) = requests.take(into)
        {
            return Ok(Some(echo_service::event(answer)));
        }
        Ok(self.receive(into)?.map(Event::Packet))
    }

    fn accept(&mut self, from: SocketAddr) -> bool {
        match self.peer {
            Some(peer) => peer == from || self.is_connected,
            None if self.allowed.allow(from.ip()) => {
                self.peer = Some(from);
                true
            }
            None => false,
        }
    }
}

/// Sets the options of a socket of the family `v6`, and returns where answers of routers come from.
fn prepare(socket: &UdpSocket, v6: bool) -> Result<RouterAnswers, SocketError> {
    socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
    let router_answers = match queue_errors(socket.as_socket(), v6) {
        Ok(()) => RouterAnswers::ErrorQueue,
        Err(error) if error.source.kind() == io::ErrorKind::Unsupported => {
            EchoRequests::open(v6).map_or(RouterAnswers::None, RouterAnswers::Echo)
        }
        Err(error) => return Err(error.into()),
    };
    probe_path_mtu(socket.as_socket(), v6)?;
    report_details(socket)?;
    Ok(router_answers)
}
