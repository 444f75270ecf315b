//! Flows and servers at work, and the sum of what they counted.

use crate::client::{Caller, TICK_NS};
use crate::error::RpcError;
use crate::load::{LoadContext, Outcome};
use crate::progress::Progress;
use crate::running_server::RunningServer;
use linerate_engine::{Stop, Work, Worker, Workers};
use linerate_model::{EndCounts, Received, RoleCounts, Sent, Transactions};
use linerate_observe::interface_of;
use linerate_sys::{affinity, clock};
use std::net::TcpStream;
use std::sync::{Arc, Weak};

/// Time for which a flow and its connection live on after the window. The kernel forgets the CPU time of an ended
/// thread, and observers of the hosts read it at the window's close, by clocks that may differ. The server's thread
/// ends with the connection.
const OBSERVED_NS: u64 = 200_000_000;

/// Flows and servers at work. Dropping it stops the flows and waits for their threads.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    context: Arc<LoadContext>,
    workers: Workers<Option<Outcome>>,
    /// The flows' connections.
    connections: Vec<Weak<TcpStream>>,
    servers: &'a [RunningServer],
}

impl<'a> Running<'a> {
    /// Starts the flows' threads. They end when `stop` is set.
    pub(crate) fn spawn(
        context: LoadContext,
        callers: Vec<Caller>,
        servers: &'a [RunningServer],
        stop: &Stop,
    ) -> Result<Self, RpcError> {
        let connections = callers.iter().filter_map(|caller| Some(Arc::downgrade(caller.stream()?))).collect();
        let mut running = Self { context: Arc::new(context), workers: Workers::default(), connections, servers };
        let context = &running.context;
        let flows = Arc::downgrade(context);
        stop.on_stop(move || {
            if let Some(flows) = flows.upgrade() {
                flows.stop.set(RpcError::Stopped);
            }
        });
        let workers = callers.into_iter().enumerate().map(|(index, mut caller)| {
            let context = Arc::clone(context);
            let work = move || {
                let outcome = work(&context, index, &mut caller);
                if outcome.is_ok() {
                    outlast_window(&context);
                }
                outcome.map_err(|error| context.stop.set(error)).ok()
            };
            Worker { name: format!("call {index}"), sends: true, work }
        });
        running.workers.start(workers).map_err(RpcError::socket("starting a thread"))?;
        Ok(running)
    }

    /// Returns the work under way, for observers: the threads of the flows and those of the servers.
    pub(crate) fn work(&self) -> Work {
        let timeline = self.context.timeline.clone();
        let mut threads = self.workers.threads().to_vec();
        threads.extend(self.servers.iter().flat_map(RunningServer::threads));
        threads.sort_by_key(|thread| thread.tid);
        let progress = Progress::new(
            timeline.clone(),
            Arc::clone(&self.context.meters),
            self.context.job.task.requests_per_s().is_some(),
            self.connections.clone(),
            self.servers.iter().map(RunningServer::meter).collect(),
            self.workers.ended(),
        );
        Work { start: timeline.start(), window: Some(timeline), threads, disks: Vec::new(), meters: Arc::new(progress) }
    }

    /// Waits for the last replies. Returns what each flow counted, if it counted anything.
    pub(crate) fn wait(&mut self) -> Vec<Option<Outcome>> {
        self.workers.join()
    }

    /// Lets the servers finish, and gives each end's counts, in the order of the assignment's roles. `outcomes` is what
    /// [`Running::wait`] gave.
    pub(crate) fn counts(&self, outcomes: &[Option<Outcome>]) -> Result<Vec<RoleCounts>, RpcError> {
        for server in self.servers {
            server.stay(&self.context.timeline, || self.context.stop.is_set());
        }
        if let Some(error) = self.context.stop.take_reason() {
            return Err(error);
        }
        let ends = self.context.job.ends.iter().enumerate();
        Ok(ends
            .map(|(end, path_end)| RoleCounts::Flows(Box::new(self.end_counts(end, path_end.path, outcomes))))
            .collect())
    }

    fn end_counts(&self, end: usize, path: u16, outcomes: &[Option<Outcome>]) -> EndCounts {
        if let Some(server) = self.servers.iter().find(|server| server.end == end) {
            return server.counts(&self.context.job, &self.context.timeline);
        }
        let flows = self.context.flows.iter().zip(outcomes).filter(|(flow, _)| flow.end == end);
        let local = flows.clone().map(|(flow, _)| flow.local.ip().to_canonical()).next();
        let mut counts = EndCounts { path, interface: local.and_then(interface_of), ..EndCounts::default() };
        for outcome in flows.filter_map(|(_, outcome)| outcome.as_ref()) {
            add(&mut counts, outcome);
        }
        counts
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.workers.is_running() {
            self.context.stop.set(RpcError::Stopped);
        }
    }
}

fn work(context: &LoadContext, index: usize, caller: &mut Caller) -> Result<Outcome, RpcError> {
    let cpus = &context.job.socket().sender_cpus;
    if !cpus.is_empty() {
        affinity::pin(cpus[index % cpus.len()])?;
    }
    let flow = &context.flows[index];
    flow.load.run(context, index, caller)
}

/// Waits until [`OBSERVED_NS`] after the window's close, which may still be unknown, or until a stop.
fn outlast_window(context: &LoadContext) {
    loop {
        let now = clock::now();
        let until = context.timeline.close() + OBSERVED_NS;
        if now >= until || !context.stop.sleep_until(until.min(now + TICK_NS)) {
            return;
        }
    }
}

/// Adds one flow's counts to its end's. All flows count over the same window.
fn add(end: &mut EndCounts, flow: &Outcome) {
    if let Some(own) = &flow.sent {
        let sum = end.sent.get_or_insert_with(|| Sent {
            window: own.window,
            io_method: own.io_method.clone(),
            ..Sent::default()
        });
        sum.payload_bytes += own.payload_bytes;
        sum.messages += own.messages;
    }
    if let Some(own) = &flow.received {
        let sum = end.received.get_or_insert_with(|| Received {
            window: own.window,
            io_method: own.io_method.clone(),
            ..Received::default()
        });
        sum.payload_bytes += own.payload_bytes;
        sum.messages += own.messages;
        sum.arrived += own.arrived;
    }
    if let Some(own) = &flow.transactions {
        let sum =
            end.transactions.get_or_insert_with(|| Transactions { window: own.window, ..Transactions::default() });
        sum.completed += own.completed;
        sum.failed += own.failed;
        sum.not_sent += own.not_sent;
        sum.retransmitted += own.retransmitted;
        sum.latency.merge(&own.latency);
    }
    for (operation, own) in &flow.operations {
        let sum = end.operations.entry(*operation).or_default();
        sum.completed += own.completed;
        sum.bytes += own.bytes;
        sum.corrupt_bytes += own.corrupt_bytes;
        sum.latency.merge(&own.latency);
        for (status, count) in &own.errors {
            *sum.errors.entry(status.clone()).or_default() += count;
        }
    }
    if end.broken.is_none() {
        end.broken.clone_from(&flow.broken);
    }
    end.flows.push(flow.flow.clone());
}
