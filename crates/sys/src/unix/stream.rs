//! TCP: sending and receiving without waiting.

use crate::Error;
use crate::socket_option::write_option;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::time::Duration;

/// Keeps a closed connection from ending the program. On macOS it is an option of the socket, which the standard library sets.
const NO_SIGNAL: MsgFlags = MsgFlags::from_bits_retain(if cfg!(target_os = "macos") { 0 } else { libc::MSG_NOSIGNAL });

/// Probes an idle connection: first after `time`, then every `interval`, and ends it after `retries` without an answer.
///
/// # Errors
/// `socket` is no TCP socket.
pub fn set_keepalive(socket: BorrowedFd<'_>, time: Duration, interval: Duration, retries: u32) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(time).with_interval(interval).with_retries(retries);
    SockRef::from(&socket).set_tcp_keepalive(&probes)
}

/// Hands over what fits without waiting.
pub fn send_now(connection: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | NO_SIGNAL;
    send(connection.as_raw_fd(), bytes, flags).map_err(Errno::into)
}

/// Takes what is there; with `wait`, waits for it as long as the connection's read timeout says.
pub fn receive(connection: &TcpStream, into: &mut [u8], wait: bool) -> io::Result<usize> {
    let flags = if wait { MsgFlags::empty() } else { MsgFlags::MSG_DONTWAIT };
    recv(connection.as_raw_fd(), into, flags).map_err(Errno::into)
}

/// Reads what is there and leaves it there, without waiting.
pub fn peek(connection: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    recv(connection.as_raw_fd(), into, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT).map_err(Errno::into)
}

/// Lets a reader that waits sleep until `bytes` have come (SO_RCVLOWAT, socket(7)), the stream has ended, or its timeout is over. The kernel
/// takes no more than half of the receive buffer. Returns false if the system has no such option.
///
/// # Errors
/// The kernel refuses the option.
pub fn set_low_water(connection: &TcpStream, bytes: u32) -> Result<bool, Error> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    write_option(connection.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes, "setsockopt(SO_RCVLOWAT)")?;
    Ok(true)
}

/// Bytes that have arrived in order and wait to be taken (FIONREAD).
pub fn waiting(connection: &TcpStream) -> Result<u64, Error> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int to where it points; the descriptor is borrowed.
    let result = unsafe { libc::ioctl(connection.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    if result == 0 { Ok(bytes.unsigned_abs().into()) } else { Err(Error::last("ioctl(FIONREAD)", "a TCP connection")) }
}
