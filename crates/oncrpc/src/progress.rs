//! Progress of a session's flows and servers.

use crate::flow_meter::FlowMeter;
use crate::server::ServerMeter;
use linerate_engine::{Ended, Meters, Timeline, retransmits, sample_tcp};
use linerate_model::{Meter, Readings, SeriesQuantity};
use linerate_sys::clock;
use linerate_sys::handle::AsSocket as _;
use std::net::TcpStream;
use std::sync::{Arc, Weak};

/// Flows and servers at work, for observers. It holds none of their sockets and files, as it may be kept longer than
/// they live.
pub(crate) struct Progress {
    timeline: Timeline,
    flows: Arc<[FlowMeter]>,
    /// Whether calls are made when they are due.
    is_open_loop: bool,
    /// TCP: the flows' connections.
    connections: Vec<Weak<TcpStream>>,
    /// TCP: segments sent again before the load began.
    retransmits_before: u64,
    servers: Vec<ServerMeter>,
    ended: Ended,
}

impl Progress {
    pub(crate) fn new(
        timeline: Timeline,
        flows: Arc<[FlowMeter]>,
        is_open_loop: bool,
        connections: Vec<Weak<TcpStream>>,
        servers: Vec<ServerMeter>,
        ended: Ended,
    ) -> Self {
        let mut progress = Self { timeline, flows, is_open_loop, connections, retransmits_before: 0, servers, ended };
        progress.retransmits_before = progress.segments_again();
        progress
    }

    /// The connections that are still open.
    fn open_connections(&self) -> Vec<Arc<TcpStream>> {
        self.connections.iter().filter_map(Weak::upgrade).collect()
    }

    /// TCP: segments sent again since the flows were connected.
    fn segments_again(&self) -> u64 {
        retransmits(self.open_connections().iter().map(|connection| connection.as_socket()))
    }
}

impl Meters for Progress {
    fn read(&self) -> Meter {
        let again = self.segments_again().saturating_sub(self.retransmits_before);
        let mut sum = Meter { retransmits: again, ..Meter::default() };
        for flow in self.flows.iter().map(FlowMeter::read) {
            sum.sent_bytes += flow.sent_bytes;
            sum.received_bytes += flow.received_bytes;
            sum.operations += flow.operations;
            sum.retransmits += flow.retransmits;
        }
        for moved in self.servers.iter().filter_map(ServerMeter::moved) {
            sum.sent_bytes += moved.sent_bytes;
            sum.received_bytes += moved.received_bytes;
        }
        sum
    }

    fn sample(&self, readings: &mut Readings) {
        self.flows.iter().for_each(|flow| readings.add_latency(flow.latency()));
        if self.is_open_loop && !self.flows.is_empty() {
            let behind = self.flows.iter().map(FlowMeter::take_behind).max().unwrap_or_default();
            readings.add(SeriesQuantity::Lateness, "", behind / 1_000);
        }
        sample_tcp(self.open_connections().iter().map(|connection| connection.as_socket()), readings);
    }

    fn has_ended(&self) -> bool {
        // A server has nothing to be done with before the window closes.
        self.ended.all() && (self.servers.is_empty() || clock::now() >= self.timeline.close())
    }
}
