//! How far the flows of a session are, and what TCP says of them.

use crate::flow::{Flow, Link, Shared};
use crate::meter::Meter;
use linerate_engine::{Ended, Meters, retransmits, sample_tcp};
use linerate_model::{Readings, SeriesQuantity as Quantity, Task, Transport};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// How far the flows are. It keeps none of their sockets open, as it may be kept longer than they live.
pub(crate) struct Progress {
    shared: Weak<Shared>,
    /// Whether each flow sends, in the order of the meters.
    sends: Vec<bool>,
    meters: Arc<[Meter]>,
    /// Messages are datagrams of a stream, and told apart.
    counts_messages: bool,
    /// What the sockets said last of segments sent again: the count stays when they are gone.
    retransmits: AtomicU64,
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
            retransmits: AtomicU64::new(0),
            ended,
        }
    }

    fn sum(&self, of: impl Fn(&Meter) -> u64) -> u64 {
        self.meters.iter().map(of).sum()
    }

    fn messages(&self, sends: bool) -> u64 {
        let flows = self.sends.iter().zip(&self.meters[..]).filter(|(flow_sends, _)| **flow_sends == sends);
        flows.map(|(_, meter)| meter.messages()).sum()
    }
}

impl Meters for Progress {
    fn read(&self) -> linerate_model::Meter {
        if let Some(shared) = self.shared.upgrade() {
            self.retransmits.fetch_max(retransmits(connections(&shared)), Ordering::Relaxed);
        }
        linerate_model::Meter {
            sent_bytes: self.sum(Meter::sent_bytes),
            received_bytes: self.sum(Meter::received_bytes),
            operations: self.sum(Meter::transactions),
            retransmits: self.retransmits.load(Ordering::Relaxed),
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

/// The standing connections whose account says something of the load: those that send, and of transactions all.
fn connections(shared: &Shared) -> impl Iterator<Item = BorrowedFd<'_>> {
    let transacts = matches!(shared.job.task, Task::Transact(_));
    shared.flows.iter().filter(move |flow| transacts || flow.sends()).filter_map(|flow| match &flow.link {
        Link::Tcp(stream) => Some(stream.as_fd()),
        Link::Udp(_) | Link::Dial | Link::Answer(_) => None,
    })
}
