//! Connections of callers that have yet to show the session's key. One thread serves all of them: they have no thread
//! of their own, few places, little room and little time.

use super::{CallerProof, Executed, Shared};
use crate::record::{Records, put_record};
use linerate_engine::{StrangerLimits, Strangers};
use linerate_model::Transport;
use linerate_sys::clock;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// Limits of strangers. One host of a copy opens up to 64 lanes, each with several threads, at the same time. A
/// stranger takes about 1 KiB, so all of them take 256 KiB.
pub(crate) const LIMITS: StrangerLimits = StrangerLimits { places: 256, places_each: 128, time_ns: 5_000_000_000 };
/// Bytes of a stranger's call at the most: a greeting has 76, a null call with a credential of a common size below 200.
const CALL_MAXIMUM: usize = 240;
/// Bytes that are kept for a stranger. With a call that is gathered from fragments, it is less than 1 KiB.
const ROOM: usize = 512;

/// The strangers of one listener.
pub(super) struct UnprovenConnections(Strangers<Stranger>);

/// A connection without a ticket yet.
struct Stranger {
    stream: TcpStream,
    peer: SocketAddr,
    records: Records,
}

/// A connection with a caller that has just shown the key, and the reply to it.
pub(super) struct ProvenConnection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) reply: Vec<u8>,
}

impl UnprovenConnections {
    pub(super) fn new() -> Self {
        Self(Strangers::new(LIMITS))
    }

    /// Takes a connection that has just been accepted.
    pub(super) fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        if stream.set_nonblocking(true).is_ok() {
            self.0.take(peer, clock::now(), Stranger { stream, peer, records: Records::within(ROOM, CALL_MAXIMUM) });
        }
    }

    /// Returns the sockets to wait for.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedSocket<'_>> {
        self.0.iter().map(|stranger| stranger.stream.as_socket())
    }

    /// Answers what has come, and returns the connections that are no longer strangers'.
    #[must_use = "a connection that is dropped is closed"]
    pub(super) fn attend(&mut self, shared: &Shared) -> Vec<ProvenConnection> {
        let mut greeted = Vec::new();
        self.0.attend(clock::now(), |mut stranger| match stranger.hear(shared) {
            Ok(None) => Some(stranger),
            Ok(Some(reply)) => {
                greeted.push(ProvenConnection { stream: stranger.stream, peer: stranger.peer, reply });
                None
            }
            // What is no call, or is not read by its caller, is not worth a place.
            Err(_) => None,
        });
        greeted
    }
}

impl Stranger {
    /// Takes calls that are there; the reply to a greeting with the key.
    fn hear(&mut self, shared: &Shared) -> io::Result<Option<Vec<u8>>> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        match self.stream.read(self.records.room()) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(taken) => self.records.filled(taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
        while let Some(call) = self.records.next().map_err(|_| invalid())? {
            let peer = self.peer;
            let now = clock::now();
            let mut reply = Vec::new();
            let Executed { caller, .. } =
                put_record(&mut reply, |out| shared.execute(call, (peer, Transport::Tcp), now, None, out))
                    .ok_or_else(invalid)?;
            if caller == CallerProof::Key {
                // A caller waits for its ticket, without which no call is worth making: nothing follows yet.
                return self.records.is_empty().then_some(Some(reply)).ok_or_else(invalid);
            }
            if !shared.options.replies.allow(reply.len(), now) || self.stream.write(&reply)? < reply.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(None)
    }
}
