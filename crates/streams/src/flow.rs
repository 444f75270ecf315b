//! One flow at one end: its socket, its place in the trial, and what its thread shares with the others.

use crate::budget::Budget;
use crate::datagram::{self, Numbering};
use crate::error::StreamError;
use crate::hello::Hello;
use crate::job::Job;
use crate::meter::Meter;
use crate::window::Timeline;
use linerate_engine::{AllowedPeers, Listener, Stop};
use linerate_model::{FlowCounts, Received, Sent, Task, Transactions};
use linerate_sys::clock;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The windows of the two ends may lie so far apart: agents of busy hosts may take their orders late.
pub(crate) const SKEW_NS: u64 = 1_000_000_000;

/// One flow at one end.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Which of this host's ends it belongs to.
    pub(crate) end: usize,
    /// Its place in the trial.
    pub(crate) hello: Hello,
    /// This end is the client's: it opened the flow.
    pub(crate) client: bool,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// This end.
    pub(crate) local: SocketAddr,
    /// How to reach it.
    pub(crate) link: Link,
    /// What a round trip took while the flow was set up, nanoseconds; zero where that was not timed (all but UDP).
    pub(crate) round_trip_ns: u64,
}

/// A flow's socket.
#[derive(Debug)]
pub(crate) enum Link {
    /// A standing connection.
    Tcp(TcpStream),
    /// A connected socket.
    Udp(UdpSocket),
    /// Every transaction connects to the peer anew.
    Dial,
    /// Every transaction is a connection accepted here.
    Answer(Listener),
}

impl Flow {
    /// This end sends (in transactions: asks).
    pub(crate) fn sends(&self) -> bool {
        self.client != self.hello.backward
    }
}

/// What all threads of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) job: Job,
    pub(crate) timeline: Timeline,
    pub(crate) flows: Vec<Flow>,
    /// One for each flow. Whoever reads them holds no socket.
    pub(crate) meters: Arc<[Meter]>,
    pub(crate) stop: Stop<StreamError>,
    /// Who may open connections during the load.
    pub(crate) peers: AllowedPeers,
    /// Who the other ends are.
    pub(crate) wire: Wire,
    /// A limit binds the rate, so that nothing is sent before the rate has earned it.
    pub(crate) rate_limited: bool,
    /// Streams that end by volume: what each end may still send in the window, and for ends that speak iperf3's protocol receive.
    budgets: Vec<[Budget; 2]>,
    /// Flows whose part of the volume is not over.
    unfinished: AtomicUsize,
    /// Ends that have received datagrams.
    has_received: Vec<AtomicBool>,
}

/// What the other ends speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wire {
    /// linerate's own protocol.
    #[default]
    Own,
    /// That of iperf3. A sender tells no phases and goes on until it is told to end, so receivers end with their window.
    Iperf3 {
        /// Datagrams have numbers of 64 bits, not of 32.
        wide: bool,
        /// The client ends the test after so many bytes, so that the last one is to be seen when it comes.
        by_bytes: bool,
    },
}

impl Shared {
    /// What threads of `job` share; `peers` may open connections during the load.
    pub(crate) fn new(job: Job, timeline: Timeline, flows: Vec<Flow>, peers: AllowedPeers) -> Self {
        let asks = |flow: &Flow| matches!(job.task, Task::Transact(_)) && flow.sends();
        let meters =
            flows.iter().map(|flow| if asks(flow) { Meter::of_requests() } else { Meter::default() }).collect();
        let units = job.volume();
        let budgets = units.map_or(Vec::new(), |all| job.ends.iter().map(|_| [all; 2].map(Budget::new)).collect());
        let unfinished = AtomicUsize::new(flows.len());
        let has_received = job.ends.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            job,
            timeline,
            flows,
            meters,
            stop: Stop::default(),
            peers,
            wire: Wire::Own,
            rate_limited: false,
            budgets,
            unfinished,
            has_received,
        }
    }

    /// Notes that datagrams of a flow have arrived.
    #[inline]
    pub(crate) fn received(&self, flow: usize) {
        let has_received = &self.has_received[self.flows[flow].end];
        if !has_received.load(Ordering::Relaxed) {
            has_received.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether datagrams of any flow of this one's end have arrived.
    #[inline]
    pub(crate) fn has_received(&self, flow: usize) -> bool {
        self.has_received[self.flows[flow].end].load(Ordering::Relaxed)
    }

    /// The same, where the other ends speak `wire`.
    #[must_use]
    pub(crate) fn speaking(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }

    /// The same, where a limit binds the rate if `rate_limited`.
    #[must_use]
    pub(crate) fn rate_limited(self, rate_limited: bool) -> Self {
        Self { rate_limited, ..self }
    }

    /// What flow `index` may still move of its end's volume; none where the window ends by time, and at receivers that their sender
    /// tells the end. They take all that comes.
    pub(crate) fn budget(&self, index: usize) -> Option<&Budget> {
        let flow = &self.flows[index];
        let budgets = self.budgets.get(flow.end)?;
        let sends = flow.sends();
        (sends || self.wire != Wire::Own).then(|| &budgets[usize::from(sends)])
    }

    /// A flow has moved its part of the volume. The last one closes this host's window.
    pub(crate) fn finished(&self) {
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.timeline.set_close(clock::now());
        }
    }

    /// Wakes the flows that are received beside flow `index`: no more of their volume is awaited. Their peers do not notice.
    pub(crate) fn wake_receivers(&self, index: usize) {
        let end = self.flows[index].end;
        for flow in self.flows.iter().filter(|flow| flow.end == end && !flow.sends()) {
            if let Link::Tcp(stream) = &flow.link {
                // One whose peer has gone needs no waking.
                let _ = stream.shutdown(Shutdown::Read);
            }
        }
    }

    /// How the datagrams of flow `index` are numbered.
    pub(crate) fn numbering(&self, index: usize) -> Numbering {
        match self.wire {
            Wire::Own => Numbering::Own { tag: datagram::tag(&self.job.key, self.flows[index].hello.flow) },
            Wire::Iperf3 { wide, .. } => Numbering::Iperf3 { wide },
        }
    }

    /// Ends all threads, because of `reason` unless there was one before.
    pub(crate) fn stop(&self, reason: StreamError) {
        self.stop.set(reason);
        for flow in &self.flows {
            // Wakes the thread that waits in a call; a socket that is closed already needs no waking.
            let _ = match &flow.link {
                Link::Tcp(stream) => stream.shutdown(Shutdown::Both),
                Link::Udp(_) | Link::Dial | Link::Answer(_) => Ok(()),
            };
        }
    }

    /// Whether a peer that ends its flow at `now` in good order may have come to the end of its own window.
    pub(crate) fn may_end(&self, now: u64) -> bool {
        now + SKEW_NS > self.timeline.close()
    }

    /// The peer of flow `index` went away.
    pub(crate) fn gone(&self, index: usize, what: impl Into<String>) -> StreamError {
        let flow = &self.flows[index];
        let when = self.timeline.describe(clock::now());
        StreamError::PeerGone { path: flow.hello.path, peer: flow.peer, when, what: what.into() }
    }
}

/// What one flow counted.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) sent: Option<Sent>,
    pub(crate) received: Option<Received>,
    pub(crate) transactions: Option<Transactions>,
    pub(crate) flow: FlowCounts,
    /// UDP receivers: how many datagrams the sender numbered from the first to the last that arrived in the window.
    pub(crate) numbered: Option<u64>,
}

/// Returns whether a host cannot send for now, as while its link is down or its address changes.
pub(crate) fn is_cut_off(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), HostUnreachable | NetworkDown | NetworkUnreachable)
}

/// The address without the mapping of IPv4 into IPv6.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
