//! ICMP echo requests and replies (RFC 792, RFC 4443 section 4), of ping sockets and raw sockets with an error queue.
//!
//! The error queue returns the ICMP header of the echo request before its data.

use super::contract::{ATTEMPTS, Arrived, Event, Packets, ProbeId, is_of_earlier, no_route, require_errors, set_ttl};
use crate::icmp_extension::checksum;
use linerate_engine::{SocketError, failed};
use linerate_sys::datagram_details::{receive_with_details, report_details};
use linerate_sys::error_queue::{probe_path_mtu, take_error};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::wait_readable;
use socket2::Socket;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;

/// Length of the ICMP header of an echo request in bytes.
const HEADER: usize = 8;
/// Length of an IPv4 header without options, and of an IPv6 header, in bytes.
const IPV4: u32 = 20;
const IPV6: u32 = 40;
/// Shortest IPv4 header in 32-bit words (RFC 791 section 3.1).
const MIN_IHL: usize = 5;
/// Messages of other programs that one call skips at the most.
const MAX_SKIPPED: u32 = 256;

/// IP version of an echo message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn request(self) -> u8 {
        match self {
            Self::V4 => 8,
            Self::V6 => 128,
        }
    }

    fn reply(self) -> u8 {
        match self {
            Self::V4 => 0,
            Self::V6 => 129,
        }
    }
}

/// Echo requests of one socket.
pub(super) struct EchoPackets {
    /// A ping socket or a raw socket.
    socket: UdpSocket,
    peer: SocketAddr,
    local: IpAddr,
    family: Family,
    /// Identifier of the requests.
    id: u16,
    /// Whether received IPv4 packets begin with the IP header, as those of a raw socket do.
    has_ip_header: bool,
    ttl: u8,
}

impl EchoPackets {
    /// Connects a socket. `id` is the identifier of a raw socket; the kernel chooses that of a ping socket.
    ///
    /// # Errors
    /// There is no route to the peer, or the kernel lacks an option.
    pub(super) fn new(socket: Socket, peer: SocketAddr, id: Option<u16>) -> Result<Self, SocketError> {
        let v6 = peer.is_ipv6();
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        require_errors(socket.as_socket(), v6)?;
        probe_path_mtu(socket.as_socket(), v6)?;
        report_details(&socket)?;
        let host = SocketAddr::new(peer.ip(), 0);
        socket.connect(host).map_err(no_route(host))?;
        let local = socket.local_addr().map_err(failed("getsockname"))?;
        Ok(Self {
            socket,
            peer,
            local: local.ip(),
            family: if v6 { Family::V6 } else { Family::V4 },
            id: id.unwrap_or(local.port()),
            has_ip_header: id.is_some() && !v6,
            ttl: 0,
        })
    }
}

impl Packets for EchoPackets {
    fn peer(&self) -> Option<SocketAddr> {
        Some(self.peer)
    }

    fn local(&self) -> IpAddr {
        self.local
    }

    fn headers(&self) -> u32 {
        HEADER as u32 + if self.family == Family::V6 { IPV6 } else { IPV4 }
    }

    fn send(&mut self, sequence: u32, payload: &[u8], ttl: u8) -> io::Result<u32> {
        if self.ttl != ttl {
            let v6 = self.family == Family::V6;
            set_ttl(&self.socket, ttl, v6, !v6)?;
            self.ttl = ttl;
        }
        let message = request(self.family, self.id, sequence as u16, payload);
        let mut result = Ok(0);
        for _ in 0..ATTEMPTS {
            result = self.socket.send(&message);
            // The error of an earlier packet is reported once.
            if !matches!(&result, Err(error) if is_of_earlier(error)) {
                break;
            }
        }
        result.map(|_| self.headers() + payload.len() as u32)
    }

    fn wait(&self, nanos: u64) -> Result<bool, SocketError> {
        Ok(wait_readable(&[self.socket.as_socket()], nanos)?)
    }

    fn event(&mut self, into: &mut [u8]) -> Result<Option<Event>, SocketError> {
        for _ in 0..MAX_SKIPPED {
            let error = take_error(self.socket.as_socket(), into).map_err(failed("recvmsg(MSG_ERRQUEUE)"))?;
            let Some(error) = error else { break };
            let end = error.extension.unwrap_or(error.quoted).min(into.len());
            if let Some(payload) = quoted(self.family, self.id, &into[..end]) {
                return Ok(Some(Event::Error { error, probe: ProbeId::Payload(payload) }));
            }
        }
        for _ in 0..MAX_SKIPPED {
            let received = match receive_with_details(&self.socket, into) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_of_earlier(&error) => continue,
                Err(error) => return Err(failed("recvmsg")(error)),
            };
            let length = received.length.min(into.len());
            let Some(payload) = reply(self.family, self.has_ip_header, self.id, &into[..length]) else { continue };
            let from = SocketAddr::new(received.from.ip().to_canonical(), 0);
            let ttl = received.ttl;
            let arrived_unix_ns = received.arrived_unix_ns;
            let arrived = Arrived { length, from, ttl, arrived_unix_ns };
            return Ok(Some(Event::Reply { arrived, probe: ProbeId::Payload(payload) }));
        }
        Ok(None)
    }
}

/// Writes an echo request. The kernel fills in the checksum of ICMPv6, and the identifier and checksum of a ping socket.
fn request(family: Family, id: u16, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut message = vec![family.request(), 0, 0, 0];
    message.extend(id.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend(payload);
    if family == Family::V4 {
        let sum = checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
    }
    message
}

/// Returns the range of the data in an echo request that an ICMP error quotes after the IP header. Returns `None` if the request has
/// another identifier.
fn quoted(family: Family, id: u16, bytes: &[u8]) -> Option<Range<usize>> {
    data(family.request(), id, bytes)
}

/// Returns the range of the data in an echo reply. Returns `None` if the packet is something else, or has another identifier.
fn reply(family: Family, has_ip_header: bool, id: u16, bytes: &[u8]) -> Option<Range<usize>> {
    let offset = if has_ip_header { ipv4_header(bytes)? } else { 0 };
    let data = data(family.reply(), id, bytes.get(offset..)?)?;
    Some(offset + data.start..offset + data.end)
}

/// Returns the length of an IPv4 header in bytes.
fn ipv4_header(bytes: &[u8]) -> Option<usize> {
    let first = usize::from(*bytes.first()?);
    let words = first & 0xf;
    (first >> 4 == 4 && words >= MIN_IHL && words * 4 <= bytes.len()).then_some(words * 4)
}

/// Returns the range of the data in an ICMP message of this type with this identifier.
fn data(kind: u8, id: u16, bytes: &[u8]) -> Option<Range<usize>> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let is_own = header[..2] == [kind, 0] && header[4..6] == id.to_be_bytes();
    is_own.then_some(HEADER..bytes.len())
}

/// Reads a received packet and a quoted packet of each family. The first two bytes are the identifier.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let Some((id, packet)) = bytes.split_first_chunk::<2>() else { return };
    let id = u16::from_be_bytes(*id);
    for family in [Family::V4, Family::V6] {
        for range in [quoted(family, id, packet), reply(family, false, id, packet), reply(family, true, id, packet)] {
            assert!(range.is_none_or(|range| packet.get(range).is_some()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn own_messages_are_recognised() {
        let sent = request(Family::V4, 0x1234, 7, b"data");
        assert_eq!(checksum(&sent), 0);
        assert_eq!(quoted(Family::V4, 0x1234, &sent), Some(8..12));
        assert_eq!(quoted(Family::V4, 0x1235, &sent), None, "another program's");
        assert_eq!(quoted(Family::V4, 0x1234, &sent[..8]), Some(8..8), "a router that quotes 8 bytes");
        assert_eq!(quoted(Family::V4, 0x1234, &sent[..7]), None);
        assert_eq!(reply(Family::V4, false, 0x1234, &sent), None, "a request is no reply");
        let mut answer = sent;
        answer[0] = 0;
        assert_eq!(reply(Family::V4, false, 0x1234, &answer), Some(8..12));
        // An IP header with one word of options.
        let packet = [&[0x46][..], &[0; 23], &answer].concat();
        assert_eq!(reply(Family::V4, true, 0x1234, &packet), Some(32..36));
        for first in [0x44, 0x66, 0x4f] {
            let damaged = [&[first][..], &packet[1..]].concat();
            assert_eq!(reply(Family::V4, true, 0x1234, &damaged), None, "{first:x}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            fuzz(&bytes);
        }
    }
}
