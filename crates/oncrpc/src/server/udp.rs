//! Calls over a UDP socket, which several threads may share.

use super::later::Later;
use super::{CallerProof, Executed, Shared, wait_ns};
use crate::error::is_timeout;
use crate::greeting::KnownCallers;
use linerate_engine::{ReplyAllowance, StrangerReplies};
use linerate_model::Transport;
use linerate_sys::{clock, socket};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

/// No datagram is longer.
const DATAGRAM: usize = 64 << 10;
/// Calls executed before the clock is looked at for replies that are due.
const BATCH: usize = 64;

/// Answers until the server ends.
pub(super) fn serve(udp: &UdpSocket, shared: &Shared) {
    let mut call = vec![0; DATAGRAM];
    let mut reply = Vec::new();
    let mut took = Vec::new();
    let mut later: Later<SocketAddr> = Later::new();
    let (mut known, mut greeted) = (KnownCallers::default(), ReplyAllowance::default());
    while !shared.is_stopped() {
        while let Some(held) = later.take(clock::now()) {
            send(udp, &held.bytes, held.to);
            took.push(clock::now().saturating_sub(held.arrived));
        }
        shared.account.answered(&mut took, clock::now());
        // That it cannot wait is seen by the next call that does not block.
        let _ = socket::wait_readable(&[udp.as_fd()], wait_ns(later.next_due()));
        for _ in 0..BATCH {
            let (length, peer) = match udp.recv_from(&mut call) {
                Ok(received) => received,
                Err(error) if is_timeout(&error) => break,
                // Word of a caller that has gone (ICMP): the others go on.
                Err(_) => continue,
            };
            let now = clock::now();
            reply.clear();
            let executed = shared.execute(&call[..length], (peer, Transport::Udp), now, Some(&mut known), &mut reply);
            let Some(Executed { due, caller }) = executed else { continue };
            let is_known = caller == CallerProof::KeyAndAddress;
            if !is_known && !shared.options.peers.allow(peer.ip()) {
                continue;
            }
            if !allows((&shared.options.replies, &mut greeted), caller, (length, reply.len()), now) {
                continue;
            }
            if due > now {
                later.hold(due, now, std::mem::take(&mut reply), peer);
                continue;
            }
            send(udp, &reply, peer);
            if shared.counts(caller) {
                took.push(clock::now().saturating_sub(now));
            }
        }
    }
}

/// Whether `caller` may be sent a reply of `reply_bytes` to a call of `call_bytes` at `now`, nanoseconds. If so, it counts. The source
/// of a call may be forged: until a caller has proved that it reads the replies, it gets no more than it sent. A flood of strangers
/// does not keep out callers that hold the session's key, which have the allowance `greeted`.
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
        && socket::wait_writable(socket.as_fd(), 10_000_000).unwrap_or(false)
    {
        let _ = socket.send_to(reply, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_strangers_leaves_greetings_their_own_allowance() {
        let (strangers, mut greeted) = (StrangerReplies::default(), ReplyAllowance::default());
        let now = 10_000_000_000;
        let mut count =
            |caller| (0..10_000).filter(|_| allows((&strangers, &mut greeted), caller, (76, 56), now)).count();
        assert_eq!(count(CallerProof::None), 2_000, "they are limited");
        assert_eq!(count(CallerProof::Key), 2_000);
        assert_eq!(count(CallerProof::KeyAndAddress), 10_000);
        let (fresh, mut greeted) = (StrangerReplies::default(), ReplyAllowance::default());
        let mut longer = |caller| allows((&fresh, &mut greeted), caller, (76, 77), now);
        assert!(!longer(CallerProof::None) && !longer(CallerProof::Key), "no longer than the call");
        assert!(longer(CallerProof::KeyAndAddress));
    }
}
