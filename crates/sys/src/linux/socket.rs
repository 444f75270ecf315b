//! Socket options that the standard library and socket2 lack.

use crate::Error;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use socket2::SockRef;
use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};

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

/// Returns whether a call ended without data: by its timeout, by a signal, or because it must not wait.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

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

/// Sets the type of service or the traffic class of packets: DSCP and ECN, RFC 2474 section 3.
///
/// # Errors
/// The kernel refuses the option.
pub fn set_traffic_class(socket: BorrowedFd<'_>, v6: bool, class: u8) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    if v6 { socket.set_tclass_v6(class.into()) } else { socket.set_tos_v4(class.into()) }
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

/// Lets `socket` share its port with others of this user that request it too (SO_REUSEPORT).
///
/// # Errors
/// The kernel refuses the option.
pub fn share_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&socket).set_reuse_port(true)
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

/// Waits until one of `sockets` can be read (or has failed), at most `timeout_ns`; false if none can.
pub fn wait_readable(sockets: &[BorrowedFd<'_>], timeout_ns: u64) -> Result<bool, Error> {
    wait(sockets, PollFlags::POLLIN, timeout_ns)
}

/// Waits until one of `sockets` can be read (or has failed), at most `timeout_ns`. Returns the numbers of those that can.
pub fn wait_for_each(sockets: &[BorrowedFd<'_>], timeout_ns: u64) -> Result<Vec<usize>, Error> {
    wait_each(sockets, PollFlags::POLLIN, timeout_ns)
}

/// Waits until one of `sockets` can be read or written (or has failed), at most `timeout_ns`. Returns the numbers of those that can.
pub fn wait_ready_each(sockets: &[BorrowedFd<'_>], timeout_ns: u64) -> Result<Vec<usize>, Error> {
    wait_each(sockets, PollFlags::POLLIN | PollFlags::POLLOUT, timeout_ns)
}

/// Waits until `socket` can be written (or has failed), at most `timeout_ns`; false if it cannot.
pub fn wait_writable(socket: BorrowedFd<'_>, timeout_ns: u64) -> Result<bool, Error> {
    wait(&[socket], PollFlags::POLLOUT, timeout_ns)
}

/// Waits until `socket` can be read or written (or has failed), at most `timeout_ns`; false if it cannot.
pub fn wait_ready(socket: BorrowedFd<'_>, timeout_ns: u64) -> Result<bool, Error> {
    wait(&[socket], PollFlags::POLLIN | PollFlags::POLLOUT, timeout_ns)
}

fn wait(sockets: &[BorrowedFd<'_>], flags: PollFlags, timeout_ns: u64) -> Result<bool, Error> {
    let waits = poll(sockets, flags, timeout_ns)?;
    Ok(waits.iter().any(|wait| wait.revents().is_some_and(|events| !events.is_empty())))
}

fn wait_each(sockets: &[BorrowedFd<'_>], flags: PollFlags, timeout_ns: u64) -> Result<Vec<usize>, Error> {
    let waits = poll(sockets, flags, timeout_ns)?;
    let ready = |wait: &PollFd<'_>| wait.revents().is_some_and(|events| !events.is_empty());
    Ok(waits.iter().enumerate().filter_map(|(number, wait)| ready(wait).then_some(number)).collect())
}

/// The sockets and what they are ready for; nothing after a signal.
fn poll<'a>(sockets: &[BorrowedFd<'a>], flags: PollFlags, timeout_ns: u64) -> Result<Vec<PollFd<'a>>, Error> {
    let timeout = TimeSpec::new((timeout_ns / 1_000_000_000) as i64, (timeout_ns % 1_000_000_000) as i64);
    let mut waits: Vec<PollFd<'a>> = sockets.iter().map(|socket| PollFd::new(*socket, flags)).collect();
    match ppoll(&mut waits, Some(timeout), None) {
        Ok(_) => Ok(waits),
        Err(nix::errno::Errno::EINTR) => Ok(Vec::new()),
        Err(errno) => Err(Error::new("ppoll", "sockets", errno)),
    }
}

pub(crate) fn write_option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: i32,
    option: i32,
    value: &T,
    call: &'static str,
) -> Result<(), Error> {
    // SAFETY: the kernel reads size_of::<T>() bytes from a live reference; the descriptor is borrowed for the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(Error::last(call, "a socket")) }
}

/// Reads an option into a type of plain integers; bytes that a shorter kernel structure does not fill stay zero.
pub(crate) fn read_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: i32,
    option: i32,
    call: &'static str,
) -> Result<T, Error> {
    // SAFETY: `Plain` types are made of integers, for which all zeroes is a value.
    let mut value: T = unsafe { mem::zeroed() };
    let mut length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `value`, and any bytes are a value of `T`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_mut(&mut value).cast(),
            std::ptr::from_mut(&mut length),
        )
    };
    if result == 0 { Ok(value) } else { Err(Error::new(call, "a socket", io::Error::last_os_error())) }
}

/// A type made of integers only.
///
/// # Safety
/// Every pattern of bytes must be a value of it.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for i32 {}
// SAFETY: integers.
unsafe impl Plain for [u32; 9] {}
