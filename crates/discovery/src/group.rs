//! Sockets that send to the multicast group on one link and read nothing else.

use linerate_sys::handle::AsSocket as _;
use linerate_sys::netlink::Route;
use linerate_sys::socket::share_multicast_port;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// The port of multicast DNS.
const PORT: u16 = 5353;
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
/// Longest message, in bytes (RFC 6762 section 17).
pub(crate) const MAX_MESSAGE: usize = 9_000;

/// A network interface that is up, and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    index: u32,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Link {
    /// Returns the links of this host, except loopback.
    pub(crate) fn all() -> Result<Vec<Self>, linerate_sys::Error> {
        let mut route = Route::open()?;
        let addresses = route.addresses()?;
        let links = route.links()?.into_iter().filter(|link| link.up && !link.loopback);
        let with_addresses = |index| {
            let own = addresses.iter().filter(|address| address.link == index);
            Self { index, addresses: own.map(|address| address.address).collect() }
        };
        Ok(links.map(|link| with_addresses(link.index)).collect())
    }
}

/// A socket in the multicast group on one link.
#[derive(Debug)]
pub(crate) struct GroupSocket {
    pub(crate) socket: UdpSocket,
    group: SocketAddr,
}

impl GroupSocket {
    /// Joins the IPv4 group and the IPv6 group on `link`, as far as it has addresses of that family and multicast.
    pub(crate) fn join(link: &Link) -> Vec<Self> {
        let v4 = link.addresses.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(Self::join_v4(link.index, address)),
            IpAddr::V6(_) => None,
        });
        let has_v6 = link.addresses.iter().any(IpAddr::is_ipv6);
        let v6 = has_v6.then(|| Self::join_v6(link.index));
        v4.into_iter().chain(v6).filter_map(Result::ok).collect()
    }

    fn join_v4(link: u32, address: &Ipv4Addr) -> io::Result<Self> {
        let socket = shared_socket(Domain::IPV4)?;
        let group = SocketAddr::from((GROUP_V4, PORT));
        // Bound to the group: datagrams to an address of this host never come here.
        socket.bind(&SockAddr::from(group))?;
        socket.join_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(link))?;
        socket.set_multicast_if_v4(address)?;
        socket.set_multicast_ttl_v4(255)?;
        Ok(Self { socket: socket.into(), group })
    }

    fn join_v6(link: u32) -> io::Result<Self> {
        let socket = shared_socket(Domain::IPV6)?;
        socket.set_only_v6(true)?;
        let group = SocketAddr::from(SocketAddrV6::new(GROUP_V6, PORT, 0, link));
        socket.bind(&SockAddr::from(group))?;
        socket.join_multicast_v6(&GROUP_V6, link)?;
        socket.set_multicast_if_v6(link)?;
        socket.set_multicast_hops_v6(255)?;
        Ok(Self { socket: socket.into(), group })
    }

    /// Sends a message to the group. One that cannot be sent is lost, as on the network.
    pub(crate) fn send(&self, message: &[u8]) {
        let _ = self.socket.send_to(message, self.group);
    }

    /// Returns the next message that has arrived. `None` if there is no more.
    pub(crate) fn receive<'a>(&self, buffer: &'a mut [u8; MAX_MESSAGE]) -> Option<&'a [u8]> {
        let length = self.socket.recv(buffer).ok()?;
        Some(&buffer[..length])
    }
}

/// Makes a socket whose port other responders of this host can share.
fn shared_socket(family: Domain) -> io::Result<Socket> {
    let socket = Socket::new(family, Type::DGRAM, Some(Protocol::UDP))?;
    share_multicast_port(socket.as_socket(), family == Domain::IPV6)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
