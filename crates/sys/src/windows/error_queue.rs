//! Errors of packets that a socket sent. Windows reports the number of an error at most, as that of a later call: the sender of the ICMP
//! message and the packet it quotes are not reported. `EchoRequests` has both.

use crate::Error;
pub use crate::queued_error::{ErrorOrigin, QueuedError};
use crate::socket::write_option;
use std::io;
use std::os::windows::io::BorrowedSocket;
use windows_sys::Win32::Networking::WinSock::{
    IP_DONTFRAGMENT, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IPPROTO_IP, IPPROTO_IPV6, IPV6_DONTFRAG, IPV6_MTU_DISCOVER,
};

/// Fails on Windows, which has no such queue.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn queue_errors(_socket: BorrowedSocket<'_>, _v6: bool) -> Result<(), Error> {
    Err(Error::new("setsockopt(IP_RECVERR)", "a socket", io::ErrorKind::Unsupported))
}

/// Fails on Windows, which has no such queue.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn take_error(_socket: BorrowedSocket<'_>, _into: &mut [u8]) -> io::Result<Option<QueuedError>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sends packets with DF and up to the MTU of the first link, whatever the system knows of the path (IP_MTU_DISCOVER; Windows 10 1809).
/// Older systems send them with DF (IP_DONTFRAGMENT).
///
/// # Errors
/// The system refuses both options.
pub fn probe_path_mtu(socket: BorrowedSocket<'_>, v6: bool) -> Result<(), Error> {
    let (level, discover, dont) = if v6 {
        (IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_DONTFRAG)
    } else {
        (IPPROTO_IP, IP_MTU_DISCOVER, IP_DONTFRAGMENT)
    };
    write_option(socket, level, discover, &IP_PMTUDISC_PROBE, "setsockopt(IP_MTU_DISCOVER)")
        .or_else(|_| write_option(socket, level, dont, &1u32, "setsockopt(IP_DONTFRAGMENT)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::windows::io::AsSocket as _;

    #[test]
    fn path_is_probed_in_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(address).expect("binds");
            probe_path_mtu(socket.as_socket(), address.starts_with('[')).expect("one of the options is there");
            let error = queue_errors(socket.as_socket(), false).expect_err("Windows has no queue");
            assert_eq!(error.source.kind(), io::ErrorKind::Unsupported);
        }
    }
}
