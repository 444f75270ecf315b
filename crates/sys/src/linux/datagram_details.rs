//! UDP datagrams with the fields of their IP headers and the time at which the kernel received them.

use crate::Error;
pub use crate::datagram::{Received, SendDetails};
use crate::socket::write_option;
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, sendmsg,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _};

/// Makes the kernel report the details of datagrams that arrive from now on (SO_TIMESTAMPNS of socket(7), IP_PKTINFO, IP_RECVTTL and
/// IP_RECVTOS of ip(7), and their IPv6 counterparts).
///
/// # Errors
/// The kernel refuses one of the options.
pub fn report_details(socket: &UdpSocket) -> Result<(), Error> {
    let descriptor = socket.as_fd();
    let is_v6 = matches!(socket.local_addr(), Ok(address) if address.is_ipv6());
    let v6_options = [
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, "setsockopt(IPV6_RECVPKTINFO)"),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, "setsockopt(IPV6_RECVHOPLIMIT)"),
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, "setsockopt(IPV6_RECVTCLASS)"),
    ];
    // An IPv6 socket may receive IPv4 too.
    let options = [
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "setsockopt(SO_TIMESTAMPNS)"),
        (libc::IPPROTO_IP, libc::IP_PKTINFO, "setsockopt(IP_PKTINFO)"),
        (libc::IPPROTO_IP, libc::IP_RECVTTL, "setsockopt(IP_RECVTTL)"),
        (libc::IPPROTO_IP, libc::IP_RECVTOS, "setsockopt(IP_RECVTOS)"),
    ];
    for (level, option, call) in options.into_iter().chain(v6_options.into_iter().filter(|_| is_v6)) {
        let result = write_option(descriptor, level, option, &1i32, call);
        // ICMP sockets of IPv6 receive no IPv4, and lack its options.
        let is_optional = is_v6 && level == libc::IPPROTO_IP;
        if is_optional && matches!(&result, Err(error) if error.source.raw_os_error() == Some(libc::ENOPROTOOPT)) {
            continue;
        }
        result?;
    }
    Ok(())
}

/// Receives one datagram and its details; waits for it as long as the socket's read timeout says, or not at all if the socket does
/// not block.
///
/// # Errors
/// recvmsg(2) fails, `WouldBlock` if no datagram came in time.
pub fn receive_with_details(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Received> {
    let mut control = cmsg_space!(TimeSpec, libc::in_pktinfo, libc::in6_pktinfo, i32, i32, i32, i32);
    let mut pieces = [IoSliceMut::new(into)];
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::MSG_TRUNC)?;
    let from = message.address.as_ref().and_then(socket_address).ok_or(io::ErrorKind::InvalidData)?;
    let mut received =
        Received { length: message.bytes, from, to: None, ttl: None, traffic_class: None, arrived_unix_ns: None };
    for detail in message.cmsgs()? {
        match detail {
            ControlMessageOwned::ScmTimestampns(time) => {
                received.arrived_unix_ns = Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
            }
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                received.to = Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)).into());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                received.to = Some(IpAddr::from(info.ipi6_addr.s6_addr).to_canonical());
            }
            ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                received.ttl = u8::try_from(ttl).ok();
            }
            ControlMessageOwned::Ipv4Tos(class) => received.traffic_class = Some(class),
            ControlMessageOwned::Ipv6TClass(class) => received.traffic_class = u8::try_from(class).ok(),
            _ => {}
        }
    }
    Ok(received)
}

/// Sends one datagram with these details. `to` may be an IPv4-mapped address if the socket is of IPv6.
///
/// # Errors
/// sendmsg(2) fails.
pub fn send_from(socket: &UdpSocket, payload: &[u8], to: SocketAddr, details: SendDetails) -> io::Result<usize> {
    let is_v4 = to.ip().to_canonical().is_ipv4();
    let class_v4 = details.traffic_class.unwrap_or_default();
    let class_v6 = i32::from(class_v4);
    let info_v4;
    let info_v6;
    let mut control = Vec::with_capacity(2);
    match details.from.map(|from| from.to_canonical()) {
        Some(IpAddr::V4(from)) if is_v4 => {
            let none = libc::in_addr { s_addr: 0 };
            let spec = libc::in_addr { s_addr: u32::from(from).to_be() };
            info_v4 = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: spec, ipi_addr: none };
            control.push(ControlMessage::Ipv4PacketInfo(&info_v4));
        }
        Some(IpAddr::V6(from)) if !is_v4 => {
            let address = libc::in6_addr { s6_addr: Ipv6Addr::octets(&from) };
            info_v6 = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
            control.push(ControlMessage::Ipv6PacketInfo(&info_v6));
        }
        _ => {}
    }
    if details.traffic_class.is_some() {
        control.push(if is_v4 { ControlMessage::Ipv4Tos(&class_v4) } else { ControlMessage::Ipv6TClass(&class_v6) });
    }
    let pieces = [IoSlice::new(payload)];
    let to = SockaddrStorage::from(to);
    Ok(sendmsg(socket.as_raw_fd(), &pieces, &control, MsgFlags::MSG_NOSIGNAL, Some(&to))?)
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address: &SockaddrIn| SocketAddr::V4((*address).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address: &SockaddrIn6| SocketAddr::V6((*address).into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::time::Duration;

    fn bound(address: &str) -> UdpSocket {
        let socket = UdpSocket::bind(address).expect("binds");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        socket
    }

    #[test]
    fn headers_and_times_are_reported_in_both_families() {
        for (listen, send, source) in [
            ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.9"),
            ("[::1]:0", "[::1]:0", "::1"),
            // IPv4 at a socket of both families.
            ("[::]:0", "127.0.0.1:0", "127.0.0.1"),
        ] {
            let receiver = bound(listen);
            let sender = if source == "127.0.0.9" { bound("0.0.0.0:0") } else { bound(send) };
            report_details(&receiver).expect("Linux has all of them");
            sender.set_ttl(77).ok();
            let local: IpAddr = if send.starts_with('[') { "::1" } else { "127.0.0.1" }.parse().expect("an address");
            let to = SocketAddr::new(local, receiver.local_addr().expect("bound").port());
            let source: IpAddr = source.parse().expect("an address");
            let before = clock::unix_now();
            let details = SendDetails { from: Some(source), traffic_class: Some(0xb9) };
            assert_eq!(send_from(&sender, b"four", to, details).expect("sends"), 4);
            let mut buffer = [0; 2];
            let received = receive_with_details(&receiver, &mut buffer).expect("receives");
            assert_eq!((received.length, &buffer), (4, b"fo"), "{listen}");
            assert_eq!(received.from.ip().to_canonical(), source, "{listen}");
            assert_eq!(received.to, Some(local), "{listen}");
            assert_eq!(received.traffic_class, Some(0xb9), "{listen}");
            assert!(matches!(received.ttl, Some(64 | 77)), "{listen}: {:?}", received.ttl);
            // A kernel that steps its clock here is not expected.
            let age = clock::unix_now() - before;
            let arrived = received.arrived_unix_ns.expect("the kernel has the time");
            assert!(arrived.abs_diff(before) <= age + 1_000_000_000, "{listen}");
            // The reply leaves from the address that was asked.
            let reply = SendDetails { from: received.to, traffic_class: None };
            send_from(&receiver, b"reply", received.from, reply).expect("sends");
            let (length, from) = sender.recv_from(&mut [0; 9]).expect("receives");
            assert_eq!((length, from.ip()), (5, local), "{listen}");
        }
    }

    #[test]
    fn without_a_request_nothing_is_reported() {
        let receiver = bound("127.0.0.1:0");
        let sender = bound("127.0.0.1:0");
        sender.send_to(b"x", receiver.local_addr().expect("bound")).expect("sends");
        let received = receive_with_details(&receiver, &mut [0; 9]).expect("receives");
        let Received { to, ttl, traffic_class, arrived_unix_ns, .. } = received;
        assert_eq!((to, ttl, traffic_class, arrived_unix_ns), (None, None, None, None));
    }
}
