//! UDP in batches, one call for each datagram: sendmmsg(2) of FreeBSD does the same within its library, and macOS has no such call.

use super::ancillary::{Message, receive};
use crate::Error;
use crate::socket::write_option;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

/// Names of the calls, as records have them.
pub const SEND: &str = "send";
/// See [`SEND`].
pub const SEGMENT: &str = "segmentation";
/// See [`SEND`].
pub const RECEIVE: &str = "recvmsg";
/// See [`SEND`].
pub const JOIN: &str = "joining";

/// Fails: the kernel cuts no buffers into datagrams.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn segment(_: &UdpSocket, _: u16) -> Result<(), Error> {
    Err(Error::new("cutting buffers into datagrams", "a UDP socket", io::ErrorKind::Unsupported))
}

/// Fails: the kernel joins no datagrams.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn join(_: &UdpSocket) -> Result<(), Error> {
    Err(Error::new("joining datagrams", "a UDP socket", io::ErrorKind::Unsupported))
}

/// Does nothing: the kernel joins no datagrams.
///
/// # Errors
/// None on this system.
pub fn stop_joining(_: &UdpSocket) -> Result<(), Error> {
    Ok(())
}

/// Fails: the kernel does not count drops of a socket.
///
/// # Errors
/// Always, with `Unsupported`.
pub fn tell_drops(_: &UdpSocket) -> Result<(), Error> {
    Err(Error::new("reading drops", "a UDP socket", io::ErrorKind::Unsupported))
}

/// Makes the kernel report the type of service or traffic class of each datagram: see [`Arrived::traffic_class`].
///
/// # Errors
/// The kernel refuses the option.
pub fn report_traffic_class(socket: &UdpSocket) -> Result<(), Error> {
    if matches!(socket.local_addr(), Ok(address) if address.is_ipv6()) {
        let name = "setsockopt(IPV6_RECVTCLASS)";
        return write_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, &1i32, name);
    }
    write_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_RECVTOS, &1i32, "setsockopt(IP_RECVTOS)")
}

/// Does nothing: an unconnected socket does not report the ICMP messages "port unreachable".
///
/// # Errors
/// None on this system.
pub fn ignore_unreachable(_socket: &UdpSocket) -> io::Result<()> {
    Ok(())
}

/// Receives one datagram; with `wait`, waits for it as long as the socket's read timeout says. Returns its length, or one more than that of
/// `into` if it did not fit.
///
/// # Errors
/// recvmsg(2) fails.
pub fn receive_one(socket: &UdpSocket, into: &mut [u8], wait: bool) -> io::Result<usize> {
    let message = receive(socket.as_fd(), into, if wait { 0 } else { libc::MSG_DONTWAIT })?;
    Ok(message.length + usize::from(message.truncated))
}

/// Datagrams of one size on their way out of a connected socket.
#[derive(Debug)]
pub struct Outgoing {
    payload: Vec<u8>,
    datagram_bytes: usize,
}

impl Outgoing {
    /// Makes room for `buffers` times `datagrams_per_buffer` datagrams. `fill` fills them.
    pub fn new(
        buffers: usize,
        datagrams_per_buffer: usize,
        datagram_bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Self {
        let mut payload = vec![0; buffers * datagrams_per_buffer * datagram_bytes];
        fill(&mut payload);
        Self { payload, datagram_bytes }
    }

    /// Returns how many datagrams it holds.
    pub fn capacity(&self) -> usize {
        self.payload.len() / self.datagram_bytes
    }

    /// The first `count` datagrams, to be written before sending.
    #[inline]
    pub fn datagrams(&mut self, count: usize) -> impl Iterator<Item = &mut [u8]> {
        self.payload.chunks_exact_mut(self.datagram_bytes).take(count)
    }

    /// Sends datagrams `from..to`; returns how many the kernel took.
    ///
    /// # Errors
    /// The kernel refuses the first.
    pub fn send(&mut self, socket: &UdpSocket, from: usize, to: usize) -> io::Result<usize> {
        assert!(from < to && to <= self.capacity());
        let datagrams =
            self.payload[from * self.datagram_bytes..to * self.datagram_bytes].chunks_exact(self.datagram_bytes);
        for (sent, datagram) in datagrams.enumerate() {
            match socket.send(datagram) {
                Ok(_) => {}
                // The next call meets the error again.
                Err(_) if sent > 0 => return Ok(sent),
                Err(error) => return Err(error),
            }
        }
        Ok(to - from)
    }
}

/// Datagrams as they arrive.
#[derive(Debug)]
pub struct Incoming {
    payload: Vec<u8>,
    buffer_bytes: usize,
    messages: Vec<Message>,
    /// Error that followed the last datagrams. The next call returns it.
    error: Option<io::Error>,
}

/// One datagram as it arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    /// Its bytes.
    pub payload: &'a [u8],
    /// Its length.
    pub datagram_bytes: usize,
    /// It was longer than the buffer.
    pub truncated: bool,
    /// Always zero: the system does not count drops of a socket.
    pub drops: u32,
    /// Type of service or traffic class, with [`report_traffic_class`].
    pub traffic_class: Option<u8>,
}

impl Incoming {
    /// Makes room for `buffers` datagrams of up to `buffer_bytes` each.
    pub fn new(buffers: usize, buffer_bytes: usize) -> Self {
        let payload = vec![0; buffers * buffer_bytes];
        Self { payload, buffer_bytes, messages: Vec::with_capacity(buffers), error: None }
    }

    /// Receives what is there, waiting for the first datagram as long as the socket's read timeout says; or, with `spin`, not at all. What was
    /// received before is gone.
    ///
    /// # Errors
    /// recvmsg(2) fails, `WouldBlock` if no datagram came in time.
    pub fn receive(&mut self, socket: &UdpSocket, spin: bool) -> io::Result<usize> {
        self.messages.clear();
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut flags = if spin { libc::MSG_DONTWAIT } else { 0 };
        for buffer in self.payload.chunks_exact_mut(self.buffer_bytes) {
            match receive(socket.as_fd(), buffer, flags) {
                Ok(message) => self.messages.push(message),
                Err(error) if self.messages.is_empty() => return Err(error),
                Err(error) => {
                    self.error = Some(error).filter(|error| error.kind() != io::ErrorKind::WouldBlock);
                    break;
                }
            }
            flags = libc::MSG_DONTWAIT;
        }
        Ok(self.messages.len())
    }

    /// The datagrams that the last call received.
    #[inline]
    pub fn arrived(&self) -> impl Iterator<Item = Arrived<'_>> {
        self.payload.chunks_exact(self.buffer_bytes).zip(&self.messages).map(|(buffer, message)| Arrived {
            payload: &buffer[..message.length],
            datagram_bytes: message.length,
            truncated: message.truncated,
            drops: 0,
            traffic_class: message.details.traffic_class,
        })
    }
}
