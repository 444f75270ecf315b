//! When a sender of bulk data over TCP may send how much, where a rate is offered.

use crate::flow::Shared;
use crate::meter::Meter;
use linerate_engine::Pace;
use linerate_model::{Offered, StreamTask};
use linerate_sys::clock;
use linerate_units::BitRate;

/// A paced sender hands over what is due within this, so that the load is even.
const PACED_BURST_NS: u64 = 250_000;
/// The same of one of many flows of a thread at the most: a flow at a low rate is to be seen in each interval.
const SHARED_BURST_NS: u64 = 100_000_000;
/// A paced sender that is further behind gives up the difference: the network's load must not exceed what was asked for
/// for long.
const CATCH_UP_NS: u64 = 20_000_000;

/// Holds a sender to its share of the offered rate.
pub(super) struct Pacing {
    /// In units of one byte, so that bursts can be of any size.
    pace: Pace,
    burst: u64,
    /// The same of the first burst.
    first: u64,
    start: u64,
    /// Bytes that were given up.
    forgone: u64,
    most_behind: u64,
}

impl Pacing {
    pub(super) fn new(shared: &Shared, index: usize, spec: &StreamTask) -> Option<Self> {
        let per_second = match spec.offered? {
            Offered::PayloadBps(rate) => rate.get(),
            Offered::MessagesPerS(rate) => rate.get().saturating_mul(spec.message_bytes.get()).saturating_mul(8),
        };
        let start = shared.timeline.start();
        let flow = shared.flows[index].hello.flow;
        let pace = Pace::new(Offered::PayloadBps(BitRate::per_second(per_second)), 1, start, flow, spec.net.flows);
        // Full segments, where the rate allows.
        let burst = pace.within(PACED_BURST_NS).min(spec.message_bytes.get());
        let most_behind = pace.within(CATCH_UP_NS).max(burst);
        Some(Self { pace, burst, first: burst, start, forgone: 0, most_behind })
    }

    /// Makes bursts so long that a thread which serves `flows` flows has one within [`PACED_BURST_NS`]. That of flow `number` of
    /// these comes a part of this later than that of the flow before it.
    pub(super) fn take_turns(&mut self, number: u64, flows: u64) {
        let burst = self.pace.within((PACED_BURST_NS * flows).min(SHARED_BURST_NS));
        (self.burst, self.most_behind) = (burst, self.pace.within(CATCH_UP_NS) + burst);
        self.first = (burst * (1 + number) / flows).max(1);
    }

    /// When a burst is due, after `sent` bytes.
    pub(super) fn due(&self, sent: u64) -> u64 {
        let next = sent + self.forgone;
        let burst = if next == 0 { self.first } else { self.burst };
        self.pace.due(next + burst - 1).max(self.start)
    }

    /// Waits until a burst is due; returns how many bytes may be sent. A stop is seen after 100 ms at most.
    pub(super) fn wait(&mut self, sent: u64, meter: &Meter) -> usize {
        let (at, now) = (self.due(sent), clock::now());
        if at > now {
            clock::sleep_until(at.min(now + 100_000_000));
        }
        self.allowed(sent, at, clock::now(), meter)
    }

    /// Bytes that may be sent at `now`, after `sent`, where a burst was due `at`.
    pub(super) fn allowed(&mut self, sent: u64, at: u64, now: u64, meter: &Meter) -> usize {
        meter.late(now.saturating_sub(at));
        let next = sent + self.forgone;
        let behind = self.pace.due_by(now).saturating_sub(next);
        self.forgone += behind.saturating_sub(self.most_behind);
        behind.min(self.most_behind) as usize
    }
}
