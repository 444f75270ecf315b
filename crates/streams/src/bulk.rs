//! Bulk streams over sockets that another protocol has connected (crate `linerate_iperf3`), with the loops of this
//! engine.

use crate::error::StreamError;
use crate::flow::{Flow, Link, Shared, Wire};
use crate::hello::Hello;
use crate::job::Job;
use crate::meter::Meter;
use crate::options;
use crate::running::Running;
use linerate_engine::{AllowedPeers, FailedBy, SocketError, Stop, Timeline, Work, failed};
use linerate_model::{Assignment, EndCounts};
use linerate_sys::handle::{AsSocket as _, OwnedSocket};
use linerate_units::Nanos;
use socket2::{SockAddr, Socket};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};

/// Connected flow of a path.
#[derive(Debug)]
pub struct BulkFlow {
    /// Index in its direction.
    pub number: u16,
    /// Whether data flow from the server to the client.
    pub backward: bool,
    /// Whether this end is the client's.
    pub client: bool,
    pub socket: BulkSocket,
}

impl BulkFlow {
    /// Returns a descriptor that keeps the connection open after its threads have ended.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn keep_open(&self) -> io::Result<OwnedSocket> {
        match &self.socket {
            BulkSocket::Tcp(stream) => stream.as_socket().try_clone_to_owned(),
            BulkSocket::Udp(socket) => socket.as_socket().try_clone_to_owned(),
        }
    }
}

/// Connected socket of a flow.
#[derive(Debug)]
pub enum BulkSocket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

/// Counts of bulk streams at one end.
#[derive(Debug)]
pub struct BulkCounts {
    /// Sums of all flows.
    pub end: EndCounts,
    /// UDP: number of datagrams that the senders of received flows numbered within this end's window, lost ones
    /// included.
    pub numbered: u64,
}

/// Progress of a flow since the load began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowProgress {
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// UDP: datagrams sent or received.
    pub datagrams: u64,
    /// UDP: datagrams missing, by the numbers of those that arrived.
    pub lost: u64,
    /// UDP: mean deviation of transit times (RFC 3550 section 6.4.1).
    pub jitter: Nanos,
}

/// Properties of bulk streams that the other protocol decides.
#[derive(Debug, Clone, Copy)]
pub struct BulkOptions {
    /// Whether datagrams have numbers of 64 bits, not of 32.
    pub wide: bool,
    /// Whether the client ends the streams after a number of bytes, and not by time.
    pub by_bytes: bool,
    /// Whether a limit applies to the rate.
    pub rate_limited: bool,
}

/// Bulk streams at work. Dropping them stops them and waits for their threads.
#[derive(Debug)]
pub struct Bulk {
    running: Running,
    path: u16,
}

impl Bulk {
    /// Starts the flows of one path of the assigned stream, over the times of `timeline`, until `stop` is set.
    ///
    /// # Errors
    /// The stream is invalid, a socket cannot be used, or there are no more threads.
    pub fn start(
        assignment: &Assignment,
        path: u16,
        timeline: Timeline,
        flows: Vec<BulkFlow>,
        BulkOptions { wide, by_bytes, rate_limited }: BulkOptions,
        stop: &Stop,
    ) -> Result<Self, FailedBy> {
        let job = Job::check(assignment)?;
        let flows = flows.into_iter().map(|flow| connected(path, flow)).collect::<Result<_, StreamError>>()?;
        let shared = Shared::new(job, timeline, flows, AllowedPeers::default())
            .with_wire(Wire::Unphased { wide, by_bytes })
            .rate_limited(rate_limited);
        Ok(Self { running: Running::spawn(shared, stop)?, path })
    }

    /// Returns the running work for the agent to watch.
    pub fn work(&self) -> Work {
        self.running.work()
    }

    /// Returns the progress of each flow, in the order in which the flows were passed.
    pub fn progress(&self) -> Vec<FlowProgress> {
        self.running.meters().iter().map(FlowProgress::from).collect()
    }

    /// Waits for the flows to end, and returns their counts.
    ///
    /// # Errors
    /// A flow did not last, or the streams were stopped.
    pub fn join(mut self) -> Result<BulkCounts, FailedBy> {
        let outcomes = self.running.outcomes()?;
        let numbered = outcomes.iter().flatten().filter_map(|outcome| outcome.numbered).sum();
        Ok(BulkCounts { end: self.running.counts(0, self.path, &outcomes)?, numbered })
    }
}

impl From<&Meter> for FlowProgress {
    fn from(meter: &Meter) -> Self {
        Self {
            sent_bytes: meter.sent_bytes(),
            received_bytes: meter.received_bytes(),
            datagrams: meter.messages(),
            lost: meter.lost(),
            jitter: Nanos::new(meter.jitter_ns()),
        }
    }
}

fn connected(path: u16, BulkFlow { number, backward, client, socket }: BulkFlow) -> Result<Flow, StreamError> {
    let (socket, link): (Socket, fn(Socket) -> Link) = match socket {
        BulkSocket::Tcp(stream) => (stream.into(), |socket| Link::Tcp(socket.into())),
        BulkSocket::Udp(socket) => (socket.into(), |socket| Link::Udp(socket.into())),
    };
    options::ready(&socket)?;
    let local = internet_address(socket.local_addr(), "getsockname")?;
    let peer = internet_address(socket.peer_addr(), "getpeername")?;
    let hello = Hello { path, flow: number, backward };
    Ok(Flow { end: 0, hello, client, peer, local, link: link(socket), round_trip_ns: 0 })
}

fn internet_address(address: io::Result<SockAddr>, call: &str) -> Result<SocketAddr, StreamError> {
    let address = address.map_err(failed(call))?.as_socket();
    Ok(address.ok_or_else(|| SocketError::InvalidRequest(format!("{call}: no address of the Internet")))?)
}
