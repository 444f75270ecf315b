//! Packets of one end: UDP datagrams with a TTL of their own, and the errors that they bring back.

use linerate_engine::{AllowedPeers, DatagramListener, SocketError, failed};
use linerate_sys::datagram_details::{receive_with_details, report_details};
use linerate_sys::error_queue::{QueuedError, probe_path_mtu, queue_errors, take_error};
use linerate_sys::socket::{ECONNREFUSED, path_mtu, wait_readable};
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

/// Bytes of the headers of IPv4 and UDP.
const HEADERS_V4: u32 = 28;
/// Bytes of the headers of IPv6 and UDP.
const HEADERS_V6: u32 = 48;
/// Attempts at a call that fails with an ICMP error of an earlier packet.
const ATTEMPTS: u32 = 4;

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    pub(crate) ttl: Option<u8>,
    pub(crate) arrived_unix_ns: Option<u64>,
}

/// Sockets of one end.
pub(crate) struct Packets {
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

impl Packets {
    /// Returns the packets of an end that knows its peer.
    ///
    /// # Errors
    /// There is no route to the peer, or the kernel lacks an option.
    pub(crate) fn to(socket: UdpSocket, peer: SocketAddr) -> Result<Self, SocketError> {
        prepare(&socket, peer.is_ipv6())?;
        socket
            .connect(peer)
            .map_err(failed(format!("connecting to {peer} (is there a route? see `ip route get {}`)", peer.ip())))?;
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

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub(crate) fn local(&self) -> IpAddr {
        self.local.ip().to_canonical()
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.peer.unwrap_or(self.local).ip().to_canonical().is_ipv6()
    }

    /// Returns the bytes of the headers before the payload.
    pub(crate) fn headers(&self) -> u32 {
        if self.is_v6() { HEADERS_V6 } else { HEADERS_V4 }
    }

    /// Returns the MTU of the first link. `None` if the kernel does not know it.
    pub(crate) fn link_mtu(&self) -> Option<u32> {
        let peer = self.peer?;
        // A new socket that probes sees the MTU of the link, whatever is known of the path.
        let any: SocketAddr = if peer.is_ipv6() { "[::]:0".parse().ok()? } else { "0.0.0.0:0".parse().ok()? };
        let socket = UdpSocket::bind(any).ok()?;
        probe_path_mtu(socket.as_fd(), peer.is_ipv6()).ok()?;
        socket.connect(peer).ok()?;
        path_mtu(socket.as_fd(), peer.is_ipv6()).ok()
    }

    /// Sends a packet with this TTL to the peer.
    ///
    /// # Errors
    /// The packet is larger than the first link's MTU, or cannot be sent.
    pub(crate) fn send(&mut self, payload: &[u8], ttl: u8) -> io::Result<()> {
        let (Some(socket), Some(peer)) = (&self.socket, self.peer) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if self.ttl != ttl {
            let raw = SockRef::from(socket);
            if self.local.is_ipv6() {
                raw.set_unicast_hops_v6(ttl.into())?;
            }
            if !self.local.is_ipv6() || peer.ip().to_canonical().is_ipv4() {
                raw.set_ttl_v4(ttl.into())?;
            }
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
        result.map(|_| ())
    }

    /// Waits until something arrives, for `nanos` at the most.
    ///
    /// # Errors
    /// ppoll(2) fails.
    pub(crate) fn wait(&self, nanos: u64) -> Result<bool, SocketError> {
        let descriptor = match (&self.socket, &self.listener) {
            (Some(socket), _) => socket.as_fd(),
            (None, Some(listener)) => listener.socket(),
            (None, None) => return Ok(false),
        };
        Ok(wait_readable(&[descriptor], nanos)?)
    }

    /// Takes the oldest ICMP error.
    ///
    /// # Errors
    /// recvmsg(2) fails.
    pub(crate) fn error(&self, into: &mut [u8]) -> Result<Option<QueuedError>, SocketError> {
        let Some(socket) = &self.socket else { return Ok(None) };
        take_error(socket.as_fd(), into).map_err(failed("recvmsg(MSG_ERRQUEUE)"))
    }

    /// Receives a packet without waiting.
    ///
    /// # Errors
    /// recvmsg(2) fails.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Result<Option<Arrived>, SocketError> {
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

    /// Accepts the sender of a packet with the session's key as the peer. Returns whether it is the peer.
    pub(crate) fn accept(&mut self, from: SocketAddr) -> bool {
        match self.peer {
            Some(peer) => peer == from || self.is_connected,
            None if self.allowed.allow(from.ip()) => {
                self.peer = Some(from);
                true
            }
            None => false,
        }
    }

    /// Returns the payload of a probe in what a router quotes after the transport header.
    pub(crate) fn quoted_payload<'a>(&self, quoted: &'a [u8]) -> &'a [u8] {
        quoted
    }

    /// Returns whether a packet is an ICMP echo reply.
    pub(crate) fn is_echo_reply(&self, _bytes: &[u8]) -> bool {
        false
    }
}

/// Returns whether an error of a call belongs to an earlier packet: an ICMP message that the error queue has in full.
fn is_of_earlier(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ECONNREFUSED)
        || matches!(
            error.kind(),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::PermissionDenied
        )
}

fn prepare(socket: &UdpSocket, v6: bool) -> Result<(), SocketError> {
    socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
    queue_errors(socket.as_fd(), v6)?;
    probe_path_mtu(socket.as_fd(), v6)?;
    report_details(socket)?;
    Ok(())
}
