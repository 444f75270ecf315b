//! Socket options that the standard library and socket2 lack, and waits for sockets.

use crate::Error;
pub(crate) use crate::socket_option::write_option;
pub use crate::wait::{wait_for_each, wait_readable, wait_ready, wait_ready_each, wait_writable};
use std::io;
use std::os::fd::BorrowedFd;

/// The system has no ENONET: the name has the closest number.
pub use libc::ENETDOWN as ENONET;
/// Further error numbers of ICMP messages.
pub use libc::{EACCES, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENOPROTOOPT, EOPNOTSUPP, EPROTO};
/// Error numbers that senders distinguish and `io::ErrorKind` does not name.
pub use libc::{ECONNREFUSED, EINPROGRESS, EIO, EMFILE, EMSGSIZE, ENFILE, ENOBUFS, ENOMEM};

/// Fails: the system does not count drops of a socket.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn drops(_: BorrowedFd<'_>) -> Result<u32, Error> {
    Err(Error::new("reading drops", "a socket", io::ErrorKind::Unsupported))
}

/// Fails: the system does not report the path MTU of a connected socket.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn path_mtu(_: BorrowedFd<'_>, _: bool) -> Result<u32, Error> {
    Err(Error::new("reading the path MTU", "a socket", io::ErrorKind::Unsupported))
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
