//! Calls over UDP: by one socket, which several threads may share, or by a socket for each caller.

use super::later::Later;
use super::tcp::OWED_MAXIMUM;
use super::{CallerProof, Executed, Shared, prepared, wait_ns};
use crate::error::RpcError;
use crate::greeting::KnownCallers;
use linerate_engine::{DatagramListener, ReplyAllowance, StrangerReplies};
use linerate_model::Transport;
use linerate_sys::event::Event;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::is_timeout;
use linerate_sys::{clock, socket};
use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Size of the longest datagram.
const DATAGRAM: usize = 64 << 10;
/// Bytes that a greeting is read into; it has fewer.
const GREETING_CALL: usize = 128;
/// Calls executed before the clock is looked at for replies that are due.
const BATCH: usize = 64;

/// Sockets of a server.
pub(super) enum Datagrams {
    /// A socket that all threads share.
    One(Arc<UdpSocket>),
    /// A socket for each caller.
    Each(Box<Callers>),
}

/// Callers at a shared port. The kernel sorts their datagrams, and each belongs to one thread.
pub(super) struct Callers {
    listener: DatagramListener,
    /// For each thread, the sockets that it has yet to take over.
    arrived: Vec<(Mutex<Vec<UdpSocket>>, Event)>,
    /// Callers that have a socket. Only the first thread looks.
    welcomed: Mutex<HashSet<SocketAddr>>,
}

impl Callers {
    pub(super) fn new(listener: DatagramListener, threads: usize) -> Result<Self, RpcError> {
        let event = || Ok((Mutex::default(), Event::new().map_err(RpcError::socket("eventfd"))?));
        let arrived = (0..threads).map(|_| event()).collect::<Result<_, RpcError>>()?;
        Ok(Self { listener, arrived, welcomed: Mutex::default() })
    }

    /// Answers the greetings of callers that have no socket yet, and makes theirs. Only those that hold the key get so
    /// far.
    fn welcome(&self, shared: &Shared, greeted: &mut ReplyAllowance) {
        let mut call = [0; GREETING_CALL];
        let mut reply = Vec::new();
        let mut welcomed = self.welcomed.lock().expect("no holder panics");
        while let Ok((length, peer)) = self.listener.receive(&mut call) {
            reply.clear();
            let now = clock::now();
            let executed = shared.execute(&call[..length], (peer, Transport::Udp), now, None, &mut reply);
            let Some(Executed { caller: CallerProof::Key, .. }) = executed else { continue };
            // One that greeted again before it had a socket is answered when it does so once more.
            if welcomed.contains(&peer)
                || !shared.options.peers.allow(peer.ip())
                || welcomed.len() >= shared.options.connections
                || !greeted.allow(length, reply.len(), now)
            {
                continue;
            }
            // What is lost here is sent again.
            let Some(socket) = self.listener.connected_to(peer).ok().and_then(|socket| prepared(socket).ok()) else {
                continue;
            };
            let _ = socket.send(&reply);
            welcomed.insert(peer);
            let (arrived, event) = &self.arrived[welcomed.len() % self.arrived.len()];
            arrived.lock().expect("no holder panics").push(socket);
            event.add();
        }
    }
}

impl Datagrams {
    /// Returns the sockets that a thread has at first.
    fn sockets(&self) -> Vec<Arc<UdpSocket>> {
        match self {
            Self::One(socket) => vec![Arc::clone(socket)],
            Self::Each(_) => Vec::new(),
        }
    }

    /// Returns the events that thread number `thread` waits for in addition to its sockets.
    fn events(&self, thread: usize) -> impl Iterator<Item = BorrowedSocket<'_>> {
        let callers = if let Self::Each(callers) = self { Some(callers) } else { None };
        let greetings = callers.filter(|_| thread == 0).map(|callers| callers.listener.socket());
        callers.map(|callers| callers.arrived[thread].1.as_socket()).into_iter().chain(greetings)
    }

    /// Adds to `sockets` those of new callers.
    fn attend(&self, thread: usize, sockets: &mut Vec<Arc<UdpSocket>>, shared: &Shared, greeted: &mut ReplyAllowance) {
        let Self::Each(callers) = self else { return };
        if thread == 0 {
            callers.welcome(shared, greeted);
        }
        let (arrived, event) = &callers.arrived[thread];
        while event.take() {}
        sockets.extend(arrived.lock().expect("no holder panics").drain(..).map(Arc::new));
    }
}

/// Answers until the server ends, as thread number `thread` of those that share `datagrams`.
pub(super) fn serve(datagrams: &Datagrams, thread: usize, shared: &Shared) {
    let mut call = vec![0; DATAGRAM];
    let mut reply = Vec::new();
    let mut took = Vec::new();
    // Replies go to an address, by the socket of this number.
    let mut later: Later<(usize, SocketAddr)> = Later::new();
    let mut known = KnownCallers::default();
    let mut greeted = ReplyAllowance::default();
    let mut sockets = datagrams.sockets();
    while !shared.is_stopped() {
        while let Some(held) = later.take(clock::now()) {
            let (number, peer) = held.to;
            // Before it is sent, as over TCP.
            took.push(clock::now().saturating_sub(held.arrived));
            send(&sockets[number], &held.bytes, peer);
        }
        shared.account.answered(&mut took, clock::now());
        // No more calls are taken while as many replies are held as may be: the rest waits in the sockets, or is lost
        // there.
        let taken_from = if later.memory() < OWED_MAXIMUM { sockets.len() } else { 0 };
        let descriptors: Vec<_> =
            sockets[..taken_from].iter().map(|socket| socket.as_socket()).chain(datagrams.events(thread)).collect();
        // That it cannot wait is seen by the next call that does not block.
        let ready = socket::wait_for_each(&descriptors, wait_ns(later.next_due())).unwrap_or_default();
        for number in ready {
            let Some(udp) = sockets[..taken_from].get(number) else { break };
            for _ in 0..BATCH {
                if later.memory() >= OWED_MAXIMUM {
                    break;
                }
                let (length, peer) = match udp.recv_from(&mut call) {
                    Ok(received) => received,
                    Err(error) if is_timeout(&error) => break,
                    // Word of a caller that has gone (ICMP): the others go on.
                    Err(_) => continue,
                };
                let now = clock::now();
                reply.clear();
                let executed =
                    shared.execute(&call[..length], (peer, Transport::Udp), now, Some(&mut known), &mut reply);
                let Some(Executed { due, caller }) = executed else { continue };
                let is_known = caller == CallerProof::KeyAndAddress;
                if !is_known && !shared.options.peers.allow(peer.ip()) {
                    continue;
                }
                if !allows((&shared.options.replies, &mut greeted), caller, (length, reply.len()), now) {
                    continue;
                }
                if due > now {
                    later.hold(due, now, std::mem::take(&mut reply), (number, peer));
                    continue;
                }
                if shared.counts(caller) {
                    took.push(clock::now().saturating_sub(now));
                }
                send(udp, &reply, peer);
            }
        }
        datagrams.attend(thread, &mut sockets, shared, &mut greeted);
    }
}

/// Whether `caller` may be sent a reply of `reply_bytes` to a call of `call_bytes` at `now`, nanoseconds. If so, it
/// counts. The source of a call may be forged: until a caller has proved that it reads the replies, it gets no more
/// than it sent. A flood of strangers does not keep out callers that hold the session's key, which have the allowance
/// `greeted`.
fn allows(
    (strangers, greeted): (&StrangerReplies, &mut ReplyAllowance),
    caller: CallerProof,
    (call_bytes, reply_bytes): (usize, usize),
    now: u64,
) -> bool {
    match caller {
        CallerProof::None => reply_bytes <= call_bytes && strangers.allow(reply_bytes, now),
        CallerProof::Key => greeted.allow(call_bytes, reply_bytes, now),
        CallerProof::KeyAndAddress => true,
    }
}

/// A reply that cannot be sent is a lost one: the caller asks again.
fn send(socket: &UdpSocket, reply: &[u8], to: SocketAddr) {
    if let Err(error) = socket.send_to(reply, to)
        && is_timeout(&error)
        && socket::wait_writable(socket.as_socket(), 10_000_000).unwrap_or(false)
    {
        let _ = socket.send_to(reply, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_strangers_leaves_greetings_their_own_allowance() {
        let strangers = StrangerReplies::default();
        let mut greeted = ReplyAllowance::default();
        let now = 10_000_000_000;
        let mut count =
            |caller| (0..10_000).filter(|_| allows((&strangers, &mut greeted), caller, (76, 56), now)).count();
        assert_eq!(count(CallerProof::None), 2_000, "they are limited");
        assert_eq!(count(CallerProof::Key), 2_000);
        assert_eq!(count(CallerProof::KeyAndAddress), 10_000);
        let fresh = StrangerReplies::default();
        let mut greeted = ReplyAllowance::default();
        let mut longer = |caller| allows((&fresh, &mut greeted), caller, (76, 77), now);
        assert!(!longer(CallerProof::None) && !longer(CallerProof::Key), "no longer than the call");
        assert!(longer(CallerProof::KeyAndAddress));
    }
}
