//! One flow of calls, and what the threads of a session share.

use crate::client::{Caller, Retransmission};
use crate::error::RpcError;
use crate::flow_meter::FlowMeter;
use crate::job::Job;
use crate::load::Load;
use crate::message::Credential;
use crate::privileged::socket_from_privileged_port;
use linerate_engine::{Schedule, SocketError, SocketSpec, Stop, Timeline};
use linerate_model::{FlowCounts, NfsOperation, OperationCounts, Received, Sent, Transactions, Transport};
use linerate_sys::clock;
use linerate_units::OpRate;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// A server that has not taken a connection after this does not answer.
const FLOW_NS: u64 = 5_000_000_000;
/// One flow of calls from this host.
#[derive(Debug)]
pub struct Flow {
    /// Which of this host's ends it belongs to.
    pub end: usize,
    /// The path's index in the trial.
    pub path: u16,
    /// Its number among the flows of its path.
    pub number: u16,
    /// This end.
    pub local: SocketAddr,
    /// What its calls show, as its server gave it out.
    pub credential: Credential,
    /// What it calls for.
    pub load: Arc<dyn Load>,
}

/// What all threads of a session share.
#[derive(Debug)]
pub struct Shared {
    /// What this host is to do.
    pub job: Job,
    /// When the load starts, and the window.
    pub timeline: Timeline,
    /// This host's flows.
    pub flows: Vec<Flow>,
    /// One for each flow, in their order. Whoever reads them holds no socket.
    pub meters: Arc<[FlowMeter]>,
    /// Ends all of them early.
    pub stop: Stop<RpcError>,
    /// A limit binds the rate, so that no call is made before the rate has earned it.
    pub rate_limited: bool,
}

/// What one flow counted.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Data of its calls; `None` if they carry none.
    pub sent: Option<Sent>,
    /// Data of their replies; `None` if they carry none.
    pub received: Option<Received>,
    /// Calls answered and their times.
    pub transactions: Option<Transactions>,
    /// NFS: the same by operation.
    pub operations: BTreeMap<NfsOperation, OperationCounts>,
    /// Bytes of the flow, and TCP's own account of it.
    pub flow: FlowCounts,
    /// Why the flow ended before its time, if it did and what it had counted is kept.
    pub broken: Option<String>,
}

impl Shared {
    pub(crate) fn new(job: Job, timeline: Timeline, flows: Vec<Flow>) -> Self {
        let meters = flows.iter().map(|_| FlowMeter::default()).collect();
        Self { job, timeline, flows, meters, stop: Stop::default(), rate_limited: false }
    }

    /// Returns when the first of calls at `rate` may be made.
    pub fn first_due(&self, rate: OpRate) -> u64 {
        let start = self.timeline.start();
        if self.rate_limited { Schedule::earned_start(rate, start) } else { start }
    }

    /// What befell flow `index`, with path and time.
    pub fn cut_short(&self, index: usize, source: RpcError) -> RpcError {
        let when = self.timeline.describe(clock::now());
        RpcError::CutShort { path: self.flows[index].path, when, source: Box::new(source) }
    }
}

/// Connects one flow to `server`, unless stopped meanwhile: a connection, or a socket that hears of no one else. Returns it with
/// its own address.
///
/// # Errors
/// Fails if the server does not answer in time or refuses, no socket can be made, or `stop` was set.
pub fn open(job: &Job, server: SocketAddr, stop: &Arc<Stop>) -> Result<(Caller, SocketAddr), RpcError> {
    // Without an address given, binding to any finds out early whether one can be had.
    let any = || if job.v6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let udp = job.transport() == Transport::Udp;
    let bind = job.socket().bind_address.or_else(|| udp.then(any)).map(|address| SocketAddr::new(address, 0));
    let spec = SocketSpec { transport: job.transport(), v6: job.v6(), options: job.socket(), bind, device: true };
    let socket =
        if job.has_foreign_server() { socket_from_privileged_port(spec)? } else { linerate_engine::socket(spec)? };
    let connected =
        linerate_engine::connect(&socket, server, clock::now() + FLOW_NS, stop.flag()).map_err(|error| {
            SocketError::connecting(server, error).map_or_else(
                |error| {
                    let (what, seconds) = ("a connection".to_owned(), FLOW_NS / 1_000_000_000);
                    RpcError::NoAnswer { server, what, seconds, reason: error.to_string() }
                },
                RpcError::from,
            )
        })?;
    if !connected {
        return Err(RpcError::Stopped);
    }
    let local = socket.local_addr().map_err(RpcError::socket("getsockname"))?;
    let local = local.as_socket().expect("sockets of the Internet have such addresses");
    let caller = match job.transport() {
        Transport::Tcp => Caller::tcp(socket.into())?,
        Transport::Udp => Caller::udp(UdpSocket::from(socket), Retransmission::default())?,
    };
    Ok((caller.until(stop), local))
}
