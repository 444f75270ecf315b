//! Socket options that the standard library and socket2 lack.

use crate::Error;
use crate::socket_option::Plain;
pub use crate::socket_option::{is_timeout, reuse_closed_port, set_traffic_class, share_port};
pub(crate) use crate::socket_option::{read_option, write_option};
pub use crate::wait::{wait_for_each, wait_readable, wait_ready, wait_ready_each, wait_writable};
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;

/// Further error numbers of ICMP messages (`icmp_err_convert` in net/ipv4/icmp.c).
pub use libc::{
    EACCES, ECONNRESET, EHOSTDOWN, EHOSTUNREACH, ENETRESET, ENETUNREACH, ENONET, ENOPROTOOPT, EOPNOTSUPP, EPROTO,
};
/// Error numbers that senders tell apart and `io::ErrorKind` does not name.
pub use libc::{ECONNREFUSED, EINPROGRESS, EIO, EMFILE, EMSGSIZE, ENFILE, ENOBUFS, ENOMEM};

/// Size of a buffer as the kernel reports it, per byte requested: it doubles the request for its own records (socket(7)).
pub const BUFFER_FACTOR: usize = 2;
/// Sockets of one process can share a UDP port, and the kernel delivers a datagram to the one that is connected to its sender.
pub const SHARES_DATAGRAM_PORTS: bool = true;

/// Returns the datagrams (more exactly: socket buffers, see below) that this socket dropped since it was created, for lack of room or
/// for bad checksums. `None` if the system does not count them.
///
/// With UDP_GRO the kernel counts what it would have delivered in one piece: a run of joined datagrams counts once.
/// Found so on Linux 6.18 over veth: 1,306,395 datagrams lost, sent 45 to a buffer, and 29,031 drops.
///
/// # Errors
/// The kernel refuses the option.
pub fn drops(socket: BorrowedFd<'_>) -> Result<Option<u32>, Error> {
    // SK_MEMINFO_DROPS in <linux/sock_diag.h>; SK_MEMINFO_VARS is 9.
    const DROPS: usize = 8;
    let info: [u32; 9] = read_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, "getsockopt(SO_MEMINFO)")?;
    Ok(Some(info[DROPS]))
}

/// Sends and receives by the interface `name` only (SO_BINDTODEVICE).
///
/// # Errors
/// There is no such interface, or this process lacks CAP_NET_RAW.
pub fn bind_device(socket: BorrowedFd<'_>, _v6: bool, name: &str) -> io::Result<()> {
    SockRef::from(&socket).bind_device(Some(name.as_bytes()))
}

/// Accepts a connection of a listener that does not block. The connection does.
///
/// # Errors
/// See accept(2).
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    listener.accept()
}

/// Lets `socket` share the port of a multicast group with programs of any user, and receive datagrams of the groups only that it joins itself.
///
/// # Errors
/// The kernel refuses an option.
pub fn share_multicast_port(socket: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    if v6 { socket.set_multicast_all_v6(false) } else { socket.set_multicast_all_v4(false) }
}

/// The largest IP packet that the connected socket's path takes, as far as the kernel knows.
pub fn path_mtu(socket: BorrowedFd<'_>, v6: bool) -> Result<u32, Error> {
    let mtu: i32 = if v6 {
        read_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU, "getsockopt(IPV6_MTU)")?
    } else {
        read_option(socket, libc::IPPROTO_IP, libc::IP_MTU, "getsockopt(IP_MTU)")?
    };
    Ok(mtu as u32)
}

/// Lets IP cut packets above the MTU into fragments instead of refusing them.
pub fn allow_fragments(socket: BorrowedFd<'_>, v6: bool) -> Result<(), Error> {
    if v6 {
        let (level, option) = (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
        write_option(socket, level, option, &libc::IPV6_PMTUDISC_DONT, "setsockopt(IPV6_MTU_DISCOVER)")
    } else {
        let (level, option) = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
        write_option(socket, level, option, &libc::IP_PMTUDISC_DONT, "setsockopt(IP_MTU_DISCOVER)")
    }
}

/// Sets the receive buffer beyond `net.core.rmem_max`, which takes CAP_NET_ADMIN.
pub fn force_receive_buffer(socket: BorrowedFd<'_>, bytes: i32) -> Result<(), Error> {
    write_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes, "setsockopt(SO_RCVBUFFORCE)")
}

/// Sets the send buffer beyond `net.core.wmem_max`, which takes CAP_NET_ADMIN.
pub fn force_send_buffer(socket: BorrowedFd<'_>, bytes: i32) -> Result<(), Error> {
    write_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes, "setsockopt(SO_SNDBUFFORCE)")
}

// SAFETY: integers.
unsafe impl Plain for [u32; 9] {}
