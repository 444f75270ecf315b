//! How far the flows of a session are, and what TCP says of them.

use crate::flow::{Flow, Link, Shared};
use crate::meter::Meter;
use linerate_engine::{Ended, Meters, sample_tcp};
use linerate_model::{Readings, SeriesQuantity as Quantity, Task, Transport};
use linerate_sys::tcp;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Connections that say at a look what they sent again: each holds its lock for about a microsecond, which its thread may wait for.
const MOST_AT_A_LOOK: usize = 256;

/// How far the flows are. It keeps none of their sockets open, as it may be kept longer than they live.
pub(crate) struct Progress {
    shared: Weak<Shared>,
    /// Whether each flow sends, in the order of the meters.
    sends: Vec<bool>,
    meters: Arc<[Meter]>,
    /// Messages are datagrams of a stream, and told apart.
    counts_messages: bool,
    /// The flow whose connection is to say next how many segments it sent again.
    next: AtomicUsize,
    ended: Ended,
}

impl Progress {
    /// How far the flows of `shared` are, whose threads `ended` tells of.
    pub(crate) fn new(shared: &Arc<Shared>, ended: Ended) -> Self {
        Self {
            shared: Arc::downgrade(shared),
            sends: shared.flows.iter().map(Flow::sends).collect(),
            meters: Arc::clone(&shared.meters),
            counts_messages: matches!(shared.job.task, Task::Stream(_)) && shared.job.transport() == Transport::Udp,
            next: AtomicUsize::new(0),
            ended,
        }
    }

    fn sum(&self, of: impl Fn(&Meter) -> u64) -> u64 {
        self.meters.iter().map(of).sum()
    }

    /// Notes how many segments the connections sent again: of very many flows some at each look, in turn. The count stays when they are gone.
    fn count_retransmits(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let all = shared.flows.len();
        let first = self.next.fetch_add(MOST_AT_A_LOOK, Ordering::Relaxed);
        for index in (0..all.min(MOST_AT_A_LOOK)).map(|offset| (first + offset) % all) {
            let info = connection(&shared, &shared.flows[index]).and_then(|socket| tcp::info(socket).ok());
            if let Some(info) = info {
                self.meters[index].sent_again(info.total_retrans.into());
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

/// The standing connections whose account says something of the load.
fn connections(shared: &Shared) -> impl Iterator<Item = BorrowedFd<'_>> {
    shared.flows.iter().filter_map(|flow| connection(shared, flow))
}

/// The standing connection of `flow` if its account says something of the load: if it sends, or carries transactions.
fn connection<'a>(shared: &Shared, flow: &'a Flow) -> Option<BorrowedFd<'a>> {
    match &flow.link {
        Link::Tcp(stream) => (flow.sends() || matches!(shared.job.task, Task::Transact(_))).then(|| stream.as_fd()),
        Link::Udp(_) | Link::Dial | Link::Answer(_) => None,
    }
}
