//! TCP SYN segments: each probe is a connection attempt of a socket of its own.
//!
//! A router's ICMP error ends the attempt and lies in the socket's error queue. The far end answers with SYN-ACK or RST. The socket is
//! then closed with a reset, so that no connection stays. An attempt without an answer is closed before the kernel repeats its SYN
//! after 1 s (RFC 6298 section 2.1), so that later answers are lost.
//!
//! Probes have the source port of the first probe, so that routers that balance flows send them one way. A probe that is sent while
//! another waits for its answer has a port of its own, because two attempts cannot share both ports.

use super::contract::{Arrived, Client, Event, Packets, ProbeId, require_errors, set_ttl};
use linerate_engine::{SocketError, SocketSpec, failed};
use linerate_model::{ProbePacket, Transport};
use linerate_sys::clock;
use linerate_sys::error_queue::take_error;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::{ECONNREFUSED, EINPROGRESS, wait_ready_each};
use socket2::Socket;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Most attempts at the same time.
pub(super) const MAX_OPEN: usize = 64;
/// Time after which an attempt is closed, nanoseconds.
const TIMEOUT: u64 = 950_000_000;
/// Difference of the lengths of an IPv6 and an IPv4 header in bytes.
const IPV6_MORE: u32 = 20;

/// Connection attempts to one port.
pub(super) struct TcpSynPackets {
    client: Client,
    local: IpAddr,
    /// Source port of the first probe.
    port: Option<u16>,
    /// Attempts without an answer, oldest first.
    attempts: VecDeque<Attempt>,
}

struct Attempt {
    socket: Socket,
    sequence: u32,
    sent_at: u64,
}

impl TcpSynPackets {
    /// Returns the packets to a port.
    ///
    /// # Errors
    /// There is no route to the peer, or the system does not report the answers of routers.
    pub(super) fn to(client: Client) -> Result<Self, SocketError> {
        let local = client.local()?;
        let packets = Self { client, local, port: None, attempts: VecDeque::new() };
        packets.open(1, 0)?;
        Ok(packets)
    }

    /// Opens a socket for one probe, at the source port `port` if it is not 0.
    fn open(&self, ttl: u8, port: u16) -> Result<Socket, SocketError> {
        let v6 = self.client.peer.is_ipv6();
        let spec = SocketSpec { bind: None, ..self.client.spec(Transport::Tcp) };
        let socket = linerate_engine::socket(spec)?;
        socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        // Closing resets the connection.
        socket.set_linger(Some(Duration::ZERO)).map_err(failed("setsockopt(SO_LINGER)"))?;
        socket.set_reuse_address(true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        require_errors(socket.as_socket(), v6)?;
        set_ttl(&socket, ttl, v6, !v6).map_err(failed("setting the TTL"))?;
        if port != 0 || self.client.options.bind_address.is_some() {
            let address = SocketAddr::new(self.local, port);
            socket.bind(&address.into()).map_err(failed(format!("binding to {address}")))?;
        }
        Ok(socket)
    }

    /// Starts an attempt.
    fn connect(&self, ttl: u8, port: u16) -> io::Result<Socket> {
        let socket = self.open(ttl, port).map_err(io::Error::other)?;
        match socket.connect(&self.client.peer.into()) {
            Err(error) if error.raw_os_error() == Some(EINPROGRESS) => Ok(socket),
            // The answer of a loopback address may be there before the call returns.
            Ok(()) => Ok(socket),
            Err(error) if error.raw_os_error() == Some(ECONNREFUSED) => Ok(socket),
            Err(error) => Err(error),
        }
    }

    fn close_old(&mut self, now: u64) {
        while let Some(oldest) = self.attempts.front()
            && (self.attempts.len() >= MAX_OPEN || now.saturating_sub(oldest.sent_at) >= TIMEOUT)
        {
            self.attempts.pop_front();
        }
    }

    fn sockets(&self) -> Vec<BorrowedSocket<'_>> {
        self.attempts.iter().map(|attempt| attempt.socket.as_socket()).collect()
    }
}

impl Packets for TcpSynPackets {
    fn peer(&self) -> Option<SocketAddr> {
        Some(self.client.peer)
    }

    fn local(&self) -> IpAddr {
        self.local
    }

    fn headers(&self) -> u32 {
        ProbePacket::TcpSyn.bytes().get() as u32 + if self.is_v6() { IPV6_MORE } else { 0 }
    }

    /// Returns `None`: a SYN has no payload that makes it larger.
    fn link_mtu(&self) -> Option<u32> {
        None
    }

    fn send(&mut self, sequence: u32, _payload: &[u8], ttl: u8) -> io::Result<u32> {
        let now = clock::now();
        self.close_old(now);
        let socket = match self.port {
            Some(port) if self.attempts.is_empty() => self.connect(ttl, port).or_else(|_| self.connect(ttl, 0)),
            _ => self.connect(ttl, 0),
        }?;
        if self.port.is_none() {
            self.port = socket.local_addr()?.as_socket().map(|address| address.port());
        }
        self.attempts.push_back(Attempt { socket, sequence, sent_at: now });
        Ok(self.headers())
    }

    fn wait(&self, nanos: u64) -> Result<bool, SocketError> {
        Ok(!wait_ready_each(&self.sockets(), nanos)?.is_empty())
    }

    fn event(&mut self, into: &mut [u8]) -> Result<Option<Event>, SocketError> {
        while let Some(index) = wait_ready_each(&self.sockets(), 0)?.first().copied() {
            let Some(Attempt { socket, sequence, .. }) = self.attempts.remove(index) else { break };
            // The kernel queues the ICMP error before it sets SO_ERROR.
            let result = socket.take_error().map_err(failed("getsockopt(SO_ERROR)"))?;
            let probe = ProbeId::Sequence(sequence);
            let queued = take_error(socket.as_socket(), into).map_err(failed("recvmsg(MSG_ERRQUEUE)"))?;
            if let Some(error) = queued {
                return Ok(Some(Event::Error { error, probe }));
            }
            if result.is_none_or(|error| error.raw_os_error() == Some(ECONNREFUSED)) {
                let arrived = Arrived { length: 0, from: self.client.peer, ttl: None, arrived_unix_ns: None };
                return Ok(Some(Event::Reply { arrived, probe }));
            }
        }
        Ok(None)
    }
}
