//! Progress of a session's flows, and samples of their TCP state.

use crate::flow::{Flow, Shared};
use crate::meter::Meter;
use linerate_engine::{Ended, Meters, sample_tcp};
use linerate_model::{Readings, SeriesQuantity as Quantity, Transport};
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::tcp;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Connections whose retransmits are read at a time. Each reading holds the lock of a connection for about a
/// microsecond.
const CONNECTIONS_PER_READING: usize = 256;

/// Progress of the flows. It keeps no socket open, because it may live longer than the flows.
pub(crate) struct Progress {
    shared: Weak<Shared>,
    /// Whether each flow sends, in the order of the meters.
    sends: Vec<bool>,
    meters: Arc<[Meter]>,
    /// Whether the messages are datagrams of a stream, which are counted.
    counts_messages: bool,
    /// Flow whose retransmits are read next.
    next: AtomicUsize,
    ended: Ended,
}

impl Progress {
    /// Creates the progress of the flows of `shared`, on the threads of `ended`.
    pub(crate) fn new(shared: &Arc<Shared>, ended: Ended) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            sends: shared.flows.iter().map(Flow::sends).collect(),
            meters: Arc::clone(&shared.meters),
            counts_messages: !shared.job.transacts() && shared.job.transport() == Transport::Udp,
            next: AtomicUsize::new(0),
            ended,
        }
    }

    fn sum(&self, of: impl Fn(&Meter) -> u64) -> u64 {
        self.meters.iter().map(of).sum()
    }

    /// Records the retransmits of the connections, of many flows a part at each reading. The counts outlive the
    /// connections.
    fn count_retransmits(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let count = shared.flows.len();
        let first = self.next.fetch_add(CONNECTIONS_PER_READING, Ordering::Relaxed);
        for index in (0..count.min(CONNECTIONS_PER_READING)).map(|offset| (first + offset) % count) {
            let info = connection(&shared, &shared.flows[index]).and_then(|socket| tcp::info(socket).ok()?);
            if let Some(info) = info {
                self.meters[index].retransmitted(info.total_retrans.into());
            }
        }
    }

    fn messages(&self, sends: bool) -> u64 {
        let flows = self.sends.iter().zip(&self.meters[..]).filter(|(flow_sends, _)| **flow_sends == sends);
        flows.map(|(_, meter)| meter.messages()).sum()
    }
}

impl Meters for Progress {
    fn read(&self) -> linerate_model::Meter {
        self.count_retransmits();
        linerate_model::Meter {
            sent_bytes: self.sum(Meter::sent_bytes),
            received_bytes: self.sum(Meter::received_bytes),
            operations: self.sum(Meter::transactions),
            retransmits: self.sum(Meter::retransmits),
            lost: self.sum(Meter::lost),
        }
    }

    fn sample(&self, readings: &mut Readings) {
        if self.counts_messages {
            readings.add(Quantity::SentMessages, "", self.messages(true));
            readings.add(Quantity::ReceivedMessages, "", self.messages(false));
        }
        let late = self.meters.iter().map(Meter::take_lateness).max().unwrap_or_default();
        readings.add(Quantity::Lateness, "", late / 1_000);
        for counts in self.meters.iter().filter_map(Meter::latency) {
            readings.add_latency(counts);
        }
        if let Some(shared) = self.shared.upgrade() {
            sample_tcp(connections(&shared), readings);
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.all()
    }
}

/// Returns the persistent connections that are sampled.
fn connections(shared: &Shared) -> impl Iterator<Item = BorrowedSocket<'_>> {
    shared.flows.iter().filter_map(|flow| connection(shared, flow))
}

/// Returns the persistent connection of `flow` if its TCP state describes the load: if it sends, or carries
/// transactions.
fn connection<'a>(shared: &Shared, flow: &'a Flow) -> Option<BorrowedSocket<'a>> {
    let stream = flow.tcp()?;
    (flow.sends() || shared.job.transacts()).then(|| stream.as_socket())
}
