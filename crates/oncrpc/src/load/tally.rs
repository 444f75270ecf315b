//! Counts of a calling flow.

use super::LoadContext;
use crate::client::Caller;
use crate::error::RpcError;
use linerate_engine::{PEER_GONE, PeerSilence, Schedule};
use linerate_model::{TcpFlow, Transactions};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::tcp::{self, Info};

/// Calls counted and timed over the window. Counts since the start of the load go to the flow's meter.
///
/// A closed loop and an open loop both count the calls answered within the window. A closed loop times these and the
/// calls under way at the close. An open loop times every call that was due within the window, whenever its reply came:
/// leaving out those that a stall pushed past the end would hide the stall.
#[derive(Debug)]
pub struct Tally<'a> {
    context: &'a LoadContext,
    index: usize,
    open_loop: bool,
    /// The counts so far.
    pub transactions: Transactions,
    /// Payload bytes of the calls counted.
    pub sent_bytes: u64,
    /// Payload bytes of their replies.
    pub received_bytes: u64,
}

impl<'a> Tally<'a> {
    /// Counts the calls of flow `index`.
    pub fn new(context: &'a LoadContext, index: usize) -> Self {
        let window = context.timeline.measure();
        let open_loop = context.job.task.requests_per_s().is_some();
        let transactions = Transactions { window, ..Transactions::default() };
        Self { context, index, open_loop, transactions, sent_bytes: 0, received_bytes: 0 }
    }

    fn in_window(&self, at: u64) -> bool {
        self.context.timeline.in_window(at)
    }

    /// Counts a call of `since` that was answered at `now`, with the payload of call and reply. Returns whether it is
    /// timed, and whether it is counted.
    pub fn answered(&mut self, since: u64, now: u64, sent_bytes: u64, received_bytes: u64) -> (bool, bool) {
        let took = now.saturating_sub(since);
        self.context.meters[self.index].answered(took, sent_bytes, received_bytes);
        let counted = self.in_window(now);
        if counted {
            self.transactions.completed += 1;
            self.sent_bytes += sent_bytes;
            self.received_bytes += received_bytes;
        }
        let timed = if self.open_loop {
            self.in_window(since)
        } else {
            // What was under way at the close was called before it, and is answered after it.
            counted || (now >= self.context.timeline.open() && since < self.context.timeline.close())
        };
        if timed {
            self.transactions.latency.record(took);
        }
        (timed, counted)
    }

    /// Notes the delay against `schedule` at `now`.
    pub fn on_schedule(&self, schedule: &Schedule, now: u64) {
        self.context.meters[self.index].is_behind(now.saturating_sub(schedule.due()));
    }

    /// The call of `since` was refused, or will never be answered. Whether that is counted.
    pub fn failed(&mut self, since: u64) -> bool {
        let counted = self.in_window(since);
        self.transactions.failed += u64::from(counted);
        counted
    }

    /// The calls that `schedule` still holds were due within the window and were not sent.
    pub fn not_sent(&mut self, schedule: Option<&Schedule>) {
        let open = self.context.timeline.open();
        let close = self.context.timeline.close();
        self.transactions.not_sent += schedule.map_or(0, |left| left.left_within(open, close));
    }
}

/// Time without an acknowledgement after which a server is gone.
const GONE_NS: u64 = PEER_GONE.as_nanos() as u64;

/// Transport counters between the edges of the window: TCP's, and calls sent again.
#[derive(Debug)]
pub struct Edges<'a> {
    context: &'a LoadContext,
    index: usize,
    /// Calls sent again before the load began.
    retransmitted_before: Option<u64>,
    opened: Option<(Option<Info>, u64)>,
    closed: Option<(Option<Info>, u64)>,
    silence: PeerSilence,
}

impl<'a> Edges<'a> {
    /// Looks at flow `index` at the edges of the window.
    pub fn new(context: &'a LoadContext, index: usize) -> Self {
        Self { context, index, retransmitted_before: None, opened: None, closed: None, silence: PeerSilence::default() }
    }

    /// Reads the connection's counters if `now` has passed an edge, and gives the flow's meter the number of calls sent
    /// again. Called from the start of the load on.
    ///
    /// # Errors
    /// The server is gone, or its connection cannot be looked at.
    pub fn sample(&mut self, caller: &Caller, now: u64) -> Result<(), RpcError> {
        if let Some(stream) = caller.stream()
            && self.silence.look(stream.as_socket())? > Some(GONE_NS)
        {
            let seconds = GONE_NS / 1_000_000_000;
            let calls = caller.outstanding();
            let what = format!("it has shown no sign for {seconds} s, with {calls} calls unanswered");
            return Err(RpcError::Gone { peer: caller.server(), what });
        }
        let retransmitted = caller.retransmitted();
        let before = *self.retransmitted_before.get_or_insert(retransmitted);
        self.context.meters[self.index].sent_again(retransmitted - before);
        let timeline = &self.context.timeline;
        if now >= timeline.open() && self.opened.is_none() {
            self.opened = Some(look(caller)?);
        }
        if now >= timeline.close() && self.closed.is_none() {
            self.closed = Some(look(caller)?);
        }
        Ok(())
    }

    /// TCP's account of the window (none for UDP), and the calls sent again within it.
    pub fn finish(mut self, caller: &Caller) -> Result<(Option<TcpFlow>, u64), RpcError> {
        let (before, sent_before) = self.opened.take().unwrap_or_default();
        let (after, sent_after) = self.closed.take().map_or_else(|| look(caller), Ok)?;
        let flow = caller.stream().zip(before.zip(after));
        let flow = flow.map(|(stream, (before, after))| linerate_engine::tcp_flow(stream, &before, &after));
        Ok((flow, sent_after - sent_before))
    }
}

fn look(caller: &Caller) -> Result<(Option<Info>, u64), RpcError> {
    let info = caller.stream().map(|stream| tcp::info(stream.as_socket())).transpose()?;
    Ok((info.flatten(), caller.retransmitted()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::load::{Calls, Flow};
    use crate::message::Credential;
    use linerate_engine::testing::one_path;
    use linerate_model::{RpcCall, RpcTask, SessionKey, Task, Transport};
    use linerate_units::{ByteCount, Nanos, OpRate};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    const MS: u64 = 1_000_000;

    /// Returns a load with one flow, 100 ms of warm-up and 1 s of window, from zero on.
    fn context(rate: Option<OpRate>) -> LoadContext {
        let task = RpcTask { rate, ..RpcTask::plain(Transport::Tcp, RpcCall::Write, ByteCount::new(10)) };
        let [part, _] = one_path::parts(&Task::Rpc(task.clone()), Nanos::from_secs(1));
        let job = Job::check(&part).expect("a valid assignment");
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let load = Arc::new(Calls::new(&task, SessionKey([1; 16]), server));
        let timeline = job.timeline(0);
        LoadContext::new(
            job,
            timeline,
            vec![Flow { end: 0, path: 0, number: 0, local: server, credential: Credential::none(), load }],
        )
    }

    #[test]
    fn a_call_under_way_at_the_close_is_timed_and_not_counted() {
        // When a call was made, or was due, and answered, in milliseconds; whether that is timed, and counted.
        let calls = [(50, 99), (50, 150), (200, 300), (1_000, 1_200), (50, 1_500), (1_100, 1_101)];
        for (rate, expected) in [
            (None, [(false, false), (true, true), (true, true), (true, false), (true, false), (false, false)]),
            (
                Some(OpRate::per_second(10)),
                [(false, false), (false, true), (true, true), (true, false), (false, false), (false, false)],
            ),
        ] {
            let context = context(rate);
            let mut tally = Tally::new(&context, 0);
            let results = calls.map(|(since, now)| tally.answered(since * MS, now * MS, 10, 0));
            assert_eq!(results, expected, "{rate:?}");
            let timed = expected.iter().filter(|(timed, _)| *timed).count() as u64;
            assert_eq!((tally.transactions.latency.count(), tally.transactions.completed), (timed, 2), "{rate:?}");
            assert_eq!((tally.sent_bytes, tally.received_bytes), (20, 0), "{rate:?}");
            let meter = context.meters[0].read();
            assert_eq!((meter.operations, meter.sent_bytes, meter.received_bytes), (6, 60, 0), "all of the load");
            assert_eq!(context.meters[0].latency().sum::<u64>(), 6);
        }
    }

    #[test]
    fn the_longest_delay_behind_a_schedule_is_told_once() {
        let context = context(Some(OpRate::per_second(10)));
        let tally = Tally::new(&context, 0);
        let schedule = Schedule::new(OpRate::per_second(10), linerate_model::Arrivals::Even, 0, (0, 1), 1);
        for now in [0, 30, 20] {
            tally.on_schedule(&schedule, schedule.due() + now * MS);
        }
        assert_eq!(context.meters[0].take_behind(), 30 * MS);
        assert_eq!(context.meters[0].take_behind(), 0);
    }
}
