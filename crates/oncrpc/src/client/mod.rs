//! Connections and sockets to a server, with any number of calls under way. Each belongs to one thread and blocks only
//! in [`Caller::poll`].

mod retransmission;
mod tcp;
mod udp;
mod waiting;

pub use retransmission::Retransmission;
pub use waiting::Waiting;

use crate::error::RpcError;
use crate::greeting::{self, GREET};
use crate::message::{Credential, Procedure, Reply};
use linerate_engine::Stop;
use linerate_model::SessionKey;
use linerate_sys::clock;
use linerate_units::Nanos;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use tcp::TcpCaller;
use udp::UdpCaller;

/// A stop is seen within this, in nanoseconds.
pub const TICK_NS: u64 = 50_000_000;

/// A greeting is answered within this.
const GREETING: Nanos = Nanos::from_secs(5);
/// The most bytes of a reply: the largest unit of data and what goes with it.
const REPLY_MAXIMUM: usize = (1 << 20) + (64 << 10);

/// Makes calls and takes their replies.
#[derive(Debug)]
pub struct Caller {
    link: Link,
    server: SocketAddr,
    /// Ends [`Caller::ask`] early.
    stop: Arc<Stop>,
}

#[derive(Debug)]
enum Link {
    Tcp(TcpCaller),
    Udp(UdpCaller),
}

impl Caller {
    /// Over a connection.
    pub fn tcp(stream: TcpStream) -> Result<Self, RpcError> {
        let server = stream.peer_addr().map_err(RpcError::socket("getpeername"))?;
        Ok(Self { link: Link::Tcp(TcpCaller::new(stream, server)?), server, stop: Arc::default() })
    }

    /// Over a connected socket.
    pub fn udp(socket: UdpSocket, retransmission: Retransmission) -> Result<Self, RpcError> {
        let server = socket.peer_addr().map_err(RpcError::socket("getpeername"))?;
        Ok(Self { link: Link::Udp(UdpCaller::new(socket, server, retransmission)?), server, stop: Arc::default() })
    }

    /// Returns the caller with a stop signal that ends [`Caller::ask`].
    #[must_use]
    pub fn until(self, stop: &Arc<Stop>) -> Self {
        Self { stop: Arc::clone(stop), ..self }
    }

    /// Returns the address of the server.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Queues a call and returns its xid; [`Caller::poll`] sends it. `args` are XDR.
    pub fn call(&mut self, to: Procedure, credential: &Credential, args: &[u8]) -> u32 {
        match &mut self.link {
            Link::Tcp(tcp) => tcp.call(to, credential, args),
            Link::Udp(udp) => udp.call(to, credential, args),
        }
    }

    /// Waits at most `timeout` for replies, sends on what is queued and again what is overdue, and hands each reply to
    /// `on_reply` with its xid. Returns as soon as it has handed out those that were there.
    ///
    /// A reply that nobody waits for is counted as a stray and dropped. Over TCP, what is no reply at all is an error,
    /// for the stream cannot be trusted from there on; over UDP it is a stray, too.
    pub fn poll(&mut self, timeout: Nanos, on_reply: &mut dyn FnMut(u32, Reply<'_>)) -> Result<(), RpcError> {
        match &mut self.link {
            Link::Tcp(tcp) => tcp.poll(timeout.get(), on_reply),
            Link::Udp(udp) => udp.poll(timeout.get(), on_reply),
        }
    }

    /// The xid that the next call gets; the one after gets the next number.
    pub fn next_xid(&self) -> u32 {
        match &self.link {
            Link::Tcp(tcp) => tcp.waiting.next(),
            Link::Udp(udp) => udp.waiting.next(),
        }
    }

    /// The connection; none over UDP. Who looks at it from elsewhere must not keep it open.
    pub fn stream(&self) -> Option<&Arc<TcpStream>> {
        match &self.link {
            Link::Tcp(tcp) => Some(&tcp.stream),
            Link::Udp(_) => None,
        }
    }

    /// Calls without a reply yet.
    pub fn outstanding(&self) -> usize {
        match &self.link {
            Link::Tcp(tcp) => tcp.waiting.count(),
            Link::Udp(udp) => udp.waiting.count(),
        }
    }

    /// Calls that were sent again.
    pub fn retransmitted(&self) -> u64 {
        match &self.link {
            Link::Tcp(_) => 0,
            Link::Udp(udp) => udp.retransmitted,
        }
    }

    /// Messages that came and belonged to no call: late replies to calls that were sent twice, and rubbish.
    #[cfg(test)]
    pub fn strays(&self) -> u64 {
        match &self.link {
            Link::Tcp(tcp) => tcp.strays,
            Link::Udp(udp) => udp.strays,
        }
    }

    /// Proves to a server of a session that this caller holds its `key`, and has the server prove the same. Returns the
    /// credential of all other calls on this connection or socket.
    ///
    /// # Errors
    /// The server does not answer, or does not hold the key.
    pub fn greet(&mut self, key: &SessionKey) -> Result<Credential, RpcError> {
        let what = "a greeting";
        let salt = rand::random();
        let results = self.ask(what, GREET, &Credential::none(), &greeting::arguments(key, &salt), GREETING)?;
        greeting::credential(key, &salt, &results).ok_or_else(|| {
            let reason = "it does not hold the session's key, so it is no server of this trial".to_owned();
            RpcError::Refused { server: self.server, what: what.to_owned(), reason }
        })
    }

    /// Makes one call and returns its results, for setting up. Replies to other calls that come meanwhile are dropped.
    /// Errors call the call `what`.
    pub fn ask(
        &mut self,
        what: &str,
        to: Procedure,
        credential: &Credential,
        args: &[u8],
        timeout: Nanos,
    ) -> Result<Vec<u8>, RpcError> {
        let server = self.server;
        let call_xid = self.call(to, credential, args);
        let deadline = clock::now() + timeout.get();
        let mut answer = None;
        while answer.is_none() {
            let Some(left) = deadline.checked_sub(clock::now()).filter(|left| *left > 0) else { break };
            if self.stop.is_set() {
                return Err(RpcError::Stopped);
            }
            self.poll(Nanos::new(left.min(TICK_NS)), &mut |xid, reply| {
                if xid == call_xid {
                    answer = match reply {
                        Reply::Accepted(results) => Some(Ok(results.to_vec())),
                        Reply::Refused(why) => Some(Err(RpcError::refused(server, what, why))),
                        Reply::Lost => None,
                    };
                }
            })?;
        }
        answer.unwrap_or_else(|| {
            let seconds = timeout.get() / 1_000_000_000;
            Err(RpcError::NoAnswer { server, what: what.to_owned(), seconds, reason: "no reply".to_owned() })
        })
    }
}
