//! Requests and responses, timed from the request (in an open loop: from its due time) to the response's last byte.

mod connect;
mod tcp;
mod udp;

pub(crate) use connect::strangers;

use crate::error::StreamError;
use crate::flow::{Link, Outcome, SKEW_NS, Shared};
use crate::meter::Meter;
use linerate_engine::{PEER_GONE, Schedule};
use linerate_model::{TransactTask, Transactions};

/// Time without progress after the window that ends the wait for answers.
const DRAIN_NS: u64 = 1_000_000_000;
/// Longest wait for answers after the window, even with progress. 64 kbit/s carry 80 kB in this time.
const LONGEST_DRAIN_NS: u64 = 10_000_000_000;

/// Returns the time when a connection gives up outstanding answers after the window's `close`. It was last `heard` at
/// that time.
fn drained(close: u64, heard: u64) -> u64 {
    heard.clamp(close, close + LONGEST_DRAIN_NS) + DRAIN_NS
}

/// Silence after the window that ends the answering end.
const QUIET_NS: u64 = 250_000_000;

/// Returns that silence at a rate: at least twice the gap between requests of a flow, because the client may have
/// started later.
fn quiet_ns(spec: &TransactTask) -> u64 {
    let two_gaps = spec.rate.map_or(0, |rate| 2_000_000_000 * u64::from(spec.net.flows) / rate.get().max(1));
    two_gaps.clamp(QUIET_NS, SKEW_NS)
}
/// Silence after which the peer counts as gone.
const SILENCE_NS: u64 = PEER_GONE.as_nanos() as u64;

/// Runs one flow's thread.
pub(crate) fn run(shared: &Shared, index: usize, spec: &TransactTask) -> Result<Outcome, StreamError> {
    let flow = &shared.flows[index];
    let asks = flow.sends();
    match &flow.link {
        Link::Tcp(stream) if asks => tcp::ask(shared, index, spec, stream),
        Link::Tcp(stream) => tcp::answer(shared, index, spec, stream),
        Link::Udp(socket) if asks => udp::ask(shared, index, spec, socket),
        Link::Udp(socket) => udp::answer(shared, index, spec, socket),
        Link::Dial => connect::ask(shared, index, spec),
        Link::Answer(listener) => connect::answer(shared, index, spec, listener),
    }
}

/// Returns the schedule of flow `index`'s requests, or `None` in a closed loop.
fn schedule(spec: &TransactTask, shared: &Shared, index: usize) -> Option<Schedule> {
    let rate = spec.rate?;
    let start = shared.timeline.start();
    let start = if shared.rate_limited { Schedule::earned_start(rate, start) } else { start };
    let flow = shared.flows[index].hello.flow;
    Some(Schedule::new(rate, spec.arrivals, start, (flow, spec.net.flows), rand::random()))
}

/// Counts of the client.
///
/// A closed loop counts the requests answered within the window, and also times requests that were outstanding at its
/// end. An open loop times every request that was due within the window, whenever its answer came. Leaving out requests
/// that a stall delayed beyond the end would hide the stall.
struct Tally<'a> {
    shared: &'a Shared,
    meter: &'a Meter,
    request_bytes: u64,
    response_bytes: u64,
    open_loop: bool,
    transactions: Transactions,
}

impl<'a> Tally<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &TransactTask) -> Self {
        let window = shared.timeline.measure();
        let transactions = Transactions { window, ..Transactions::default() };
        Self {
            shared,
            meter: &shared.meters[index],
            request_bytes: spec.request_bytes.get(),
            response_bytes: spec.response_bytes.get(),
            open_loop: spec.rate.is_some(),
            transactions,
        }
    }

    #[inline]
    fn in_window(&self, at: u64) -> bool {
        self.shared.timeline.in_window(at)
    }

    /// Counts the answer, complete at `now`, to the request of `since`.
    #[inline]
    fn answered(&mut self, since: u64, now: u64) {
        let timeline = &self.shared.timeline;
        let latency = now.saturating_sub(since);
        self.meter.answered(latency, self.request_bytes, self.response_bytes);
        self.transactions.completed += u64::from(timeline.in_window(now));
        let is_timed =
            if self.open_loop { timeline.in_window(since) } else { now >= timeline.open() && since < timeline.close() };
        if is_timed {
            self.transactions.latency.record(latency);
        }
    }

    /// Records the lateness of the next request of `schedule` at `now`.
    #[inline]
    fn late(&self, schedule: &Schedule, now: u64) {
        self.meter.late(now.saturating_sub(schedule.due()));
    }

    /// Counts the request of `since` as failed.
    fn failed(&mut self, since: u64) {
        if self.in_window(since) {
            self.transactions.failed += 1;
        }
    }

    /// Counts the requests left in `schedule` that were due within the window as not sent.
    fn not_sent(&mut self, schedule: Option<&Schedule>) {
        let timeline = &self.shared.timeline;
        self.transactions.not_sent += schedule.map_or(0, |left| left.left_within(timeline.open(), timeline.close()));
    }

    /// Returns the bytes sent and received for the completed transactions.
    fn bytes(&self) -> (u64, u64) {
        let completed = self.transactions.completed;
        (completed * self.request_bytes, completed * self.response_bytes)
    }
}

#[cfg(test)]
mod tests;
