//! Bulk streams over sockets that another protocol has connected: the loops of this engine, for ends that speak iperf3's protocol.

use crate::error::StreamError;
use crate::flow::{Flow, Link, Shared, Wire};
use crate::hello::Hello;
use crate::job::Job;
use crate::meter::Meter;
use crate::options;
use crate::running::Running;
use linerate_engine::{AllowedPeers, FailedBy, Stop, Timeline, Work};
use linerate_model::{Assignment, EndCounts};
use linerate_units::Nanos;
use socket2::Socket;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};

/// One flow of a path, connected.
#[derive(Debug)]
pub struct BulkFlow {
    /// Its index in its direction.
    pub number: u16,
    /// Data flow from the server to the client.
    pub backward: bool,
    /// This end is the client's.
    pub client: bool,
    /// Its socket.
    pub socket: BulkSocket,
}

impl BulkFlow {
    /// Returns what keeps its connection open when its threads have ended.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn keep_open(&self) -> io::Result<OwnedFd> {
        match &self.socket {
            BulkSocket::Tcp(stream) => stream.as_fd().try_clone_to_owned(),
            BulkSocket::Udp(socket) => socket.as_fd().try_clone_to_owned(),
        }
    }
}

/// A connected socket of a flow.
#[derive(Debug)]
pub enum BulkSocket {
    /// TCP.
    Tcp(TcpStream),
    /// UDP, connected to its peer.
    Udp(UdpSocket),
}

/// What one end counted of bulk streams.
#[derive(Debug)]
pub struct BulkCounts {
    /// All its flows together.
    pub end: EndCounts,
    /// UDP: how many datagrams the senders of the flows that this end received numbered within its window, lost ones included.
    pub numbered: u64,
}

/// How far a flow is: what it did since the load began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowProgress {
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// UDP: datagrams sent or received.
    pub datagrams: u64,
    /// UDP: datagrams missing, by the numbers of those that came.
    pub lost: u64,
    /// UDP: mean deviation of transit times (RFC 3550 section 6.4.1).
    pub jitter: Nanos,
}

/// What streams must know of an iperf3 test.
#[derive(Debug, Clone, Copy)]
pub struct Iperf3Test {
    /// Datagrams have numbers of 64 bits, not of 32.
    pub wide: bool,
    /// The client ends it after so many bytes, and not by time.
    pub by_bytes: bool,
    /// A limit binds its rate.
    pub rate_limited: bool,
}

/// Bulk streams at work. Dropping them stops them and waits for their threads.
#[derive(Debug)]
pub struct Bulk {
    running: Running,
    path: u16,
}

impl Bulk {
    /// Starts the flows of one path of the stream that `assignment` asks for, over the times of `timeline`, until `stop` is set. The other
    /// ends speak iperf3's protocol.
    ///
    /// # Errors
    /// The stream cannot be meant, a socket cannot be used, or there are no more threads.
    pub fn start(
        assignment: &Assignment,
        path: u16,
        timeline: Timeline,
        flows: Vec<BulkFlow>,
        Iperf3Test { wide, by_bytes, rate_limited }: Iperf3Test,
        stop: &Stop,
    ) -> Result<Self, FailedBy> {
        let job = Job::check(assignment)?;
        let flows = flows.into_iter().map(|flow| connected(path, flow)).collect::<Result<_, StreamError>>()?;
        let shared = Shared::new(job, timeline, flows, AllowedPeers::default())
            .speaking(Wire::Iperf3 { wide, by_bytes })
            .rate_limited(rate_limited);
        Ok(Self { running: Running::spawn(shared, stop)?, path })
    }

    /// What is under way, for whoever watches it.
    pub fn work(&self) -> Work {
        self.running.work()
    }

    /// How far each flow is, in the order in which they were given.
    pub fn progress(&self) -> Vec<FlowProgress> {
        let flow = |meter: &Meter| FlowProgress {
            sent_bytes: meter.sent_bytes(),
            received_bytes: meter.received_bytes(),
            datagrams: meter.messages(),
            lost: meter.lost(),
            jitter: Nanos::new(meter.jitter_ns()),
        };
        self.running.meters().iter().map(flow).collect()
    }

    /// Waits for the flows to end, and gives what they counted.
    ///
    /// # Errors
    /// A flow did not last, or the streams were stopped.
    pub fn join(mut self) -> Result<BulkCounts, FailedBy> {
        let outcomes = self.running.outcomes()?;
        let numbered = outcomes.iter().flatten().filter_map(|outcome| outcome.numbered).sum();
        Ok(BulkCounts { end: self.running.counts(0, self.path, &outcomes)?, numbered })
    }
}

fn connected(path: u16, BulkFlow { number, backward, client, socket }: BulkFlow) -> Result<Flow, StreamError> {
    let (socket, link): (Socket, fn(Socket) -> Link) = match socket {
        BulkSocket::Tcp(stream) => (stream.into(), |socket| Link::Tcp(socket.into())),
        BulkSocket::Udp(socket) => (socket.into(), |socket| Link::Udp(socket.into())),
    };
    options::ready(&socket)?;
    let address = |address: io::Result<socket2::SockAddr>, call: &str| {
        let address = address.map_err(StreamError::socket(call))?;
        address.as_socket().ok_or_else(|| StreamError::InvalidRequest(format!("{call}: no address of the Internet")))
    };
    let (local, peer) = (address(socket.local_addr(), "getsockname")?, address(socket.peer_addr(), "getpeername")?);
    let hello = Hello { path, flow: number, backward };
    Ok(Flow { end: 0, hello, client, peer, local, link: link(socket), round_trip_ns: 0 })
}
