//! Socket options that the standard library and socket2 lack, and waits for sockets.

#[cfg(target_os = "macos")]
use crate::netlink::Route;
pub(crate) use crate::socket_option::write_option;
pub use crate::socket_option::{is_timeout, reuse_closed_port, set_traffic_class, share_port};
pub use crate::wait::{wait_for_each, wait_readable, wait_ready, wait_ready_each, wait_writable};
use crate::{Error, path_mtu};
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;

/// The system has no ENONET: the name has the closest number.
pub use libc::ENETDOWN as ENONET;
/// Further error numbers of ICMP messages.
pub use libc::{EACCES, ECONNRESET, EHOSTDOWN, EHOSTUNREACH, ENETRESET, ENETUNREACH, ENOPROTOOPT, EOPNOTSUPP, EPROTO};
/// Error numbers that senders distinguish and `io::ErrorKind` does not name.
pub use libc::{ECONNREFUSED, EINPROGRESS, EIO, EMFILE, EMSGSIZE, ENFILE, ENOBUFS, ENOMEM};

/// Size of a buffer as the kernel reports it, per byte requested.
pub const BUFFER_FACTOR: usize = 1;
/// Sockets of one process can share a UDP port (SO_REUSEPORT), and the kernel delivers a datagram to the one that is connected to its sender.
pub const SHARES_DATAGRAM_PORTS: bool = true;

/// Returns `None`: the system does not count the drops of a socket.
///
/// # Errors
/// None on this system.
pub fn drops(_socket: BorrowedFd<'_>) -> Result<Option<u32>, Error> {
    Ok(None)
}

/// Sends and receives by the interface `name` only (IP_BOUND_IF, IPV6_BOUND_IF).
///
/// # Errors
/// There is no such interface.
#[cfg(target_os = "macos")]
pub fn bind_device(socket: BorrowedFd<'_>, v6: bool, name: &str) -> io::Result<()> {
    let links = Route::open().and_then(|mut route| route.links()).map_err(|error| error.source)?;
    let index = links.iter().find(|link| link.name == name).ok_or(io::ErrorKind::NotFound)?.index;
    let index = std::num::NonZeroU32::new(index);
    let socket = SockRef::from(&socket);
    if v6 { socket.bind_device_by_index_v6(index) } else { socket.bind_device_by_index_v4(index) }
}

/// Fails: FreeBSD has no such option.
///
/// # Errors
/// Always, with `Unsupported`.
#[cfg(target_os = "freebsd")]
pub fn bind_device(_socket: BorrowedFd<'_>, _v6: bool, _name: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Accepts a connection of a listener that does not block. The connection does: accept(2) passes the mode of the listener on.
///
/// # Errors
/// See accept(2).
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept()?;
    stream.set_nonblocking(false)?;
    Ok((stream, peer))
}

/// Lets `socket` share the port of a multicast group with programs of any user. The kernel delivers to each the groups only that it joins
/// itself.
///
/// # Errors
/// The kernel refuses an option.
pub fn share_multicast_port(socket: BorrowedFd<'_>, _v6: bool) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)
}

/// Returns the MTU of the interface by which a connected socket sends, in bytes: the system does not report that of the path.
///
/// # Errors
/// The socket is not connected.
pub fn path_mtu(socket: BorrowedFd<'_>, _v6: bool) -> Result<u32, Error> {
    path_mtu::of_interface(socket)
}

/// Lets IP cut packets above the MTU into fragments instead of refusing them.
///
/// # Errors
/// The system refuses the option.
pub fn allow_fragments(socket: BorrowedFd<'_>, v6: bool) -> Result<(), Error> {
    forbid_fragments(socket, v6, false)
}

/// Makes IP send packets with DF, or not.
pub(super) fn forbid_fragments(socket: BorrowedFd<'_>, v6: bool, forbid: bool) -> Result<(), Error> {
    let value = i32::from(forbid);
    if v6 {
        write_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, &value, "setsockopt(IPV6_DONTFRAG)")
    } else {
        write_option(socket, libc::IPPROTO_IP, libc::IP_DONTFRAG, &value, "setsockopt(IP_DONTFRAG)")
    }
}

/// Sets the receive buffer in bytes. The limit, `kern.ipc.maxsockbuf`, holds for root as well.
///
/// # Errors
/// The system refuses the size.
pub fn force_receive_buffer(socket: BorrowedFd<'_>, bytes: i32) -> Result<(), Error> {
    write_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes, "setsockopt(SO_RCVBUF)")
}

/// Sets the send buffer in bytes. The limit, `kern.ipc.maxsockbuf`, holds for root as well.
///
/// # Errors
/// The system refuses the size.
pub fn force_send_buffer(socket: BorrowedFd<'_>, bytes: i32) -> Result<(), Error> {
    write_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes, "setsockopt(SO_SNDBUF)")
}
