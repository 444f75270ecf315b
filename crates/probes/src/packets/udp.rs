//! UDP datagrams.

use super::contract::{ATTEMPTS, Arrived, Event, Packets, ProbeId, is_of_earlier, no_route, set_ttl};
use linerate_engine::{AllowedPeers, DatagramListener, SocketError, failed};
use linerate_sys::datagram_details::{receive_with_details, report_details};
use linerate_sys::error_queue::{QueuedError, probe_path_mtu, queue_errors, take_error};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::wait_readable;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Length of the headers of IPv4 and UDP, and of IPv6 and UDP, in bytes.
const HEADERS_V4: u32 = 28;
const HEADERS_V6: u32 = 48;

/// Sockets of one end.
pub(crate) struct UdpPackets {
    /// `None` until a peer has greeted at a shared port.
    socket: Option<UdpSocket>,
    /// Listener at a port that sessions share.
    listener: Option<DatagramListener>,
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
        prepare(&socket, peer.is_ipv6())?;
        socket.connect(peer).map_err(no_route(peer))?;
        let local = socket.local_addr().map_err(failed("getsockname"))?;
        Ok(Self {
            socket: Some(socket),
            listener: None,
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
        let (socket, listener) = match listener.into_socket() {
            Ok(socket) => {
                prepare(&socket, local.is_ipv6())?;
                (Some(socket), None)
            }
            Err(listener) => (None, Some(*listener)),
        };
        Ok(Self { socket, listener, peer: None, is_connected: false, allowed, local, ttl: 0 })
    }

    /// Takes the oldest ICMP error.
    ///
    /// # Errors
    /// recvmsg(2) fails.
    fn error(&self, into: &mut [u8]) -> Result<Option<QueuedError>, SocketError> {
        let Some(socket) = &self.socket else { return Ok(None) };
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
        prepare(&socket, from.is_ipv6())?;
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

    fn send(&mut self, _sequence: u32, payload: &[u8], ttl: u8) -> io::Result<u32> {
        let (Some(socket), Some(peer)) = (&self.socket, self.peer) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
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
        Ok(wait_readable(&[descriptor], nanos)?)
    }

    fn event(&mut self, into: &mut [u8]) -> Result<Option<Event>, SocketError> {
        if let Some(error) = self.error(into)? {
            let payload = 0..error.extension.unwrap_or(error.quoted).min(into.len());
            return Ok(Some(Event::Error { error, probe: ProbeId::Payload(payload) }));
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

fn prepare(socket: &UdpSocket, v6: bool) -> Result<(), SocketError> {
    socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
    queue_errors(socket.as_socket(), v6)?;
    probe_path_mtu(socket.as_socket(), v6)?;
    report_details(socket)?;
    Ok(())
}
