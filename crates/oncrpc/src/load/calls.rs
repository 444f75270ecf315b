//! Load of an RPC trial: calls of one size to linerate's own program.

use super::{DRAIN_NS, Edges, Load, LoadContext, Outcome, TICK_NS, Tally};
use crate::client::{Caller, Waiting};
use crate::error::RpcError;
use crate::greeting::{PROGRAM, VERSION};
use crate::message::{Credential, Procedure, Reply};
use crate::program::{arguments, carried, number};
use linerate_engine::Schedule;
use linerate_model::{FlowCounts, Received, RpcTask, Sent, SessionKey};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::net::SocketAddr;

/// Calls queued before replies are read again.
const BURST: usize = 64;
/// Limits of data under way by all flows of an open loop, and of calls under way by each. Later calls stay in the
/// schedule, and are still timed from when they were due.
const WAITING_BYTES: u64 = 8 << 20;
const WAITING_CALLS: std::ops::RangeInclusive<u64> = 16..=65_536;

/// Calls of one size.
#[derive(Debug)]
pub(crate) struct Calls {
    spec: RpcTask,
    server: SocketAddr,
    key: SessionKey,
    to: Procedure,
    args: Vec<u8>,
}

/// Returns the largest number of calls that one flow has under way.
pub(crate) fn max_outstanding(task: &RpcTask) -> u64 {
    match task.rate {
        Some(_) => {
            let each = WAITING_BYTES / u64::from(task.net.flows).max(1);
            (each / task.unit_bytes.get().max(1)).clamp(*WAITING_CALLS.start(), *WAITING_CALLS.end())
        }
        None => task.outstanding.into(),
    }
}

impl Calls {
    pub(crate) fn new(spec: &RpcTask, key: SessionKey, server: SocketAddr) -> Self {
        let mut data = vec![0; spec.unit_bytes.get() as usize];
        rand::fill(&mut data[..]);
        Self {
            spec: spec.clone(),
            server,
            key,
            to: Procedure { program: PROGRAM, version: VERSION, procedure: number(spec.call) },
            args: arguments(spec.call, &data),
        }
    }
}

impl Load for Calls {
    fn server(&self) -> SocketAddr {
        self.server
    }

    fn greet(&self, caller: &mut Caller) -> Result<Credential, RpcError> {
        caller.greet(&self.key)
    }

    fn run(&self, context: &LoadContext, index: usize, caller: &mut Caller) -> Result<Outcome, RpcError> {
        let mut flow = RunningFlow::new(self, context, index);
        match flow.run(caller) {
            Ok(()) => flow.finish(caller),
            Err(RpcError::Stopped) => Err(RpcError::Stopped),
            Err(error) => Err(context.cut_short(index, error)),
        }
    }
}

/// State of a running flow.
struct RunningFlow<'a> {
    load: &'a Calls,
    context: &'a LoadContext,
    credential: &'a Credential,
    schedule: Option<Schedule>,
    tally: Tally<'a>,
    edges: Edges<'a>,
    /// Time at which each call under way was made or due.
    since: Waiting<u64>,
}

impl<'a> RunningFlow<'a> {
    fn new(load: &'a Calls, context: &'a LoadContext, index: usize) -> Self {
        let spec = &load.spec;
        let flow = &context.flows[index];
        let schedule = spec.rate.map(|rate| {
            let flows = (flow.number, spec.net.flows);
            Schedule::new(rate, spec.arrivals, context.first_due(rate), flows, rand::random())
        });
        Self {
            load,
            context,
            credential: &flow.credential,
            schedule,
            tally: Tally::new(context, index),
            edges: Edges::new(context, index),
            since: Waiting::default(),
        }
    }

    fn run(&mut self, caller: &mut Caller) -> Result<(), RpcError> {
        let context = self.context;
        if !context.stop.sleep_until(context.timeline.start()) {
            return Err(RpcError::Stopped);
        }
        self.since = Waiting::starting_at(caller.next_xid());
        loop {
            if context.stop.is_set() {
                return Err(RpcError::Stopped);
            }
            let mut now = clock::now();
            self.edges.sample(caller, now)?;
            let close = context.timeline.close();
            let asks = self.schedule.as_ref().map_or(now < close, |schedule| schedule.goes_on(now, close));
            if let Some(schedule) = self.schedule.as_ref().filter(|_| asks) {
                self.tally.on_schedule(schedule, now);
            }
            if !asks && (caller.outstanding() == 0 || now > close + DRAIN_NS) {
                return Ok(());
            }
            let queued = if asks { self.ask(caller, &mut now) } else { 0 };
            let wait_ns = match &self.schedule {
                // More is due already.
                _ if queued == BURST => 0,
                Some(schedule) if asks && caller.outstanding() < self.max_outstanding() => {
                    schedule.due().saturating_sub(now)
                }
                _ => TICK_NS,
            };
            match self.take(caller, wait_ns) {
                // A server may close its port before the last calls have come through a slow path. The window's counts
                // are whole.
                Err(RpcError::Gone { .. }) if !asks && now >= close => return Ok(()),
                taken => taken?,
            }
        }
    }

    /// Queues the calls that are due, a burst of them at the most.
    fn ask(&mut self, caller: &mut Caller, now: &mut u64) -> usize {
        let maximum = self.max_outstanding();
        for queued in 0..BURST {
            if caller.outstanding() >= maximum {
                return queued;
            }
            let close = self.context.timeline.close();
            *now = clock::now();
            let since = match &mut self.schedule {
                Some(schedule) if schedule.due() <= *now && schedule.goes_on(*now, close) => {
                    let due = schedule.due();
                    schedule.advance();
                    due
                }
                None if *now < close => *now,
                _ => return queued,
            };
            caller.call(self.load.to, self.credential, &self.load.args);
            self.since.add(since);
        }
        BURST
    }

    fn max_outstanding(&self) -> usize {
        max_outstanding(&self.load.spec) as usize
    }

    fn take(&mut self, caller: &mut Caller, wait_ns: u64) -> Result<(), RpcError> {
        let call = self.load.spec.call;
        let unit = self.load.spec.unit_bytes.get();
        let server = self.load.server;
        let sent_bytes = if call.carries_there() { unit } else { 0 };
        let received_bytes = if call.carries_back() { unit } else { 0 };
        let mut refused = None;
        caller.poll(Nanos::new(wait_ns.min(TICK_NS)), &mut |xid, reply| {
            let Some(since) = self.since.take(xid) else { return };
            match reply {
                Reply::Accepted(results) if carried(call, results, unit as usize).is_some() => {
                    self.tally.answered(since, clock::now(), sent_bytes, received_bytes);
                }
                Reply::Accepted(results) => {
                    let what = format!("{} bytes of results to a {call} of {unit} bytes", results.len());
                    refused = Some(RpcError::Malformed { peer: server, what });
                }
                Reply::Refused(why) => refused = Some(RpcError::refused(server, format!("a {call}"), why)),
                Reply::Lost => {
                    self.tally.failed(since);
                }
            }
        })?;
        refused.map_or(Ok(()), Err)
    }

    fn finish(mut self, caller: &Caller) -> Result<Outcome, RpcError> {
        for since in self.since.drain() {
            self.tally.failed(since);
        }
        self.tally.not_sent(self.schedule.as_ref());
        let (tcp, retransmitted) = self.edges.finish(caller)?;
        let Tally { mut transactions, sent_bytes, received_bytes, .. } = self.tally;
        transactions.retransmitted = retransmitted;
        let call = self.load.spec.call;
        let window = transactions.window;
        let calls = transactions.completed;
        let io_method = "calls".to_owned();
        let sent = Sent {
            window,
            payload_bytes: sent_bytes,
            messages: calls,
            io_method: io_method.clone(),
            ..Sent::default()
        };
        let received = Received {
            window,
            payload_bytes: received_bytes,
            messages: calls,
            arrived: calls,
            io_method,
            ..Received::default()
        };
        Ok(Outcome {
            sent: call.carries_there().then_some(sent),
            received: call.carries_back().then_some(received),
            flow: FlowCounts { sent_bytes, received_bytes, tcp },
            transactions: Some(transactions),
            ..Outcome::default()
        })
    }
}
