//! One flow at one end: its socket, its place in the trial, and the state that its thread shares with others.

use crate::budget::Budget;
use crate::datagram::{self, Numbering};
use crate::error::StreamError;
use crate::hello::Hello;
use crate::job::{Job, Load};
use crate::meter::Meter;
use crate::window::Timeline;
use linerate_engine::{AllowedPeers, Listener, Stop};
use linerate_model::{FlowCounts, Received, Sent, Transactions};
use linerate_sys::clock;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Largest distance between the windows of the two ends, because agents on busy hosts may receive their orders late.
pub(crate) const SKEW_NS: u64 = 1_000_000_000;

/// One flow at one end.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Index of its end on this host.
    pub(crate) end: usize,
    /// Its place in the trial.
    pub(crate) hello: Hello,
    /// Whether this end is the client's, which opened the flow.
    pub(crate) client: bool,
    /// Address of the other end.
    pub(crate) peer: SocketAddr,
    /// Address of this end.
    pub(crate) local: SocketAddr,
    pub(crate) link: Link,
    /// Round-trip time during the set-up, nanoseconds; zero if that was not timed (all but UDP).
    pub(crate) round_trip_ns: u64,
}

/// A flow's socket.
#[derive(Debug)]
pub(crate) enum Link {
    /// Persistent connection.
    Tcp(TcpStream),
    /// Connected socket.
    Udp(UdpSocket),
    /// Connections that this end opens, one per transaction.
    Dial,
    /// Connections that this end accepts, one per transaction.
    Answer(Listener),
}

impl Flow {
    /// Returns whether this end sends (in transactions: sends the requests).
    pub(crate) fn sends(&self) -> bool {
        self.client != self.hello.backward
    }

    /// Returns the persistent connection of the flow, if it has one.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match &self.link {
            Link::Tcp(stream) => Some(stream),
            Link::Udp(_) | Link::Dial | Link::Answer(_) => None,
        }
    }

    /// Returns the UDP socket of the flow, if it has one.
    pub(crate) fn udp(&self) -> Option<&UdpSocket> {
        match &self.link {
            Link::Udp(socket) => Some(socket),
            Link::Tcp(_) | Link::Dial | Link::Answer(_) => None,
        }
    }
}

/// State that all threads of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) job: Job,
    pub(crate) timeline: Timeline,
    pub(crate) flows: Vec<Flow>,
    /// One meter per flow. They can be read after the sockets are closed.
    pub(crate) meters: Arc<[Meter]>,
    pub(crate) stop: Stop<StreamError>,
    /// Peers that may open connections during the load.
    pub(crate) peers: AllowedPeers,
    /// Conventions of the other ends.
    pub(crate) wire: Wire,
    /// Whether a limit applies to the rate, so that nothing is sent before the rate has earned it.
    pub(crate) rate_limited: bool,
    /// Remaining volume of each end in the window, to receive and to send. Empty if the window ends by time.
    budgets: Vec<[Budget; 2]>,
    /// Number of flows that have not finished their part of the volume.
    unfinished: AtomicUsize,
    /// Whether each end has received datagrams.
    has_received: Vec<AtomicBool>,
}

/// Conventions between the two ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wire {
    /// Senders mark the phase of each datagram and the end of their stream: the protocol of this engine.
    #[default]
    Phased,
    /// Senders mark no phases and continue until they are told to stop, so receivers end with their window.
    Unphased {
        /// Whether datagrams have numbers of 64 bits, not of 32.
        wide: bool,
        /// Whether the client ends the stream after a number of bytes, whose last one must be seen on arrival.
        by_bytes: bool,
    },
}

impl Wire {
    /// Returns whether senders mark the end of their data.
    #[inline]
    pub(crate) fn marks_end(self) -> bool {
        self == Self::Phased
    }
}

impl Shared {
    /// Creates the shared state of `job`. `peers` may open connections during the load.
    pub(crate) fn new(job: Job, timeline: Timeline, flows: Vec<Flow>, peers: AllowedPeers) -> Self {
        let mut meters = Vec::new();
        for flow in &flows {
            meters.push(match job.load {
                Load::Transact(_) if flow.sends() => Meter::of_requests(),
                Load::Transact(_) | Load::Stream(_) => Meter::default(),
            });
        }
        let budgets = match job.volume() {
            Some(volume) => job.ends.iter().map(|_| [volume; 2].map(Budget::new)).collect(),
            None => Vec::new(),
        };
        Self {
            meters: meters.into(),
            stop: Stop::default(),
            peers,
            wire: Wire::default(),
            rate_limited: false,
            budgets,
            unfinished: AtomicUsize::new(flows.len()),
            has_received: job.ends.iter().map(|_| AtomicBool::new(false)).collect(),
            job,
            timeline,
            flows,
        }
    }

    /// Records that datagrams of a flow have arrived.
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

    /// Sets the conventions of the other ends.
    #[must_use]
    pub(crate) fn with_wire(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }

    /// Sets whether a limit applies to the rate.
    #[must_use]
    pub(crate) fn rate_limited(self, rate_limited: bool) -> Self {
        Self { rate_limited, ..self }
    }

    /// Returns the remaining volume of flow `index`'s end.
    ///
    /// Returns `None` if the window ends by time, and for receivers whose sender marks the end: they take all that
    /// arrives.
    pub(crate) fn budget(&self, index: usize) -> Option<&Budget> {
        let flow = &self.flows[index];
        let budgets = self.budgets.get(flow.end)?;
        let sends = flow.sends();
        (sends || !self.wire.marks_end()).then(|| &budgets[usize::from(sends)])
    }

    /// Records that a flow has moved its part of the volume. The last one closes this host's window.
    pub(crate) fn finished(&self) {
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.timeline.set_close(clock::now());
        }
    }

    /// Wakes the receiving flows of flow `index`'s end, whose volume has arrived. Their peers do not notice.
    pub(crate) fn wake_receivers(&self, index: usize) {
        let end = self.flows[index].end;
        for flow in self.flows.iter().filter(|flow| flow.end == end && !flow.sends()) {
            if let Link::Tcp(stream) = &flow.link {
                // A connection whose peer has gone fails here and needs no waking.
                let _ = stream.shutdown(Shutdown::Read);
            }
        }
    }

    /// Returns the numbering of flow `index`'s datagrams.
    pub(crate) fn numbering(&self, index: usize) -> Numbering {
        match self.wire {
            Wire::Phased => Numbering::Tagged { tag: datagram::tag(&self.job.key, self.flows[index].hello.flow) },
            Wire::Unphased { wide, .. } => Numbering::Timestamped { wide },
        }
    }

    /// Ends all threads. Keeps `reason` if it is the first.
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

    /// Returns whether the window of a peer that ends its flow at `now` may have ended.
    pub(crate) fn may_end(&self, now: u64) -> bool {
        now + SKEW_NS > self.timeline.close()
    }

    /// Creates the error for a peer of flow `index` that went away.
    pub(crate) fn gone(&self, index: usize, what: impl Into<String>) -> StreamError {
        let flow = &self.flows[index];
        let when = self.timeline.describe(clock::now());
        StreamError::PeerGone { path: flow.hello.path, peer: flow.peer, when, what: what.into() }
    }
}

/// Counts of one flow.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) sent: Option<Sent>,
    pub(crate) received: Option<Received>,
    pub(crate) transactions: Option<Transactions>,
    pub(crate) flow: FlowCounts,
    /// UDP receivers: number of datagrams the sender numbered from the first to the last that arrived in the window.
    pub(crate) numbered: Option<u64>,
}

/// Returns whether a host cannot send for now, for example while its link is down or its address changes.
pub(crate) fn is_cut_off(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), HostUnreachable | NetworkDown | NetworkUnreachable)
}

/// Returns the address without the mapping of IPv4 into IPv6.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
