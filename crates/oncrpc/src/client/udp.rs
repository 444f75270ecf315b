//! Calls over a UDP socket, one a datagram, sent again when no reply comes.

use super::retransmission::{GIVE_UP_NS, Retransmission};
use super::waiting::Waiting;
use crate::error::RpcError;
use crate::message::{Credential, Procedure, Reply, put_call, read_reply};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::socket::{ECONNREFUSED, EMSGSIZE, ENOBUFS, ENOMEM};
use linerate_sys::{clock, socket, udp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};

/// Size of the longest datagram.
const DATAGRAM: usize = 64 << 10;
/// Replies taken before calls are sent again.
const BATCH: usize = 256;

/// A call under way.
#[derive(Debug)]
pub(super) struct Sent {
    bytes: Vec<u8>,
    /// When it was first sent; zero while it is queued.
    first_ns: u64,
    /// When it was sent last.
    last_ns: u64,
    /// Number of retransmissions.
    again: u32,
}

impl Sent {
    /// Returns whether the call has waited for its reply for as long as calls do.
    fn is_given_up(&self, now: u64) -> bool {
        now.saturating_sub(self.first_ns) >= GIVE_UP_NS
    }
}

#[derive(Debug)]
pub(super) struct UdpCaller {
    socket: UdpSocket,
    server: SocketAddr,
    retransmission: Retransmission,
    /// The xids queued to be sent for the first time.
    queued: std::collections::VecDeque<u32>,
    /// When which call is to be sent again. One that has been answered is skipped when its time comes.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) waiting: Waiting<Sent>,
    /// Buffers of answered calls, for the next ones.
    spare: Vec<Vec<u8>>,
    room: Vec<u8>,
    pub(super) retransmitted: u64,
    pub(super) strays: u64,
}

impl UdpCaller {
    pub(super) fn new(socket: UdpSocket, server: SocketAddr, retransmission: Retransmission) -> Result<Self, RpcError> {
        socket.set_nonblocking(true).map_err(RpcError::socket("fcntl(O_NONBLOCK)"))?;
        // Calls above the MTU go in fragments.
        socket::allow_fragments(socket.as_socket(), server.is_ipv6())?;
        Ok(Self {
            socket,
            server,
            retransmission,
            queued: std::collections::VecDeque::new(),
            due: BinaryHeap::new(),
            waiting: Waiting::default(),
            spare: Vec::new(),
            room: vec![0; DATAGRAM],
            retransmitted: 0,
            strays: 0,
        })
    }

    pub(super) fn call(&mut self, to: Procedure, credential: &Credential, args: &[u8]) -> u32 {
        let xid = self.waiting.next();
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        put_call(&mut bytes, xid, to, credential, args);
        self.waiting.add(Sent { bytes, first_ns: 0, last_ns: 0, again: 0 });
        self.queued.push_back(xid);
        xid
    }

    pub(super) fn flush(&mut self) -> Result<(), RpcError> {
        while let Some(xid) = self.queued.front().copied() {
            if !self.send(xid)? {
                break;
            }
            self.queued.pop_front();
            let now = clock::now();
            if let Some(call) = self.waiting.find(xid) {
                (call.first_ns, call.last_ns) = (now, now);
                self.due.push(Reverse((now + self.retransmission.timeout(0), xid)));
            }
        }
        Ok(())
    }

    /// Sends a call; false if the kernel has no room at the moment.
    fn send(&mut self, xid: u32) -> Result<bool, RpcError> {
        let Some(call) = self.waiting.find(xid) else { return Ok(true) };
        match self.socket.send(&call.bytes) {
            Ok(_) => Ok(true),
            Err(error) if is_timeout(&error) => Ok(false),
            Err(error) => match error.raw_os_error() {
                // As good as lost on the way: it is sent again.
                Some(ENOBUFS | ENOMEM) => Ok(true),
                Some(ECONNREFUSED) => Err(self.closed()),
                Some(EMSGSIZE) => {
                    let what =
                        format!("a call of {} bytes to {} does not fit a datagram", call.bytes.len(), self.server);
                    Err(RpcError::socket(what)(error))
                }
                _ => Err(RpcError::socket(format!("sending a call to {}", self.server))(error)),
            },
        }
    }

    pub(super) fn poll(&mut self, timeout_ns: u64, on_reply: &mut dyn FnMut(u32, Reply<'_>)) -> Result<(), RpcError> {
        self.flush()?;
        let now = clock::now();
        let next = self.due.peek().map_or(u64::MAX, |Reverse((due, _))| due.saturating_sub(now));
        let timeout_ns = timeout_ns.min(next);
        let descriptor = self.socket.as_socket();
        if self.queued.is_empty() {
            socket::wait_readable(&[descriptor], timeout_ns)?;
        } else {
            socket::wait_ready(descriptor, timeout_ns)?;
        }
        let emptied = self.take(on_reply)?;
        // A call is overdue only if its reply cannot be in the socket buffer.
        if emptied {
            self.send_overdue(clock::now(), on_reply)?;
        }
        self.flush()
    }

    /// Takes the replies that are there; whether that was all.
    fn take(&mut self, on_reply: &mut dyn FnMut(u32, Reply<'_>)) -> Result<bool, RpcError> {
        for _ in 0..BATCH {
            let length = match udp::receive_one(&self.socket, &mut self.room, false) {
                Ok(length) => length.min(self.room.len()),
                Err(error) if is_timeout(&error) => return Ok(true),
                Err(error) => match error.raw_os_error() {
                    Some(ECONNREFUSED) => return Err(self.closed()),
                    Some(ENOBUFS | ENOMEM) => return Ok(true),
                    _ => return Err(RpcError::socket(format!("replies from {}", self.server))(error)),
                },
            };
            let Some((xid, reply)) = read_reply(&self.room[..length]) else {
                self.strays += 1;
                continue;
            };
            let Some(call) = self.waiting.take(xid) else {
                self.strays += 1;
                continue;
            };
            let now = clock::now();
            let since_first = now.saturating_sub(call.first_ns);
            let since_last = now.saturating_sub(call.last_ns);
            match (call.first_ns, call.again) {
                (0, _) => {}
                (_, 0) => self.retransmission.measured(since_first),
                (_, _) => self.retransmission.measured_again(since_first, since_last),
            }
            on_reply(xid, reply);
            self.spare.push(call.bytes);
        }
        Ok(false)
    }

    fn send_overdue(&mut self, now: u64, on_reply: &mut dyn FnMut(u32, Reply<'_>)) -> Result<(), RpcError> {
        while let Some(Reverse((due, xid))) = self.due.peek().copied() {
            if due > now {
                break;
            }
            self.due.pop();
            let Some(call) = self.waiting.find(xid) else { continue };
            // Replies have come meanwhile, and may take longer than they did when this timeout was set.
            let due = call.last_ns + self.retransmission.timeout(call.again);
            if due > now && !call.is_given_up(now) {
                self.due.push(Reverse((due, xid)));
                continue;
            }
            if call.is_given_up(now) {
                self.waiting.take(xid);
                on_reply(xid, Reply::Lost);
                continue;
            }
            call.again += 1;
            call.last_ns = now;
            let again = call.again;
            self.retransmission.timed_out(again);
            if self.send(xid)? {
                self.retransmitted += 1;
            }
            self.due.push(Reverse((now + self.retransmission.timeout(again), xid)));
        }
        Ok(())
    }

    fn closed(&self) -> RpcError {
        let what =
            format!("its port is closed (ICMP port unreachable), with {} calls unanswered", self.waiting.count());
        RpcError::Gone { peer: self.server, what }
    }
}
