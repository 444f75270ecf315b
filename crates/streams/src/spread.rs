//! Many flows of a stream on a few threads. Each thread serves its flows in turn with calls that do not block, and
//! waits for all their sockets at once. Up to [`OWN_THREADS`] flows have a thread each instead.

use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use linerate_engine::{Stopped, Timeline};
use linerate_sys::clock;
use linerate_sys::epoll::{Epoll, Interest};
use linerate_sys::handle::BorrowedSocket;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread::available_parallelism;

/// Most flows of one direction that have a thread each. A thread costs memory, and a context switch per waiting call;
/// with more flows the cores are busy in any case.
pub(crate) const OWN_THREADS: usize = 128;
/// Interval of checking all flows, also those whose sockets are not ready.
const LOOK_NS: u64 = 50_000_000;

/// Returns the number of threads for `flows` flows of one direction. They run on `cpus`, or on any core if that is
/// empty.
pub(crate) fn threads(flows: usize, cpus: &[u32]) -> usize {
    if flows <= OWN_THREADS {
        return flows;
    }
    let cores = if cpus.is_empty() { available_parallelism().map_or(1, usize::from) } else { cpus.len() };
    cores.min(flows)
}

/// Flow that shares a thread with others.
pub(crate) trait Served {
    /// State that the flows of a thread share, mainly buffers.
    type Common;
    /// Event that ends the wait for its socket.
    const WAITS_FOR: Interest;

    fn socket(&self) -> BorrowedSocket<'_>;

    /// Moves data that are due, in one call that does not wait.
    fn turn(&mut self, common: &mut Self::Common) -> Result<Next, StreamError>;

    /// Checks the time between turns. Returns whether the flow is over.
    fn look(&mut self, common: &mut Self::Common) -> Result<bool, StreamError>;

    /// Returns the counts of the flow.
    fn finish(self, common: &Self::Common) -> Result<Outcome, StreamError>;
}

/// Next turn of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Turn when its socket is ready.
    Ready,
    /// Turn at a time, nanoseconds.
    At(u64),
    /// No more turns.
    Over,
}

/// Serves `flows` until all are over, with a first turn at `first`. Returns the counts of each.
pub(crate) fn serve<F: Served>(
    shared: &Shared,
    flows: Vec<F>,
    common: &mut F::Common,
    first: u64,
) -> Result<Vec<Outcome>, StreamError> {
    let due = (0..flows.len()).map(|number| Reverse((first, number))).collect();
    let outcomes = flows.iter().map(|_| Outcome::default()).collect();
    let left = flows.len();
    let flows = flows.into_iter().map(|flow| Some(Slot { flow, waits: false })).collect();
    let mut turns = Turns { flows, outcomes, left, epoll: Epoll::new()?, due };
    let mut ready = Vec::new();
    let mut look_at = clock::now();
    while turns.left > 0 {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let now = clock::now();
        // All flows are sampled at an edge of the window.
        let look = look_at.min(edge_after(&shared.timeline, now));
        let until = turns.due.peek().map_or(look, |Reverse((at, _))| look.min(*at));
        turns.epoll.wait(until.saturating_sub(now), &mut ready)?;
        let now = clock::now();
        while let Some(Reverse((at, number))) = turns.due.peek()
            && *at <= now
        {
            ready.push(*number);
            turns.due.pop();
        }
        for number in ready.drain(..) {
            turns.turn(number, common)?;
        }
        let now = clock::now();
        if now >= look {
            turns.look(common)?;
            look_at = now + LOOK_NS;
        }
    }
    Ok(turns.outcomes)
}

/// Returns the next edge of the window, or a time beyond any clock if there is no next edge.
pub(crate) fn edge_after(timeline: &Timeline, now: u64) -> u64 {
    [timeline.open(), timeline.close()].into_iter().find(|edge| *edge > now).unwrap_or(u64::MAX)
}

struct Turns<F> {
    /// `None` if the flow is over.
    flows: Vec<Option<Slot<F>>>,
    outcomes: Vec<Outcome>,
    /// Number of flows that are not over.
    left: usize,
    epoll: Epoll,
    /// Flows with a turn at a time, the earliest first. The others wait for their sockets.
    due: BinaryHeap<Reverse<(u64, usize)>>,
}

struct Slot<F> {
    flow: F,
    /// Whether the thread waits for its socket.
    waits: bool,
}

impl<F: Served> Turns<F> {
    fn turn(&mut self, number: usize, common: &mut F::Common) -> Result<(), StreamError> {
        let Some(slot) = &mut self.flows[number] else { return Ok(()) };
        let next = slot.flow.turn(common)?;
        match next {
            Next::Over => return self.end(number, common),
            Next::At(at) => self.due.push(Reverse((at, number))),
            Next::Ready => (),
        }
        let waits = next == Next::Ready;
        if waits != slot.waits {
            slot.waits = waits;
            if waits {
                self.epoll.add(slot.flow.socket(), F::WAITS_FOR, number)?;
            } else {
                self.epoll.remove(slot.flow.socket())?;
            }
        }
        Ok(())
    }

    fn look(&mut self, common: &mut F::Common) -> Result<(), StreamError> {
        for number in 0..self.flows.len() {
            if let Some(slot) = &mut self.flows[number]
                && slot.flow.look(common)?
            {
                self.end(number, common)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, number: usize, common: &F::Common) -> Result<(), StreamError> {
        let Some(Slot { flow, waits }) = self.flows[number].take() else { return Ok(()) };
        self.left -= 1;
        if waits {
            self.epoll.remove(flow.socket())?;
        }
        self.outcomes[number] = flow.finish(common)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Warmup, Window};
    use linerate_units::Nanos;

    #[test]
    fn few_flows_get_a_thread_each_and_many_share_one_per_core() {
        for (flows, cpus, expected) in
            [(0, &[][..], 0), (1, &[], 1), (128, &[], 128), (128, &[3], 128), (129, &[3], 1), (4_096, &[0, 1, 5], 3)]
        {
            assert_eq!(threads(flows, cpus), expected, "{flows} flows on {cpus:?}");
        }
        assert!((1..=129).contains(&threads(129, &[])));
    }

    #[test]
    fn next_edge_follows_the_window() {
        let window = Window { warmup: Warmup::Fixed(Nanos::new(100)), measure: Nanos::new(50) };
        let timeline = Timeline::new(1_000, window);
        for (now, edge) in [(0, 1_100), (1_099, 1_100), (1_100, 1_150), (1_149, 1_150), (1_150, u64::MAX)] {
            assert_eq!(edge_after(&timeline, now), edge, "{now}");
        }
    }
}
