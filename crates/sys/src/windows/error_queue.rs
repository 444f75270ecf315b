//! Errors of packets that a socket sent. Windows has no queue of them: [`queue_errors`] fails, and probes that need the queue report that.

use crate::Error;
use crate::socket::write_option;
use std::io;
use std::net::IpAddr;
use std::os::windows::io::BorrowedSocket;
use windows_sys::Win32::Networking::WinSock::{
    IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IPPROTO_IP, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
};

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

/// Fails on Windows, which does not queue errors.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn queue_errors(_socket: BorrowedSocket<'_>, _v6: bool) -> Result<(), Error> {
    Err(Error::new("setsockopt(IP_RECVERR)", "a socket", io::ErrorKind::Unsupported))
}

/// Sends packets with DF and up to the MTU of the first link, whatever the system has learnt of the path (IP_PMTUDISC_PROBE; Windows 10
/// 1809).
///
/// # Errors
/// The system lacks the option.
pub fn probe_path_mtu(socket: BorrowedSocket<'_>, v6: bool) -> Result<(), Error> {
    if v6 {
        let call = "setsockopt(IPV6_MTU_DISCOVER)";
        write_option(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &IP_PMTUDISC_PROBE, call)
    } else {
        write_option(socket, IPPROTO_IP, IP_MTU_DISCOVER, &IP_PMTUDISC_PROBE, "setsockopt(IP_MTU_DISCOVER)")
    }
}

/// Returns `None`: there is no queue of errors.
///
/// # Errors
/// None on this system.
pub fn take_error(_socket: BorrowedSocket<'_>, _into: &mut [u8]) -> io::Result<Option<QueuedError>> {
    Ok(None)
}
