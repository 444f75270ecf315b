//! UDP datagrams with the fields of their IP headers. Windows reports no times of arrival by these calls.

use super::message::{self, Control};
use crate::Error;
pub use crate::datagram::{Received, SendDetails};
use crate::socket::write_option;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::windows::io::AsSocket as _;
use windows_sys::Win32::Networking::WinSock::{
    IP_HOPLIMIT, IP_PKTINFO, IP_RECVTOS, IP_RECVTTL, IP_TOS, IP_TTL, IPPROTO_IP, IPPROTO_IPV6, IPV6_HOPLIMIT,
    IPV6_PKTINFO, IPV6_RECVTCLASS, IPV6_TCLASS, WSAEINVAL, WSAENOPROTOOPT, WSAEOPNOTSUPP,
};

/// Makes the system report the details of datagrams that arrive from now on: IP_PKTINFO, IP_RECVTTL and IP_RECVTOS, and their IPv6
/// counterparts. Older systems lack some of them. The details stay unknown then.
///
/// # Errors
/// The system refuses one of the options for another reason.
pub fn report_details(socket: &UdpSocket) -> Result<(), Error> {
    let is_v6 = matches!(socket.local_addr(), Ok(address) if address.is_ipv6());
    let v6_options = [
        (IPPROTO_IPV6, IPV6_PKTINFO, "setsockopt(IPV6_PKTINFO)"),
        (IPPROTO_IPV6, IPV6_HOPLIMIT, "setsockopt(IPV6_HOPLIMIT)"),
        (IPPROTO_IPV6, IPV6_RECVTCLASS, "setsockopt(IPV6_RECVTCLASS)"),
    ];
    // An IPv6 socket may receive IPv4 too.
    let options = [
        (IPPROTO_IP, IP_PKTINFO, "setsockopt(IP_PKTINFO)"),
        (IPPROTO_IP, IP_RECVTTL, "setsockopt(IP_RECVTTL)"),
        (IPPROTO_IP, IP_RECVTOS, "setsockopt(IP_RECVTOS)"),
    ];
    for (level, option, call) in options.into_iter().chain(v6_options.into_iter().filter(|_| is_v6)) {
        match write_option(socket.as_socket(), level, option, &1u32, call) {
            Err(error) if !is_lacking(&error.source) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether an error means that the system does not have an option or a control message.
fn is_lacking(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(WSAEINVAL | WSAENOPROTOOPT | WSAEOPNOTSUPP))
}

/// Receives one datagram and its details; waits for it as long as the socket's read timeout says, or not at all if the socket does
/// not block.
///
/// # Errors
/// WSARecvMsg fails, `WouldBlock` or `TimedOut` if no datagram came in time.
pub fn receive_with_details(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Received> {
    let mut control = Control::new();
    let message = message::receive(socket.as_socket(), into, &mut control)?;
    let from = message.from.ok_or(io::ErrorKind::InvalidData)?;
    let length = message.length + usize::from(message.truncated);
    let mut received = Received { length, from, to: None, ttl: None, traffic_class: None, arrived_unix_ns: None };
    for (level, kind, data) in control.messages() {
        match (level, kind) {
            // Both structures begin with the address.
            (IPPROTO_IP, IP_PKTINFO) => {
                received.to = data.first_chunk().map(|octets: &[u8; 4]| Ipv4Addr::from(*octets).into());
            }
            (IPPROTO_IPV6, IPV6_PKTINFO) => {
                received.to = data.first_chunk().map(|octets: &[u8; 16]| IpAddr::from(*octets).to_canonical());
            }
            (IPPROTO_IP, IP_TTL | IP_HOPLIMIT) | (IPPROTO_IPV6, IPV6_HOPLIMIT) => received.ttl = number(data),
            (IPPROTO_IP, IP_TOS | IP_RECVTOS) | (IPPROTO_IPV6, IPV6_TCLASS | IPV6_RECVTCLASS) => {
                received.traffic_class = number(data);
            }
            _ => {}
        }
    }
    Ok(received)
}

fn number(data: &[u8]) -> Option<u8> {
    u8::try_from(i32::from_ne_bytes(*data.first_chunk()?)).ok()
}

/// Sends one datagram with these details. `to` may be an IPv4-mapped address if the socket is of IPv6.
///
/// Windows changes the DSCP of packets by policies only. Where it refuses the traffic class as such, the datagram leaves without it.
///
/// # Errors
/// WSASendMsg fails.
pub fn send_from(socket: &UdpSocket, payload: &[u8], to: SocketAddr, details: SendDetails) -> io::Result<usize> {
    let mut control = Control::new();
    let is_v4 = to.ip().to_canonical().is_ipv4();
    match details.from.map(|from| from.to_canonical()) {
        Some(IpAddr::V4(from)) if is_v4 => {
            // The address and the number of the interface, which the system chooses.
            control.push(IPPROTO_IP, IP_PKTINFO, &[from.octets(), [0; 4]].concat());
        }
        Some(IpAddr::V6(from)) if !is_v4 => {
            control.push(IPPROTO_IPV6, IPV6_PKTINFO, &[&Ipv6Addr::octets(&from)[..], &[0; 4]].concat());
        }
        _ => {}
    }
    let Some(class) = details.traffic_class else {
        return message::send(socket.as_socket(), payload, to, &mut control);
    };
    let mut with_class = control.clone();
    let (level, kind) = if is_v4 { (IPPROTO_IP, IP_TOS) } else { (IPPROTO_IPV6, IPV6_TCLASS) };
    with_class.push(level, kind, &i32::from(class).to_ne_bytes());
    match message::send(socket.as_socket(), payload, to, &mut with_class) {
        Err(error) if is_lacking(&error) => message::send(socket.as_socket(), payload, to, &mut control),
        result => result,
    }
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
    fn headers_are_reported_in_both_families() {
        for (listen, send, local) in [("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]:0", "::1")] {
            let receiver = bound(listen);
            let sender = bound(send);
            report_details(&receiver).expect("what is lacking is left out");
            let local: IpAddr = local.parse().expect("an address");
            let to = SocketAddr::new(local, receiver.local_addr().expect("bound").port());
            let details = SendDetails { from: Some(local), traffic_class: Some(0xb8) };
            assert_eq!(send_from(&sender, b"four", to, details).expect("sends"), 4);
            let mut buffer = [0; 9];
            let received = receive_with_details(&receiver, &mut buffer).expect("receives");
            assert_eq!((received.length, &buffer[..4], received.from.ip()), (4, &b"four"[..], local), "{listen}");
            assert_eq!(received.to, Some(local), "{listen}");
            assert!(received.ttl.is_none_or(|ttl| ttl >= 64), "{listen}: {received:?}");
            // Windows itself sets the class by policies only.
            assert!(matches!(received.traffic_class, None | Some(0 | 0xb8)), "{listen}: {received:?}");
            assert_eq!(received.arrived_unix_ns, None);
            let reply = SendDetails { from: received.to, traffic_class: None };
            send_from(&receiver, b"reply", received.from, reply).expect("sends");
            let (length, from) = sender.recv_from(&mut [0; 9]).expect("receives");
            assert_eq!((length, from.ip()), (5, local), "{listen}");
        }
    }

    #[test]
    fn truncated_datagram_is_longer_than_the_buffer() {
        let receiver = bound("127.0.0.1:0");
        let sender = bound("127.0.0.1:0");
        sender.send_to(b"four", receiver.local_addr().expect("bound")).expect("sends");
        let mut buffer = [0; 2];
        let received = receive_with_details(&receiver, &mut buffer).expect("receives");
        assert!(received.length > 2 && &buffer == b"fo", "{received:?}");
        assert_eq!(received.from, sender.local_addr().expect("bound"));
    }

    #[test]
    fn waits_no_longer_than_the_read_timeout() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("binds");
        receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("sets");
        let begun = clock::now();
        let error = receive_with_details(&receiver, &mut [0; 9]).expect_err("nothing came");
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        assert!(clock::now() - begun < 10_000_000_000);
        receiver.set_nonblocking(true).expect("sets");
        let error = receive_with_details(&receiver, &mut [0; 9]).expect_err("nothing came");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
    }
}
