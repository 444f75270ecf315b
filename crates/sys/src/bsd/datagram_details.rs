//! UDP datagrams with the fields of their IP headers and the time at which the kernel received them.

use super::ancillary::{Control, receive};
use crate::Error;
pub use crate::datagram::{Received, SendDetails};
use crate::socket::write_option;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

/// Makes the kernel report the details of datagrams that arrive from now on (SO_TIMESTAMP, IP_RECVDSTADDR, IP_RECVTTL and IP_RECVTOS of ip(4), and
/// their IPv6 counterparts).
///
/// # Errors
/// The kernel refuses one of the options.
pub fn report_details(socket: &UdpSocket) -> Result<(), Error> {
    let v4_options = [
        (libc::IPPROTO_IP, libc::IP_RECVDSTADDR, "setsockopt(IP_RECVDSTADDR)"),
        (libc::IPPROTO_IP, libc::IP_RECVTTL, "setsockopt(IP_RECVTTL)"),
        (libc::IPPROTO_IP, libc::IP_RECVTOS, "setsockopt(IP_RECVTOS)"),
    ];
    let v6_options = [
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, "setsockopt(IPV6_RECVPKTINFO)"),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, "setsockopt(IPV6_RECVHOPLIMIT)"),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, "setsockopt(IPV6_RECVTCLASS)"),
    ];
    let is_v6 = matches!(socket.local_addr(), Ok(address) if address.is_ipv6());
    for (level, option, call) in if is_v6 { v6_options } else { v4_options } {
        write_option(socket.as_fd(), level, option, &1i32, call)?;
    }
    write_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMP, &1i32, "setsockopt(SO_TIMESTAMP)")
}

/// Receives one datagram and its details; waits for it as long as the socket's read timeout says, or not at all if the socket does
/// not block.
///
/// # Errors
/// recvmsg(2) fails, `WouldBlock` if no datagram came in time.
pub fn receive_with_details(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Received> {
    let message = receive(socket.as_fd(), into, 0)?;
    let details = message.details;
    Ok(Received {
        length: message.length + usize::from(message.truncated),
        from: message.from.ok_or(io::ErrorKind::InvalidData)?,
        to: details.to,
        ttl: details.ttl,
        traffic_class: details.traffic_class,
        arrived_unix_ns: details.arrived_unix_ns,
    })
}

/// Sends one datagram with these details. `to` may be an IPv4-mapped address if the socket is of IPv6.
///
/// # Errors
/// sendmsg(2) fails.
pub fn send_from(socket: &UdpSocket, payload: &[u8], to: SocketAddr, details: SendDetails) -> io::Result<usize> {
    let is_v4 = to.ip().to_canonical().is_ipv4();
    let mut control = Control::default();
    match details.from.map(|from| from.to_canonical()) {
        Some(IpAddr::V4(from)) if is_v4 => {
            let address = libc::in_addr { s_addr: u32::from(from).to_be() };
            #[cfg(target_os = "freebsd")]
            control.push(libc::IPPROTO_IP, libc::IP_SENDSRCADDR, address);
            #[cfg(target_os = "macos")]
            control.push(
                libc::IPPROTO_IP,
                libc::IP_PKTINFO,
                libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: libc::in_addr { s_addr: 0 } },
            );
        }
        Some(IpAddr::V6(from)) if !is_v4 => {
            let address = libc::in6_addr { s6_addr: from.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        _ => {}
    }
    match details.traffic_class {
        // FreeBSD takes a byte.
        Some(class) if is_v4 && cfg!(target_os = "freebsd") => control.push(libc::IPPROTO_IP, libc::IP_TOS, class),
        Some(class) if is_v4 => control.push(libc::IPPROTO_IP, libc::IP_TOS, i32::from(class)),
        Some(class) => control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, i32::from(class)),
        None => {}
    }
    control.send(socket.as_fd(), payload, to)
}
