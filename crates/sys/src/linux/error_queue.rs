//! Errors of packets that a socket sent: the ICMP messages that the kernel matched to it (IP_RECVERR of ip(7)).

use crate::Error;
pub use crate::queued_error::{ErrorOrigin, QueuedError};
use crate::socket::write_option;
use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// IP_RECVERR_RFC4884 of `<linux/in.h>`, and its IPv6 counterpart.
const IP_RECVERR_RFC4884: i32 = 26;
const IPV6_RECVERR_RFC4884: i32 = 31;
/// SO_EE_RFC4884_FLAG_INVALID of `<linux/errqueue.h>`.
const EXTENSION_INVALID: u8 = 1;

/// Makes the kernel queue errors of sent packets, with the extensions of ICMP messages where it can (Linux 5.9).
///
/// # Errors
/// The kernel refuses the option.
pub fn queue_errors(socket: BorrowedFd<'_>, v6: bool) -> Result<(), Error> {
    let (level, extensions) =
        if v6 { (libc::IPPROTO_IPV6, IPV6_RECVERR_RFC4884) } else { (libc::IPPROTO_IP, IP_RECVERR_RFC4884) };
    // Older kernels lack it, and report no extensions.
    let _ = write_option(socket, level, extensions, &1i32, "setsockopt(IP_RECVERR_RFC4884)");
    if v6 {
        write_option(socket, level, libc::IPV6_RECVERR, &1i32, "setsockopt(IPV6_RECVERR)")
    } else {
        write_option(socket, level, libc::IP_RECVERR, &1i32, "setsockopt(IP_RECVERR)")
    }
}

/// Sends packets with DF and up to the MTU of the first link, whatever the kernel knows of the path (IP_PMTUDISC_PROBE of ip(7)).
///
/// # Errors
/// The kernel refuses the option.
pub fn probe_path_mtu(socket: BorrowedFd<'_>, v6: bool) -> Result<(), Error> {
    if v6 {
        let (level, option) = (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
        write_option(socket, level, option, &libc::IPV6_PMTUDISC_PROBE, "setsockopt(IPV6_MTU_DISCOVER)")
    } else {
        let (level, option) = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
        write_option(socket, level, option, &libc::IP_PMTUDISC_PROBE, "setsockopt(IP_MTU_DISCOVER)")
    }
}

/// Takes the oldest error. The quoted packet's payload is written to `into`. Returns `None` if there is no error.
///
/// # Errors
/// recvmsg(2) fails.
pub fn take_error(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Option<QueuedError>> {
    // The kernel appends the address of the reporter to its error.
    let mut control =
        cmsg_space!(TimeSpec, libc::sock_extended_err, libc::sockaddr_in6, libc::in6_pktinfo, i32, i32, i32, i32);
    let mut pieces = [IoSliceMut::new(into)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut pieces, Some(&mut control), flags) {
        Ok(message) => message,
        Err(nix::errno::Errno::EAGAIN) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let quoted = message.bytes;
    let mut arrived_unix_ns = None;
    let mut error = None;
    for detail in message.cmsgs()? {
        match detail {
            ControlMessageOwned::ScmTimestampns(time) => {
                arrived_unix_ns = Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
            }
            ControlMessageOwned::Ipv4RecvErr(raw, from) => {
                let address = from.map(|from| Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr)));
                error = Some((raw, address.map(IpAddr::from)));
            }
            ControlMessageOwned::Ipv6RecvErr(raw, from) => {
                let address = from.map(|from| Ipv6Addr::from(from.sin6_addr.s6_addr));
                error = Some((raw, address.map(IpAddr::from)));
            }
            _ => {}
        }
    }
    Ok(error.map(|(raw, from)| {
        let [low, high, flags, _] = raw.ee_data.to_ne_bytes();
        let offset = usize::from(u16::from_ne_bytes([low, high]));
        let is_valid = offset > 0 && offset < quoted && flags & EXTENSION_INVALID == 0;
        QueuedError {
            origin: match raw.ee_origin {
                libc::SO_EE_ORIGIN_ICMP => ErrorOrigin::Icmp,
                libc::SO_EE_ORIGIN_ICMP6 => ErrorOrigin::Icmp6,
                _ => ErrorOrigin::Local,
            },
            icmp: [raw.ee_type, raw.ee_code],
            mtu: if raw.ee_errno == libc::EMSGSIZE as u32 { raw.ee_info } else { 0 },
            from: from.map(|from| from.to_canonical()),
            quoted,
            extension: is_valid.then_some(offset),
            arrived_unix_ns,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::socket::wait_readable;
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    /// A closed port answers "port unreachable", which quotes the datagram.
    #[test]
    fn closed_port_is_reported_with_the_quoted_payload() {
        for (address, origin, icmp) in
            [("127.0.0.1:0", ErrorOrigin::Icmp, [3, 3]), ("[::1]:0", ErrorOrigin::Icmp6, [1, 4])]
        {
            let closed = UdpSocket::bind(address).expect("binds").local_addr().expect("is bound");
            let socket = UdpSocket::bind(address).expect("binds");
            queue_errors(socket.as_fd(), closed.is_ipv6()).expect("Linux has it");
            crate::datagram_details::report_details(&socket).expect("Linux has them");
            probe_path_mtu(socket.as_fd(), closed.is_ipv6()).expect("Linux has it");
            let mut quoted = [0; 64];
            assert_eq!(take_error(socket.as_fd(), &mut quoted).expect("reads"), None);
            let before = clock::unix_now();
            socket.send_to(b"where is everybody", closed).expect("sends");
            assert!(wait_readable(&[socket.as_fd()], 10_000_000_000).expect("waits"));
            let error = take_error(socket.as_fd(), &mut quoted).expect("reads").expect("an error");
            assert_eq!((error.origin, error.icmp), (origin, icmp), "{address}");
            assert_eq!(error.from, Some(closed.ip()));
            assert_eq!(&quoted[..error.quoted], b"where is everybody");
            assert_eq!((error.mtu, error.extension), (0, None));
            let arrived = error.arrived_unix_ns.expect("the kernel has the time");
            assert!(arrived.abs_diff(before) < 10_000_000_000);
        }
    }

    /// The loopback interface has an MTU of 65,536 bytes.
    #[test]
    fn datagram_above_the_mtu_is_reported_by_this_host() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        queue_errors(socket.as_fd(), false).expect("Linux has it");
        probe_path_mtu(socket.as_fd(), false).expect("Linux has it");
        let to = socket.local_addr().expect("is bound");
        if socket.send_to(&[0; 65_507], to).is_err() {
            let error = take_error(socket.as_fd(), &mut [0; 8]).expect("reads");
            assert_eq!(error.map(|error| error.origin), Some(ErrorOrigin::Local));
        }
    }
}
