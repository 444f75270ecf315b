//! Pacing of a TCP bulk sender at an offered rate.

use crate::flow::Shared;
use crate::meter::Meter;
use linerate_engine::Pace;
use linerate_model::{Offered, StreamTask};
use linerate_sys::clock;
use linerate_units::BitRate;

/// Time whose bytes a paced sender hands over at once, so that the load is even.
const PACED_BURST_NS: u64 = 250_000;
/// Upper limit of that time for flows that share a thread: a flow at a low rate must show in each interval.
const SHARED_BURST_NS: u64 = 100_000_000;
/// Largest lateness that a paced sender catches up. It skips the rest, because the load must not exceed the offered
/// rate for long.
const CATCH_UP_NS: u64 = 20_000_000;

/// Limits a sender to its share of the offered rate.
pub(super) struct Pacing {
    /// Pace in units of one byte, so that bursts can have any size.
    pace: Pace,
    burst: u64,
    /// Size of the first burst.
    first_burst: u64,
    start: u64,
    /// Bytes that were skipped.
    skipped: u64,
    /// Most bytes that are caught up.
    max_behind: u64,
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
        let max_behind = pace.within(CATCH_UP_NS).max(burst);
        Some(Self { pace, burst, first_burst: burst, start, skipped: 0, max_behind })
    }

    /// Lengthens the bursts for a thread that serves `flows` flows, so that it has one burst per [`PACED_BURST_NS`].
    /// The bursts of the flows, by their `number`, are spread evenly.
    pub(super) fn take_turns(&mut self, number: u64, flows: u64) {
        let burst = self.pace.within((PACED_BURST_NS * flows).min(SHARED_BURST_NS));
        self.burst = burst;
        self.max_behind = self.pace.within(CATCH_UP_NS) + burst;
        self.first_burst = (burst * (1 + number) / flows).max(1);
    }

    /// Returns the time when the burst after `sent` bytes is due.
    pub(super) fn due(&self, sent: u64) -> u64 {
        let next = sent + self.skipped;
        let burst = if next == 0 { self.first_burst } else { self.burst };
        self.pace.due(next + burst - 1).max(self.start)
    }

    /// Waits until a burst is due, at most 100 ms, and returns the number of bytes that may be sent.
    pub(super) fn wait(&mut self, sent: u64, meter: &Meter) -> usize {
        let at = self.due(sent);
        let now = clock::now();
        if at > now {
            clock::sleep_until(at.min(now + 100_000_000));
        }
        self.allowed(sent, at, clock::now(), meter)
    }

    /// Returns the number of bytes that may be sent at `now`, after `sent` bytes. The burst was due at `at`.
    pub(super) fn allowed(&mut self, sent: u64, at: u64, now: u64, meter: &Meter) -> usize {
        meter.late(now.saturating_sub(at));
        let next = sent + self.skipped;
        let behind = self.pace.due_by(now).saturating_sub(next);
        self.skipped += behind.saturating_sub(self.max_behind);
        behind.min(self.max_behind) as usize
    }
}
