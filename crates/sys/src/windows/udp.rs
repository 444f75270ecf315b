//! UDP in batches, with segmentation and joining left to the system (USO, URO; Windows 10 2004).
//!
//! Winsock has no call for several datagrams: a batch is a call for each buffer.

use super::message::{self, Control};
use crate::Error;
use crate::socket::{raw, wait_readable, write_option};
use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::windows::io::AsSocket as _;
use std::ptr;
use windows_sys::Win32::Networking::WinSock::{
    IP_RECVTOS, IP_TOS, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP, IPV6_RECVTCLASS, IPV6_TCLASS, SIO_UDP_CONNRESET, SOCKET,
    UDP_COALESCED_INFO as COALESCED_INFO, UDP_RECV_MAX_COALESCED_SIZE, UDP_SEND_MSG_SIZE, WSAECONNRESET, WSAEMSGSIZE,
    WSAIoctl, send,
};

const UDP_COALESCED_INFO: i32 = COALESCED_INFO as i32;
/// Largest buffer in bytes that the system may join datagrams into.
const JOINED_BYTES: u32 = 65_535;

/// Names of the calls, as records have them.
pub const SEND: &str = "send";
/// See [`SEND`].
pub const SEGMENT: &str = "USO";
/// See [`SEND`].
pub const RECEIVE: &str = "WSARecvMsg";
/// See [`SEND`].
pub const JOIN: &str = "URO";

/// Makes the system cut each buffer that is sent into datagrams of `datagram_bytes` (UDP_SEND_MSG_SIZE).
///
/// # Errors
/// The system lacks the option, as Wine 8.0 does.
pub fn segment(socket: &UdpSocket, datagram_bytes: u16) -> Result<(), Error> {
    let size = u32::from(datagram_bytes);
    write_option(socket.as_socket(), IPPROTO_UDP, UDP_SEND_MSG_SIZE, &size, "setsockopt(UDP_SEND_MSG_SIZE)")
}

/// Lets the system deliver runs of datagrams of one size in one buffer (UDP_RECV_MAX_COALESCED_SIZE). Some network drivers join datagrams and do
/// not report their size: readers must check it, and call [`stop_joining`].
///
/// # Errors
/// The system lacks the option, as Wine 8.0 does.
pub fn join(socket: &UdpSocket) -> Result<(), Error> {
    set_joined_bytes(socket, JOINED_BYTES)
}

/// Ends [`join`].
///
/// # Errors
/// The system lacks the option.
pub fn stop_joining(socket: &UdpSocket) -> Result<(), Error> {
    set_joined_bytes(socket, 0)
}

fn set_joined_bytes(socket: &UdpSocket, bytes: u32) -> Result<(), Error> {
    let (option, call) = (UDP_RECV_MAX_COALESCED_SIZE, "setsockopt(UDP_RECV_MAX_COALESCED_SIZE)");
    write_option(socket.as_socket(), IPPROTO_UDP, option, &bytes, call)
}

/// Fails on Windows, which does not count the drops of a socket.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn tell_drops(_socket: &UdpSocket) -> Result<(), Error> {
    Err(Error::new("setsockopt(SO_RXQ_OVFL)", "a socket", io::ErrorKind::Unsupported))
}

/// Makes the system report the type of service or traffic class of each datagram (IP_RECVTOS, IPV6_RECVTCLASS): see
/// [`Arrived::traffic_class`].
///
/// # Errors
/// The system lacks the option.
pub fn report_traffic_class(socket: &UdpSocket) -> Result<(), Error> {
    if matches!(socket.local_addr(), Ok(address) if address.is_ipv6()) {
        write_option(socket.as_socket(), IPPROTO_IPV6, IPV6_RECVTCLASS, &1u32, "setsockopt(IPV6_RECVTCLASS)")
    } else {
        write_option(socket.as_socket(), IPPROTO_IP, IP_RECVTOS, &1u32, "setsockopt(IP_RECVTOS)")
    }
}

/// Makes an unconnected socket ignore the ICMP messages "port unreachable", which otherwise fail its next receive with WSAECONNRESET
/// (SIO_UDP_CONNRESET).
///
/// # Errors
/// The system refuses the call.
pub fn ignore_unreachable(socket: &UdpSocket) -> io::Result<()> {
    let report = 0u32;
    let mut returned = 0;
    // SAFETY: the call reads one u32 and writes another, which outlive it; without an overlapped structure it has ended when it returns.
    let result = unsafe {
        WSAIoctl(
            raw(socket.as_socket()),
            SIO_UDP_CONNRESET,
            (&raw const report).cast(),
            mem::size_of::<u32>() as u32,
            ptr::null_mut(),
            0,
            &raw mut returned,
            ptr::null_mut(),
            None,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives one datagram; with `wait`, waits for it as long as the socket's read timeout says. Returns its length, which is
/// above that of `into` if it did not fit.
///
/// # Errors
/// `WouldBlock` or `TimedOut` if nothing came; `ConnectionRefused` if the peer has no such port.
pub fn receive_one(socket: &UdpSocket, into: &mut [u8], wait: bool) -> io::Result<usize> {
    if !wait {
        check_readable(socket)?;
    }
    match socket.recv(into) {
        // Winsock fills the buffer and does not say how long the datagram was.
        Err(error) if error.raw_os_error() == Some(WSAEMSGSIZE) => Ok(into.len() + 1),
        received => received.map_err(refused),
    }
}

/// Datagrams of one size to be sent by a connected socket.
#[derive(Debug)]
pub struct Outgoing {
    payload: Vec<u8>,
    datagram_bytes: usize,
    datagrams_per_buffer: usize,
}

impl Outgoing {
    /// Creates room for `buffers` times `datagrams_per_buffer` datagrams. More than one a buffer needs [`segment`].
    /// `fill` writes their first content.
    pub fn new(
        buffers: usize,
        datagrams_per_buffer: usize,
        datagram_bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Self {
        let mut payload = vec![0; buffers * datagrams_per_buffer * datagram_bytes];
        fill(&mut payload);
        Self { payload, datagram_bytes, datagrams_per_buffer }
    }

    /// Returns how many datagrams there is room for.
    pub fn capacity(&self) -> usize {
        self.payload.len() / self.datagram_bytes
    }

    /// Returns the first `count` datagrams, to be written before sending.
    #[inline]
    pub fn datagrams(&mut self, count: usize) -> impl Iterator<Item = &mut [u8]> {
        self.payload.chunks_exact_mut(self.datagram_bytes).take(count)
    }

    /// Sends datagrams `from..to`. Returns how many the system took. `from` must begin a buffer.
    ///
    /// # Errors
    /// The system took none.
    pub fn send(&mut self, socket: &UdpSocket, from: usize, to: usize) -> io::Result<usize> {
        assert!(from < to && to <= self.capacity() && from.is_multiple_of(self.datagrams_per_buffer));
        let bytes = &self.payload[from * self.datagram_bytes..to * self.datagram_bytes];
        let mut sent = 0;
        for buffer in bytes.chunks(self.datagrams_per_buffer * self.datagram_bytes) {
            // SAFETY: the system reads the live buffer; the socket is borrowed for the call.
            let result = unsafe { send(raw(socket.as_socket()), buffer.as_ptr(), buffer.len() as i32, 0) };
            if result < 0 {
                let error = io::Error::last_os_error();
                return if sent > 0 { Ok(sent) } else { Err(refused(error)) };
            }
            sent += buffer.len() / self.datagram_bytes;
        }
        Ok(sent)
    }
}

/// Datagrams as they arrive.
#[derive(Debug)]
pub struct Incoming {
    payload: Vec<u8>,
    buffer_bytes: usize,
    taken: Vec<Taken>,
    /// Socket of the last call, which does not block.
    never_blocks: Option<SOCKET>,
}

/// State of a buffer.
#[derive(Debug, Clone, Copy)]
struct Taken {
    length: usize,
    truncated: bool,
    ancillary: Ancillary,
}

/// Ancillary data of a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ancillary {
    /// Size of the joined datagrams, if the system joined any.
    joined: Option<usize>,
    traffic_class: Option<u8>,
}

/// One buffer as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// The bytes: one datagram, or several of `datagram_bytes` each (the last may be shorter).
    pub payload: &'a [u8],
    /// The size of each.
    pub datagram_bytes: usize,
    /// The datagram was longer than the buffer.
    pub truncated: bool,
    /// Drops of the socket. Always zero: [`tell_drops`] fails.
    pub drops: u32,
    /// Type of service or traffic class, with [`report_traffic_class`].
    pub traffic_class: Option<u8>,
}

impl Incoming {
    /// Creates room for `buffers` buffers of `buffer_bytes` each.
    pub fn new(buffers: usize, buffer_bytes: usize) -> Self {
        Self {
            payload: vec![0; buffers * buffer_bytes],
            buffer_bytes,
            taken: Vec::with_capacity(buffers),
            never_blocks: None,
        }
    }

    /// Receives what is there, waiting for the first buffer as long as the socket's read timeout says; or, with `spin`, not
    /// at all. What was received before is gone. The socket does not block afterwards, so that a batch takes no call but those that receive.
    ///
    /// # Errors
    /// `WouldBlock` or `TimedOut` if nothing came; `ConnectionRefused` if the peer has no such port.
    pub fn receive(&mut self, socket: &UdpSocket, spin: bool) -> io::Result<usize> {
        let handle = raw(socket.as_socket());
        if self.never_blocks != Some(handle) {
            socket.set_nonblocking(true)?;
            self.never_blocks = Some(handle);
        }
        match self.receive_now(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !spin => {
                let timeout = socket.read_timeout()?.map_or(u64::MAX, |timeout| timeout.as_nanos() as u64);
                if !wait_readable(&[socket.as_socket()], timeout).map_err(|error| error.source)? {
                    return Err(error);
                }
                self.receive_now(socket)
            }
            received => received,
        }
    }

    /// Receives what is there.
    fn receive_now(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.taken.clear();
        for buffer in self.payload.chunks_exact_mut(self.buffer_bytes) {
            match receive_message(socket, buffer) {
                Ok(taken) => self.taken.push(taken),
                Err(error) if self.taken.is_empty() => return Err(refused(error)),
                Err(_) => break,
            }
        }
        Ok(self.taken.len())
    }

    /// Returns the buffers that the last call received.
    #[inline]
    pub fn arrived(&self) -> impl Iterator<Item = Arrived<'_>> {
        self.payload.chunks_exact(self.buffer_bytes).zip(&self.taken).map(|(buffer, taken)| Arrived {
            payload: &buffer[..taken.length],
            datagram_bytes: taken.ancillary.joined.unwrap_or(taken.length),
            truncated: taken.truncated,
            drops: 0,
            traffic_class: taken.ancillary.traffic_class,
        })
    }
}

/// Receives one buffer with its ancillary data.
fn receive_message(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Taken> {
    let mut control = Control::new();
    let message = message::receive(socket.as_socket(), buffer, &mut control)?;
    Ok(Taken { length: message.length, truncated: message.truncated, ancillary: read_control(&control) })
}

fn read_control(control: &Control) -> Ancillary {
    let mut ancillary = Ancillary::default();
    for (level, kind, data) in control.messages() {
        let Some(word) = data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) else { continue };
        match (level, kind) {
            (IPPROTO_UDP, UDP_COALESCED_INFO) => {
                ancillary.joined = usize::try_from(word).ok().filter(|bytes| *bytes > 0);
            }
            (IPPROTO_IP, IP_TOS) | (IPPROTO_IPV6, IPV6_TCLASS) => ancillary.traffic_class = Some(word as u8),
            _ => (),
        }
    }
    ancillary
}

fn check_readable(socket: &UdpSocket) -> io::Result<()> {
    match wait_readable(&[socket.as_socket()], 0) {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.source),
    }
}

/// Windows reports "port unreachable" of an earlier datagram as WSAECONNRESET. Converted to the number of other systems.
fn refused(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(WSAECONNRESET) => io::Error::from_raw_os_error(crate::socket::ECONNREFUSED),
        _ => error,
    }
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

    #[test]
    fn sizes_of_joined_datagrams_and_classes_are_read() {
        let read = |messages: &[(i32, i32, i32)]| {
            let mut control = Control::new();
            for (level, kind, value) in messages {
                control.push(*level, *kind, &value.to_ne_bytes());
            }
            read_control(&control)
        };
        let messages = [(99, 99, 7), (IPPROTO_UDP, UDP_COALESCED_INFO, 1_448), (IPPROTO_IPV6, IPV6_TCLASS, 0xb8)];
        assert_eq!(read(&messages), Ancillary { joined: Some(1_448), traffic_class: Some(0xb8) });
        assert_eq!(read(&[(IPPROTO_UDP, UDP_COALESCED_INFO, 0)]), Ancillary::default());
    }

    #[test]
    fn datagrams_stay_apart_and_long_ones_are_reported() {
        let (a, b) = pair();
        let mut outgoing = Outgoing::new(3, 1, 100, |_| ());
        outgoing.datagrams(3).enumerate().for_each(|(n, datagram)| datagram[0] = n as u8);
        assert_eq!(outgoing.send(&a, 0, 3).expect("sends"), 3);
        let mut incoming = Incoming::new(8, 64);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            incoming.receive(&b, false).expect("receives");
            seen.extend(incoming.arrived().map(|buffer| (buffer.payload[0], buffer.payload.len(), buffer.truncated)));
        }
        assert_eq!(seen, [(0, 64, true), (1, 64, true), (2, 64, true)]);
        assert_eq!(incoming.receive(&b, true).expect_err("nothing is left").kind(), io::ErrorKind::WouldBlock);
        outgoing.send(&a, 0, 1).expect("sends");
        assert_eq!(receive_one(&b, &mut [0; 64], true).expect("receives"), 65);
        outgoing.send(&a, 0, 1).expect("sends");
        assert_eq!(receive_one(&b, &mut [0; 100], true).expect("receives"), 100);
    }

    /// Wine 8.0 has neither; on Windows the datagrams come apart as they were sent.
    #[test]
    fn joined_datagrams_come_apart_or_the_options_are_refused() {
        let (a, b) = pair();
        let segments = segment(&a, 100).is_ok();
        let _ = join(&b);
        let each = if segments { 10 } else { 1 };
        let mut outgoing = Outgoing::new(20 / each, each, 100, |payload| payload.fill(9));
        assert_eq!(outgoing.send(&a, 0, 20).expect("sends"), 20);
        let mut incoming = Incoming::new(4, 65_536);
        let mut lengths = Vec::new();
        while lengths.len() < 20 {
            incoming.receive(&b, false).expect("receives");
            for buffer in incoming.arrived() {
                lengths.extend(buffer.payload.chunks(buffer.datagram_bytes).map(<[u8]>::len));
            }
        }
        assert_eq!(lengths, [100; 20]);
    }

    #[test]
    fn closed_port_refuses_or_is_ignored() {
        for ignored in [false, true] {
            let (a, b) = pair();
            a.set_read_timeout(Some(Duration::from_millis(300))).expect("sets");
            if ignored {
                ignore_unreachable(&a).expect("sets");
            }
            drop(b);
            a.send(b"x").expect("sends");
            let error = receive_one(&a, &mut [0; 8], true).expect_err("nothing answers");
            let refused = error.kind() == io::ErrorKind::ConnectionRefused;
            let silent = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
            assert!(silent || refused && !ignored, "{error}");
        }
    }
}
