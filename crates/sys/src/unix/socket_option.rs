//! Socket options that the standard library and socket2 lack.

use crate::Error;
use socket2::SockRef;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Returns whether a call ended without data: by its timeout, by a signal, or because it must not wait.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Sets the type of service or the traffic class of packets: DSCP and ECN, RFC 2474 section 3.
///
/// # Errors
/// The kernel refuses the option.
pub fn set_traffic_class(socket: BorrowedFd<'_>, v6: bool, class: u8) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    if v6 { socket.set_tclass_v6(class.into()) } else { socket.set_tos_v4(class.into()) }
}

/// Lets a listener be bound to a port at which nobody listens any more, whatever connections of the last listener remain (SO_REUSEADDR).
///
/// # Errors
/// The kernel refuses the option.
pub fn reuse_closed_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&socket).set_reuse_address(true)
}

/// Lets `socket` share its port with others of this user that request it too (SO_REUSEPORT).
///
/// # Errors
/// The kernel refuses the option.
pub fn share_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&socket).set_reuse_port(true)
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
