//! Requests and responses, timed from the request (in an open loop: from when it was due) to the response's last byte.

mod connect;
mod tcp;
mod udp;

pub(crate) use connect::strangers;

use crate::error::StreamError;
use crate::flow::{Link, Outcome, SKEW_NS, Shared};
use crate::meter::Meter;
use linerate_engine::{PEER_GONE, Schedule};
use linerate_model::{TransactTask, Transactions};

/// After the window, answers are awaited until none has made progress for this long.
const DRAIN_NS: u64 = 1_000_000_000;
/// Longest wait for answers after the window, even if they make progress. 64 kbit/s carry 80 kB in this time.
const LONGEST_DRAIN_NS: u64 = 10_000_000_000;

/// Returns when a connection that was last `heard` gives up answers that are outstanding after the window's `close`.
fn drained(close: u64, heard: u64) -> u64 {
    heard.clamp(close, close + LONGEST_DRAIN_NS) + DRAIN_NS
}

/// After the window the answering end stays until nothing came for so long.
const QUIET_NS: u64 = 250_000_000;

/// The same at a set rate: at least the time between two requests of a flow and once more, because the asking end may have started later.
fn quiet_ns(spec: &TransactTask) -> u64 {
    let two = spec.rate.map_or(0, |rate| 2_000_000_000 * u64::from(spec.net.flows) / rate.get().max(1));
    two.clamp(QUIET_NS, SKEW_NS)
}
/// Nothing at all for so long: the peer is gone.
const SILENCE_NS: u64 = PEER_GONE.as_nanos() as u64;

/// Runs one flow's thread.
pub(crate) fn run(shared: &Shared, index: usize, spec: &TransactTask, link: &Link) -> Result<Outcome, StreamError> {
    let asks = shared.flows[index].sends();
    match link {
        Link::Tcp(stream) if asks => tcp::ask(shared, index, spec, stream),
        Link::Tcp(stream) => tcp::answer(shared, index, spec, stream),
        Link::Udp(socket) if asks => udp::ask(shared, index, spec, socket),
        Link::Udp(socket) => udp::answer(shared, index, spec, socket),
        Link::Dial => connect::ask(shared, index, spec),
        Link::Answer(listener) => connect::answer(shared, index, spec, listener),
    }
}

/// Returns when the requests of flow `index` are due; `None` in a closed loop.
fn schedule(spec: &TransactTask, shared: &Shared, index: usize) -> Option<Schedule> {
    let (rate, start) = (spec.rate?, shared.timeline.start());
    let start = if shared.rate_limited { Schedule::earned_start(rate, start) } else { start };
    let flow = shared.flows[index].hello.flow;
    Some(Schedule::new(rate, spec.arrivals, start, (flow, spec.net.flows), rand::random()))
}

/// What the asking end counts.
///
/// A closed loop counts the requests answered within the window, and times also those that were under way at its end. An open
/// loop times every request that was due within it, whenever its answer came. To leave out those that a stall pushed beyond the
/// end would hide the stall.
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

    /// The answer to the request of `since` is complete at `now`.
    #[inline]
    fn answered(&mut self, since: u64, now: u64) {
        let (timeline, took) = (&self.shared.timeline, now.saturating_sub(since));
        self.meter.answered(took, self.request_bytes, self.response_bytes);
        self.transactions.completed += u64::from(timeline.in_window(now));
        let is_timed = match self.open_loop {
            true => timeline.in_window(since),
            false => now >= timeline.open() && since < timeline.close(),
        };
        if is_timed {
            self.transactions.latency.record(took);
        }
    }

    /// This end is at `now`, and what `schedule` says to be next was due before.
    #[inline]
    fn late(&self, schedule: &Schedule, now: u64) {
        self.meter.late(now.saturating_sub(schedule.due()));
    }

    /// The request of `since` will never be answered.
    fn failed(&mut self, since: u64) {
        if self.in_window(since) {
            self.transactions.failed += 1;
        }
    }

    /// The requests that `schedule` still holds were due within the window and were not sent.
    fn not_sent(&mut self, schedule: Option<&Schedule>) {
        let timeline = &self.shared.timeline;
        self.transactions.not_sent += schedule.map_or(0, |left| left.left_within(timeline.open(), timeline.close()));
    }

    /// What went over the wire for the completed transactions: sent and received bytes.
    fn bytes(&self) -> (u64, u64) {
        let completed = self.transactions.completed;
        (completed * self.request_bytes, completed * self.response_bytes)
    }
}

#[cfg(test)]
mod tests;
