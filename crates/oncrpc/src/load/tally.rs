//! What a calling flow counts.

use crate::client::Caller;
use crate::error::RpcError;
use crate::flow::Shared;
use linerate_engine::Timeline;
use linerate_model::{TcpFlow, Transactions};
use linerate_pace::Schedule;
use linerate_sys::tcp::{self, Info};
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;

/// Calls counted and timed over the window.
///
/// A closed loop counts and times the calls answered within the window. An open loop times every call that was due within it,
/// whenever its reply came: to leave out those that a stall pushed beyond the end would hide the stall.
#[derive(Debug)]
pub struct Tally<'a> {
    shared: &'a Shared,
    index: usize,
    open_loop: bool,
    /// The counts so far.
    pub transactions: Transactions,
}

impl<'a> Tally<'a> {
    /// Counts the calls of flow `index`.
    pub fn new(shared: &'a Shared, index: usize) -> Self {
        let window = shared.timeline.measure();
        let open_loop = shared.job.task.requests_per_s().is_some();
        Self { shared, index, open_loop, transactions: Transactions { window, ..Transactions::default() } }
    }

    fn in_window(&self, at: u64) -> bool {
        self.shared.timeline.in_window(at)
    }

    /// The call of `since` was answered at `now`, as it should be. Whether that is timed, and whether it is counted.
    pub fn answered(&mut self, since: u64, now: u64) -> (bool, bool) {
        let counted = self.in_window(now);
        if counted {
            self.transactions.completed += 1;
            self.shared.meters[self.index].calls.store(self.transactions.completed, Ordering::Relaxed);
        }
        let timed = if self.open_loop { self.in_window(since) } else { counted };
        if timed {
            self.transactions.latency.record(now.saturating_sub(since));
        }
        (timed, counted)
    }

    /// The call of `since` was refused, or will never be answered. Whether that is counted.
    pub fn failed(&mut self, since: u64) -> bool {
        let counted = self.in_window(since);
        self.transactions.failed += u64::from(counted);
        counted
    }

    /// The calls that `schedule` still holds were due within the window and were not sent.
    pub fn not_sent(&mut self, schedule: Option<&Schedule>) {
        let (open, close) = (self.shared.timeline.open(), self.shared.timeline.close());
        self.transactions.not_sent += schedule.map_or(0, |left| left.left_within(open, close));
    }
}

/// What the transport did between the window's edges: TCP's own account, and calls sent again.
#[derive(Debug)]
pub struct Edges {
    timeline: Timeline,
    opened: Option<(Info, u64)>,
    closed: Option<(Info, u64)>,
}

impl Edges {
    /// Looks at the edges of the window of `timeline`.
    pub fn new(timeline: Timeline) -> Self {
        Self { timeline, opened: None, closed: None }
    }

    /// Looks at the connection if `now` has passed an edge.
    pub fn sample(&mut self, caller: &Caller, now: u64) -> Result<(), RpcError> {
        if now >= self.timeline.open() && self.opened.is_none() {
            self.opened = Some(look(caller)?);
        }
        if now >= self.timeline.close() && self.closed.is_none() {
            self.closed = Some(look(caller)?);
        }
        Ok(())
    }

    /// TCP's account of the window (none for UDP), and the calls sent again within it.
    pub fn finish(mut self, caller: &Caller) -> Result<(Option<TcpFlow>, u64), RpcError> {
        let (before, sent_before) = self.opened.take().unwrap_or_default();
        let (after, sent_after) = self.closed.take().map_or_else(|| look(caller), Ok)?;
        let flow = caller.stream().map(|stream| linerate_engine::tcp_flow(stream, &before, &after));
        Ok((flow, sent_after - sent_before))
    }
}

fn look(caller: &Caller) -> Result<(Info, u64), RpcError> {
    let info = caller.stream().map(|stream| tcp::info(stream.as_fd())).transpose()?;
    Ok((info.unwrap_or_default(), caller.retransmitted()))
}
