//! Errors of packets that a socket sent. The system matches no ICMP messages to sockets but connected ones, where the next call fails.

use super::socket::forbid_fragments;
use crate::Error;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// An error of a packet that the socket sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// Reporter of the error.
    pub origin: ErrorOrigin,
    /// Number of the error, as in EMSGSIZE.
    pub errno: i32,
    /// ICMP type and code; zero if this host reported the error.
    pub icmp: [u8; 2],
    /// MTU of a packet that was too big; zero otherwise.
    pub mtu: u32,
    /// Sender of the ICMP message.
    pub from: Option<IpAddr>,
    /// Bytes of the quoted packet after its transport header, written to the buffer.
    pub quoted: usize,
    /// Offset of the ICMP extension structure in the buffer (RFC 4884). `None` if there is none, or it is invalid.
    pub extension: Option<usize>,
    /// Time of reception, in nanoseconds since 1970.
    pub arrived_unix_ns: Option<u64>,
}

/// Reporter of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// This host.
    Local,
    /// ICMP.
    Icmp,
    /// ICMPv6.
    Icmp6,
}

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

/// Returns `None`: there is no queue of errors.
///
/// # Errors
/// None on this system.
pub fn take_error(_: BorrowedFd<'_>, _: &mut [u8]) -> io::Result<Option<QueuedError>> {
    Ok(None)
}
