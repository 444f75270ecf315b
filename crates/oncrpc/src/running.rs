//! A half at work, and the sum of what its flows and servers counted.

use crate::client::Caller;
use crate::error::RpcError;
use crate::flow::{Outcome, Shared};
use crate::load::Load;
use crate::running_server::RunningServer;
use linerate_engine::{Worker, Workers};
use linerate_model::{EndResult, EndRole, EndSpec, Progress, Received, Sent, Transactions};
use linerate_sys::thread::EngineThread;
use linerate_sys::{affinity, clock};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A flow and its connection live on for so long after the window: the kernel forgets what an ended thread cost, and whoever
/// watches the hosts reads it at the window's close, by clocks that may differ. The server's thread ends with the connection.
const OBSERVED_NS: u64 = 200_000_000;

/// A half at work. Dropping it stops it and waits for its threads.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    workers: Workers<Option<Outcome>>,
    /// Those of the flows and those of the servers.
    threads: Vec<EngineThread>,
    servers: Vec<RunningServer>,
    loads: Vec<Arc<dyn Load>>,
}

impl Running {
    pub(crate) fn spawn(
        shared: Shared,
        callers: Vec<Caller>,
        servers: Vec<RunningServer>,
        loads: Vec<Arc<dyn Load>>,
    ) -> Result<Self, RpcError> {
        let mut running =
            Self { shared: Arc::new(shared), workers: Workers::default(), threads: Vec::new(), servers, loads };
        let shared = &running.shared;
        let workers = callers.into_iter().enumerate().map(|(index, mut caller)| {
            let shared = Arc::clone(shared);
            let work = move || {
                let outcome = work(&shared, index, &mut caller);
                if outcome.is_ok() {
                    shared.stop.sleep_until(shared.timeline.close + OBSERVED_NS);
                }
                outcome.map_err(|error| shared.stop.set(error)).ok()
            };
            Worker { name: format!("call {index}"), sends: true, work }
        });
        running.workers.start(workers).map_err(RpcError::socket("starting a thread"))?;
        running.threads = running.workers.threads().to_vec();
        running.threads.extend(running.servers.iter().flat_map(|server| server.threads()));
        running.threads.sort_by_key(|thread| thread.tid);
        Ok(running)
    }

    /// When the window opens, on [`clock::now`]'s clock.
    pub fn opens_at(&self) -> u64 {
        self.shared.timeline.open
    }

    /// When the window closes, on [`clock::now`]'s clock.
    pub fn closes_at(&self) -> u64 {
        self.shared.timeline.close
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        let shared = &self.shared;
        let now = clock::now();
        let mut progress = Progress {
            elapsed: Nanos::new(now.min(self.closes_at()).saturating_sub(self.opens_at())),
            received_bytes: 0,
            sent_bytes: 0,
            transactions: 0,
            // A server has nothing to be done with before the window closes.
            done: self.workers.has_finished()
                && (self.servers.is_empty() || now >= self.closes_at() || shared.stop.is_set()),
        };
        for meter in &shared.meters {
            progress.sent_bytes += meter.sent_bytes.load(Ordering::Relaxed);
            progress.received_bytes += meter.received_bytes.load(Ordering::Relaxed);
            progress.transactions += meter.calls.load(Ordering::Relaxed);
        }
        for server in &self.servers {
            let (received, sent) = server.progress();
            progress.received_bytes += received;
            progress.sent_bytes += sent;
        }
        progress
    }

    /// The threads that carry the load.
    pub fn threads(&self) -> Vec<EngineThread> {
        self.threads.clone()
    }

    /// This host's address on each path.
    pub fn local_addresses(&self) -> Vec<(u16, IpAddr)> {
        let flows = self.shared.flows.iter().map(|flow| (flow.path, flow.local.ip().to_canonical()));
        let servers = self.servers.iter().map(|server| (server.path, server.address().ip().to_canonical()));
        let mut addresses: Vec<_> = flows.chain(servers).collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }

    /// Ends all flows at once; [`Running::join`] then says that they were stopped.
    pub fn stop(&self) {
        self.shared.stop.set(RpcError::Stopped);
    }

    /// Waits for the last replies, removes what the load made, lets the servers finish, and gives each end's counts, in the
    /// order of the spec's ends.
    pub fn join(mut self) -> Result<Vec<EndResult>, RpcError> {
        let outcomes = self.workers.join();
        let mut remains = self.finish_loads();
        for server in &self.servers {
            server.stay(self.shared.timeline, || self.shared.stop.is_set());
        }
        if let Some(error) = self.shared.stop.take_reason() {
            return Err(match remains.pop_first() {
                Some((_, remains)) => RpcError::Remains { remains, source: Box::new(error) },
                None => error,
            });
        }
        let ends = self.shared.job.ends.iter().enumerate();
        let result = |(end, spec): (usize, &EndSpec)| {
            let remains = if spec.role == EndRole::Opener { remains.remove(&spec.path) } else { None };
            EndResult { remains, ..self.end_result(end, spec.path, &outcomes) }
        };
        Ok(ends.map(result).collect())
    }

    /// Removes what the loads made; what could not be removed, by path. The trial's counts stand all the same.
    fn finish_loads(&mut self) -> BTreeMap<u16, String> {
        // Each opening end has a load, in their order.
        let openers = self.shared.job.ends.iter().filter(|end| end.role == EndRole::Opener);
        let finished = openers.zip(self.loads.drain(..)).map(|(end, load)| (end.path, load.finish()));
        finished.filter_map(|(path, finished)| Some((path, finished.err()?.to_string()))).collect()
    }

    fn end_result(&self, end: usize, path: u16, outcomes: &[Option<Outcome>]) -> EndResult {
        if let Some(server) = self.servers.iter().find(|server| server.end == end) {
            return server.result(&self.shared.job, self.shared.timeline);
        }
        let mut result = EndResult { path, ..EndResult::default() };
        let flows = self.shared.flows.iter().zip(outcomes).filter(|(flow, _)| flow.end == end);
        for outcome in flows.filter_map(|(_, outcome)| outcome.as_ref()) {
            add(&mut result, outcome);
        }
        result
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.workers.is_running() {
            self.stop();
        }
        // What the threads make is removed when they are gone.
        drop(std::mem::take(&mut self.workers));
        self.finish_loads();
    }
}

fn work(shared: &Shared, index: usize, caller: &mut Caller) -> Result<Outcome, RpcError> {
    let cpus = &shared.job.socket().sender_cpus;
    if !cpus.is_empty() {
        affinity::pin(cpus[index % cpus.len()])?;
    }
    let flow = &shared.flows[index];
    flow.load.run(shared, index, caller)
}

/// Adds one flow's counts to its end's. All flows count over the same window.
fn add(end: &mut EndResult, flow: &Outcome) {
    if let Some(own) = &flow.sent {
        let sum =
            end.sent.get_or_insert_with(|| Sent { window: own.window, means: own.means.clone(), ..Sent::default() });
        sum.payload_bytes += own.payload_bytes;
        sum.messages += own.messages;
    }
    if let Some(own) = &flow.received {
        let sum = end.received.get_or_insert_with(|| Received {
            window: own.window,
            means: own.means.clone(),
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
