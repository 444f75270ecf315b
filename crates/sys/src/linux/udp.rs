//! UDP in batches, with segmentation and joining left to the kernel.
//!
//! Both batches keep raw pointers into their own buffers and so stay on the thread that made them.

use super::mmsg;
use crate::Error;
use crate::socket::write_option;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};

/// The kernel cuts each buffer handed over into datagrams of `datagram_bytes` (UDP_SEGMENT).
pub fn segment(socket: &UdpSocket, datagram_bytes: u16) -> Result<(), Error> {
    let size = i32::from(datagram_bytes);
    write_option(socket.as_fd(), libc::IPPROTO_UDP, libc::UDP_SEGMENT, &size, "setsockopt(UDP_SEGMENT)")
}

/// The kernel may deliver runs of datagrams of one size in one buffer (UDP_GRO).
pub fn join(socket: &UdpSocket) -> Result<(), Error> {
    write_option(socket.as_fd(), libc::IPPROTO_UDP, libc::UDP_GRO, &1i32, "setsockopt(UDP_GRO)")
}

/// The kernel says with each buffer how many the socket had dropped when it came to its queue (SO_RXQ_OVFL): see
/// [`Arrived::drops`]. As long as none was dropped, this costs nothing.
pub fn tell_drops(socket: &UdpSocket) -> Result<(), Error> {
    write_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &1i32, "setsockopt(SO_RXQ_OVFL)")
}

/// The kernel reports the type of service or traffic class of each datagram (IP_RECVTOS of ip(7), IPV6_RECVTCLASS of ipv6(7)): see
/// [`Arrived::traffic_class`]. It joins only datagrams of one class.
pub fn report_traffic_class(socket: &UdpSocket) -> Result<(), Error> {
    if matches!(socket.local_addr(), Ok(address) if address.is_ipv6()) {
        let name = "setsockopt(IPV6_RECVTCLASS)";
        write_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, &1i32, name)?;
    }
    // An IPv6 socket may receive IPv4 too.
    write_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVTOS, &1i32, "setsockopt(IP_RECVTOS)")
}

/// Does nothing: an unconnected socket does not report the ICMP messages "port unreachable" (udp(7)).
///
/// # Errors
/// None on this system.
pub fn ignore_unreachable(_socket: &UdpSocket) -> io::Result<()> {
    Ok(())
}

/// Takes one datagram; with `wait`, waits for it as long as the socket's read timeout says. Returns its length, which is
/// above that of `into` if it did not fit.
pub fn receive_one(socket: &UdpSocket, into: &mut [u8], wait: bool) -> io::Result<usize> {
    let flags = if wait { MsgFlags::MSG_TRUNC } else { MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT };
    recv(socket.as_raw_fd(), into, flags).map_err(Errno::into)
}

/// Datagrams of one size on their way out of a connected socket.
#[derive(Debug)]
pub struct Outgoing {
    payload: Vec<u8>,
    datagram_bytes: usize,
    datagrams_per_buffer: usize,
    pieces: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Outgoing {
    /// Room for `buffers` times `datagrams_per_buffer` datagrams. More than one a buffer needs [`segment`].
    /// `payload` fills them.
    pub fn new(
        buffers: usize,
        datagrams_per_buffer: usize,
        datagram_bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Self {
        let mut payload = vec![0; buffers * datagrams_per_buffer * datagram_bytes];
        fill(&mut payload);
        let buffer_bytes = datagrams_per_buffer * datagram_bytes;
        let mut pieces: Vec<libc::iovec> = payload
            .chunks_exact_mut(buffer_bytes)
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer_bytes })
            .collect();
        let headers = pieces.iter_mut().map(header).collect();
        Self { payload, datagram_bytes, datagrams_per_buffer, pieces, headers }
    }

    /// How many datagrams it holds.
    pub fn capacity(&self) -> usize {
        self.pieces.len() * self.datagrams_per_buffer
    }

    /// The first `count` datagrams, to be written before sending.
    #[inline]
    pub fn datagrams(&mut self, count: usize) -> impl Iterator<Item = &mut [u8]> {
        self.payload.chunks_exact_mut(self.datagram_bytes).take(count)
    }

    /// Hands over datagrams `from..to`; returns how many the kernel took. `from` must begin a buffer.
    pub fn send(&mut self, socket: &UdpSocket, from: usize, to: usize) -> io::Result<usize> {
        assert!(from < to && to <= self.capacity() && from.is_multiple_of(self.datagrams_per_buffer));
        let (first, end) = (from / self.datagrams_per_buffer, to.div_ceil(self.datagrams_per_buffer));
        let full = self.datagrams_per_buffer * self.datagram_bytes;
        self.pieces[end - 1].iov_len = (to - (end - 1) * self.datagrams_per_buffer) * self.datagram_bytes;
        // SAFETY: the headers point to `pieces`, and those into `payload`; neither vector has moved or grown since
        // `new`, all lengths lie within `payload`, and the kernel only reads the buffers.
        let sent = unsafe { mmsg::send(socket.as_fd(), &mut self.headers[first..end], libc::MSG_NOSIGNAL) };
        self.pieces[end - 1].iov_len = full;
        Ok(((first + sent?) * self.datagrams_per_buffer).min(to) - from)
    }
}

/// Datagrams as they arrive.
#[derive(Debug)]
pub struct Incoming {
    payload: Vec<u8>,
    buffer_bytes: usize,
    control: Vec<Control>,
    /// The headers point to these, which must stay where they are.
    _pieces: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    taken: usize,
}

/// Room for the three messages of ancillary data that may come with a buffer, UDP_GRO, SO_RXQ_OVFL and IP_TOS or IPV6_TCLASS, aligned as
/// the kernel demands.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
struct Control([u8; 3 * CONTROL_MESSAGE]);

/// Ancillary data of a buffer.
#[derive(Debug, Clone, Copy, Default)]
struct Ancillary {
    /// Size of the joined datagrams, if the kernel joined any.
    joined: Option<usize>,
    /// Drops of the socket so far.
    drops: u32,
    traffic_class: Option<u8>,
}

/// A message of one int: its header, the int, and padding.
const CONTROL_MESSAGE: usize = mem::size_of::<libc::cmsghdr>() + mem::size_of::<usize>();

/// One buffer as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// The bytes: one datagram, or several of `datagram_bytes` each (the last may be shorter).
    pub payload: &'a [u8],
    /// The size of each.
    pub datagram_bytes: usize,
    /// The datagram was longer than the buffer.
    pub truncated: bool,
    /// What the socket had dropped before this came to its queue, as [`crate::socket::drops`] counts; zero without [`tell_drops`].
    pub drops: u32,
    /// Type of service or traffic class, with [`report_traffic_class`].
    pub traffic_class: Option<u8>,
}

impl Incoming {
    /// Room for `buffers` buffers of `buffer_bytes` each.
    pub fn new(buffers: usize, buffer_bytes: usize) -> Self {
        let mut payload = vec![0u8; buffers * buffer_bytes];
        let mut control = vec![Control([0; 3 * CONTROL_MESSAGE]); buffers];
        let mut pieces: Vec<libc::iovec> = payload
            .chunks_exact_mut(buffer_bytes)
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer_bytes })
            .collect();
        let mut headers: Vec<libc::mmsghdr> = pieces.iter_mut().map(header).collect();
        for (header, control) in headers.iter_mut().zip(&mut control) {
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
        }
        Self { payload, buffer_bytes, control, _pieces: pieces, headers, taken: 0 }
    }

    /// Takes what is there, waiting for the first buffer as long as the socket's read timeout says; or, with `spin`, not
    /// at all. What was taken before is gone.
    pub fn receive(&mut self, socket: &UdpSocket, spin: bool) -> io::Result<usize> {
        self.taken = 0;
        for header in &mut self.headers {
            header.msg_hdr.msg_controllen = mem::size_of::<Control>() as _;
        }
        let flags = if spin { libc::MSG_DONTWAIT } else { libc::MSG_WAITFORONE };
        // SAFETY: each header points to an iovec in `_pieces`, that into `payload`, and to a `Control`; none of these
        // vectors has moved or grown since `new`, and the lengths are those of the buffers.
        self.taken = unsafe { mmsg::receive(socket.as_fd(), &mut self.headers, flags) }?;
        Ok(self.taken)
    }

    /// The buffers that the last call took.
    #[allow(clippy::unnecessary_cast, reason = "musl's msg_controllen is 32 bits wide")]
    #[inline]
    pub fn arrived(&self) -> impl Iterator<Item = Arrived<'_>> {
        self.payload.chunks_exact(self.buffer_bytes).zip(&self.headers).zip(&self.control).take(self.taken).map(
            |((buffer, header), control)| {
                let length = (header.msg_len as usize).min(buffer.len());
                let ancillary = control.read(header.msg_hdr.msg_controllen as usize);
                Arrived {
                    payload: &buffer[..length],
                    datagram_bytes: ancillary.joined.unwrap_or(length),
                    truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                    drops: ancillary.drops,
                    traffic_class: ancillary.traffic_class,
                }
            },
        )
    }
}

impl Control {
    /// Reads the messages in the first `length` bytes.
    #[inline]
    fn read(&self, length: usize) -> Ancillary {
        const HEADER: usize = mem::size_of::<libc::cmsghdr>();
        let mut ancillary = Ancillary::default();
        for message in self.0[..length.min(self.0.len())].chunks_exact(CONTROL_MESSAGE) {
            let word = |at: usize| i32::from_ne_bytes(message[at..at + 4].try_into().expect("four bytes"));
            let level = word(mem::offset_of!(libc::cmsghdr, cmsg_level));
            let kind = word(mem::offset_of!(libc::cmsghdr, cmsg_type));
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    ancillary.joined = usize::try_from(word(HEADER)).ok().filter(|bytes| *bytes > 0)
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => ancillary.drops = word(HEADER) as u32,
                // One byte of IPv4, an int of IPv6.
                (libc::IPPROTO_IP, libc::IP_TOS) => ancillary.traffic_class = Some(message[HEADER]),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => ancillary.traffic_class = Some(word(HEADER) as u8),
                _ => (),
            }
        }
        ancillary
    }
}

fn header(piece: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: a header of zeroes and null pointers is a valid, empty one.
    let mut header: libc::mmsghdr = unsafe { mem::zeroed() };
    header.msg_hdr.msg_iov = piece;
    header.msg_hdr.msg_iovlen = 1;
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pair() -> (UdpSocket, UdpSocket) {
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").expect("binds"), UdpSocket::bind("127.0.0.1:0").expect("binds"));
        a.connect(b.local_addr().expect("bound")).expect("connects");
        b.connect(a.local_addr().expect("bound")).expect("connects");
        b.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        (a, b)
    }

    fn number(outgoing: &mut Outgoing, count: usize) {
        outgoing.datagrams(count).enumerate().for_each(|(n, datagram)| datagram[0] = n as u8);
    }

    #[test]
    fn joined_datagrams_come_apart_as_they_were_sent() {
        let (a, b) = pair();
        segment(&a, 100).expect("Linux 4.18 and later segment");
        join(&b).expect("Linux 5.0 and later join");
        let mut outgoing = Outgoing::new(2, 10, 100, |payload| payload.fill(9));
        number(&mut outgoing, 13);
        assert_eq!(outgoing.send(&a, 0, 13).expect("sends"), 13);
        let mut incoming = Incoming::new(4, 65_536);
        let mut seen = Vec::new();
        while seen.len() < 13 {
            assert!(incoming.receive(&b, false).expect("receives") > 0);
            for buffer in incoming.arrived() {
                assert!(!buffer.truncated);
                seen.extend(buffer.payload.chunks(buffer.datagram_bytes).map(|datagram| (datagram[0], datagram.len())));
            }
        }
        assert_eq!(seen, (0..13).map(|n| (n, 100)).collect::<Vec<_>>());
    }

    #[test]
    fn the_traffic_class_is_reported_in_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let sender = UdpSocket::bind(address).expect("binds");
            let receiver = UdpSocket::bind(address).expect("binds");
            receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
            join(&receiver).expect("Linux 5.0 and later join");
            tell_drops(&receiver).expect("sets");
            let mut incoming = Incoming::new(1, 100);
            let mut received = |class: i32| {
                let (level, name) = match sender.local_addr() {
                    Ok(address) if address.is_ipv4() => (libc::IPPROTO_IP, libc::IP_TOS),
                    _ => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
                };
                write_option(sender.as_fd(), level, name, &class, "setsockopt(IP_TOS)").expect("sets");
                sender.send_to(b"x", receiver.local_addr().expect("bound")).expect("sends");
                incoming.receive(&receiver, false).expect("receives");
                incoming.arrived().map(|buffer| buffer.traffic_class).collect::<Vec<_>>()
            };
            assert_eq!(received(0xb8), [None], "{address}: not asked for");
            report_traffic_class(&receiver).expect("sets");
            assert_eq!(received(0xb8), [Some(0xb8)], "{address}");
            assert_eq!(received(0), [Some(0)], "{address}");
        }
    }

    #[test]
    fn drops_are_told_as_of_when_a_datagram_was_queued() {
        let (a, b) = pair();
        write_option(b.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &1i32, "setsockopt(SO_RCVBUF)").expect("sets");
        tell_drops(&b).expect("sets");
        let send = |count| (0..count).for_each(|_| assert_eq!(a.send(&[7; 1_000]).expect("sends"), 1_000));
        let mut incoming = Incoming::new(64, 2_000);
        let mut take = || {
            incoming.receive(&b, false).expect("receives");
            incoming.arrived().map(|buffer| buffer.drops).collect::<Vec<_>>()
        };
        send(20);
        let kept = take();
        assert!(
            kept.len() < 20 && kept.iter().all(|drops| *drops == 0),
            "{kept:?}: the first were queued before any was dropped"
        );
        send(1);
        assert_eq!(take(), [20 - kept.len() as u32]);
        assert_eq!(crate::socket::drops(b.as_fd()).expect("reads"), Some(20 - kept.len() as u32));
    }

    #[test]
    fn plain_datagrams_stay_apart_and_long_ones_are_told() {
        let (a, b) = pair();
        let mut outgoing = Outgoing::new(3, 1, 100, |_| ());
        number(&mut outgoing, 3);
        assert_eq!(outgoing.send(&a, 0, 3).expect("sends"), 3);
        let mut incoming = Incoming::new(8, 64);
        assert_eq!(incoming.receive(&b, false).expect("receives"), 3);
        let seen: Vec<_> = incoming.arrived().map(|buffer| (buffer.payload[0], buffer.truncated)).collect();
        assert_eq!(seen, [(0, true), (1, true), (2, true)]);
        assert_eq!(incoming.receive(&b, true).expect_err("nothing is there").kind(), io::ErrorKind::WouldBlock);
    }
}
