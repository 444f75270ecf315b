//! Interface of the kinds of packets, and what they share.

use linerate_engine::{SocketError, SocketSpec, failed};
use linerate_model::{SocketOptions, Transport};
use linerate_sys::error_queue::{QueuedError, queue_errors};
use linerate_sys::handle::{AsSocket, BorrowedSocket};
use linerate_sys::netlink::Route;
use linerate_sys::socket::{
    EACCES, ECONNREFUSED, ECONNRESET, EHOSTDOWN, EHOSTUNREACH, EMSGSIZE, ENETRESET, ENETUNREACH, ENONET, ENOPROTOOPT,
    EOPNOTSUPP, EPROTO, bind_device, set_traffic_class,
};
use socket2::{SockRef, Socket};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;

/// Largest IPv4 packet (RFC 791 section 3.1). The MTU of a loopback interface is larger.
const MAX_PACKET: u32 = 65_535;
/// Attempts at a call that fails with an ICMP error of an earlier packet.
pub(super) const ATTEMPTS: u32 = 4;

/// Packets of one end. Calls do not block, except [`Packets::wait`].
pub(crate) trait Packets: Send {
    /// Returns the peer. `None` until the first packet of the peer has arrived.
    fn peer(&self) -> Option<SocketAddr>;

    /// Returns the local address.
    fn local(&self) -> IpAddr;

    /// Returns whether packets are IPv6.
    fn is_v6(&self) -> bool {
        self.peer().map_or(self.local(), |peer| peer.ip()).to_canonical().is_ipv6()
    }

    /// Returns the length of the headers before the payload in bytes, IP header included.
    fn headers(&self) -> u32;

    /// Returns the MTU of the first link. `None` if the kernel does not know it, or packets of this kind cannot search for the path
    /// MTU.
    fn link_mtu(&self) -> Option<u32> {
        link_mtu(self.peer()?)
    }

    /// Returns how routers are probed.
    fn router_probes(&self) -> RouterProbes {
        RouterProbes::Same
    }

    /// Sends the probe `sequence` with this TTL to the peer. Returns the length of the IP packet in bytes.
    ///
    /// # Errors
    /// The packet is larger than the first link's MTU, or cannot be sent.
    fn send(&mut self, sequence: u32, payload: &[u8], ttl: u8) -> io::Result<u32>;

    /// Waits until something arrives, for `nanos` at the most.
    ///
    /// # Errors
    /// ppoll(2) fails.
    fn wait(&self, nanos: u64) -> Result<bool, SocketError>;

    /// Takes the next event, ICMP errors first. Writes its packet to `into`. Returns `None` if there is no event.
    ///
    /// # Errors
    /// recvmsg(2) fails.
    fn event(&mut self, into: &mut [u8]) -> Result<Option<Event>, SocketError>;

    /// Accepts the sender of a packet with the session's key as the peer. Returns whether it is the peer.
    fn accept(&mut self, from: SocketAddr) -> bool {
        self.peer() == Some(from)
    }
}

/// Packets that probe routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouterProbes {
    /// The packets that probe the far end.
    Same,
    /// ICMP echo requests: the system reports no answers of routers to the others.
    Echo,
    /// None: the system reports no answers of routers.
    None,
}

/// Something that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// ICMP error that the kernel matched to the socket.
    Error {
        /// The error. Its extensions lie in the buffer.
        error: QueuedError,
        /// The probe that caused it.
        probe: ProbeId,
    },
    /// STAMP test packet of the peer.
    Packet(Arrived),
    /// Answer of the far end's operating system.
    Reply {
        /// Arrival of the answer.
        arrived: Arrived,
        /// The probe that it answers.
        probe: ProbeId,
    },
}

/// Reference to a probe in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeId {
    /// Range of the buffer with the payload of the probe, from its beginning on.
    Payload(Range<usize>),
    /// Number of the probe.
    Sequence(u32),
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Length of the packet in the buffer, in bytes.
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    pub(crate) ttl: Option<u8>,
    pub(crate) arrived_unix_ns: Option<u64>,
}

/// Client of a host.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Address and port of the host.
    pub(crate) peer: SocketAddr,
    /// Whether an agent or a reflector answers UDP at the port. The operating system of another host answers that the port is closed.
    pub(crate) has_reflector: bool,
    /// Socket options of the probes.
    pub(crate) options: SocketOptions,
}

impl Client {
    pub(super) fn spec(&self, transport: Transport) -> SocketSpec<'_> {
        let bind = self.options.bind_address.map(|address| SocketAddr::new(address, 0));
        SocketSpec { transport, v6: self.peer.is_ipv6(), options: &self.options, bind, device: true }
    }

    /// Returns the local address of packets to the peer.
    ///
    /// # Errors
    /// There is no route to the peer.
    pub(super) fn local(&self) -> Result<IpAddr, SocketError> {
        // A datagram socket finds it without a packet.
        let any = self.options.bind_address.unwrap_or(unspecified(self.peer.is_ipv6()));
        let route = UdpSocket::bind(SocketAddr::new(any, 0)).map_err(failed(format!("binding to {any}")))?;
        route.connect(self.peer).map_err(no_route(self.peer))?;
        Ok(route.local_addr().map_err(failed("getsockname"))?.ip())
    }

    /// Sets the options that ICMP sockets have as well: DSCP, interface and local address.
    pub(super) fn prepare_icmp(&self, socket: &Socket) -> Result<(), SocketError> {
        if let Some(dscp) = self.options.dscp {
            set_traffic_class(socket.as_socket(), self.peer.is_ipv6(), dscp << 2)
                .map_err(failed(format!("setting DSCP {dscp}")))?;
        }
        if let Some(device) = &self.options.bind_device {
            let what = format!("binding to interface {device} (is it there? see `ip link`)");
            bind_device(socket.as_socket(), self.peer.is_ipv6(), device).map_err(failed(what))?;
        }
        if let Some(address) = self.options.bind_address {
            let what = format!("binding to {address} (it must be an address of this host: see `ip address`)");
            socket.bind(&SocketAddr::new(address, 0).into()).map_err(failed(what))?;
        }
        Ok(())
    }
}

/// Returns the MTU of the first link to `peer`. `None` if the kernel does not know it.
pub(super) fn link_mtu(peer: SocketAddr) -> Option<u32> {
    // IP_MTU of a socket is what the kernel knows of the path: an ICMP message, which anybody can forge, lowers it for ten minutes.
    let mut route = Route::open().ok()?;
    let interface = match peer {
        SocketAddr::V6(peer) if peer.scope_id() != 0 => peer.scope_id(),
        _ => route.outgoing(peer.ip().to_canonical()).ok()??,
    };
    let link = route.links().ok()?.into_iter().find(|link| link.index == interface)?;
    Some(link.mtu.min(MAX_PACKET))
}

/// Makes the system report ICMP errors with the packets that they quote.
///
/// # Errors
/// The system does not.
pub(super) fn require_errors(socket: BorrowedSocket<'_>, v6: bool) -> Result<(), SocketError> {
    queue_errors(socket, v6).map_err(|error| match error.source.kind() {
        io::ErrorKind::Unsupported => SocketError::InvalidRequest(
            "this host's system does not report which router answered such a packet: leave the packets to linerate"
                .to_owned(),
        ),
        _ => error.into(),
    })
}

pub(super) fn unspecified(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
}

/// Sets the TTL or hop limit of the packets that a socket sends. `v6` is the socket's family, `v4_too` whether it sends IPv4.
pub(super) fn set_ttl(socket: &impl AsSocket, ttl: u8, v6: bool, v4_too: bool) -> io::Result<()> {
    let socket = socket.as_socket();
    let socket = SockRef::from(&socket);
    if v6 {
        socket.set_unicast_hops_v6(ttl.into())?;
    }
    if v4_too {
        socket.set_ttl_v4(ttl.into())?;
    }
    Ok(())
}

/// Error numbers of ICMP and ICMPv6 messages (`icmp_err_convert` in net/ipv4/icmp.c, `icmpv6_err_convert` in net/ipv6/icmp.c, and the
/// error handlers of UDP and raw sockets). Windows has WSAECONNRESET for "port unreachable", and WSAENETRESET for "time exceeded". Anybody
/// can forge one.
const ICMP_ERRORS: [i32; 12] = [
    EACCES,
    ECONNREFUSED,
    ECONNRESET,
    EHOSTDOWN,
    EHOSTUNREACH,
    EMSGSIZE,
    ENETRESET,
    ENETUNREACH,
    ENONET,
    ENOPROTOOPT,
    EOPNOTSUPP,
    EPROTO,
];

/// Returns whether an error of a call may belong to an earlier packet: an ICMP message, which an error queue has in full. The next call
/// succeeds then.
pub(super) fn is_of_earlier(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
        || error.raw_os_error().is_some_and(|number| ICMP_ERRORS.contains(&number))
}

/// Creates the error of connecting to `peer` from its cause.
pub(super) fn no_route(peer: SocketAddr) -> impl FnOnce(io::Error) -> SocketError {
    failed(format!("connecting to {peer} (is there a route? see `ip route get {}`)", peer.ip()))
}
