//! Errors of packets that a socket sent. The system matches no ICMP messages to sockets but connected ones, where the next call fails.

use super::socket::forbid_fragments;
use crate::Error;
pub use crate::queued_error::{ErrorOrigin, QueuedError};
use std::io;
use std::os::fd::BorrowedFd;

/// Fails: the system has no queue of errors.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn queue_errors(_: BorrowedFd<'_>, _: bool) -> Result<(), Error> {
    Err(Error::new("queueing errors", "a socket", io::ErrorKind::Unsupported))
}

/// Sends packets with DF, so that one above the MTU of the first link is refused.
///
/// # Errors
/// The kernel refuses the option.
pub fn probe_path_mtu(socket: BorrowedFd<'_>, v6: bool) -> Result<(), Error> {
    forbid_fragments(socket, v6, true)
}

/// Fails: the system has no queue of errors.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn take_error(_: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<Option<QueuedError>> {
    Err(io::ErrorKind::Unsupported.into())
}
