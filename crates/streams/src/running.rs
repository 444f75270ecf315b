//! A half at work, and the sum of what its flows counted.

use crate::error::StreamError;
use crate::flow::{Link, Outcome, Shared, plain};
use crate::window::joint_length;
use crate::{bulk_tcp, bulk_udp, transact};
use linerate_engine::{Worker, Workers};
use linerate_model::{EndResult, Progress, Received, Sent, Transactions, Workload};
use linerate_sys::thread::EngineThread;
use linerate_sys::{affinity, clock};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A thread lives on for so long after its window: the kernel forgets what an ended thread cost, and whoever watches the host
/// reads it at the window's close.
const OBSERVED_NS: u64 = 100_000_000;

/// A half at work. Dropping it stops it and waits for its threads.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    workers: Workers<Option<Outcome>>,
}

impl Running {
    pub(crate) fn spawn(shared: Shared) -> Result<Self, StreamError> {
        let mut running = Self { shared: Arc::new(shared), workers: Workers::default() };
        let shared = &running.shared;
        let workers = plan(shared).into_iter().map(|(index, name, cpu)| {
            let (sends, shared) = (shared.flows[index].sends(), Arc::clone(shared));
            let work = move || {
                let outcome = work(&shared, index, cpu);
                if outcome.is_ok() {
                    shared.stop.sleep_until(shared.timeline.close + OBSERVED_NS);
                }
                outcome.map_err(|error| shared.stop(error)).ok()
            };
            Worker { name, sends, work }
        });
        running.workers.start(workers).map_err(StreamError::socket("starting a thread"))?;
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

    /// How far it has come. Cheap: a relaxed load for each flow.
    pub fn progress(&self) -> Progress {
        let shared = &self.shared;
        let sum = |sends: bool| {
            let flows = shared.flows.iter().zip(&shared.meters).filter(|(flow, _)| flow.sends() == sends);
            flows.map(|(_, meter)| meter.bytes.load(Ordering::Relaxed)).sum()
        };
        Progress {
            elapsed: Nanos::new(clock::now().min(self.closes_at()).saturating_sub(self.opens_at())),
            received_bytes: sum(false),
            sent_bytes: sum(true),
            transactions: shared.meters.iter().map(|meter| meter.transactions.load(Ordering::Relaxed)).sum(),
            done: self.workers.has_finished(),
        }
    }

    /// The threads that carry the load.
    pub fn threads(&self) -> Vec<EngineThread> {
        self.workers.threads().to_vec()
    }

    /// This host's address on each path.
    pub fn local_addresses(&self) -> Vec<(u16, IpAddr)> {
        let mut addresses: Vec<_> =
            self.shared.flows.iter().map(|flow| (flow.hello.path, plain(flow.local.ip()))).collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }

    /// Ends all flows at once; [`Running::join`] then says that they were stopped.
    pub fn stop(&self) {
        self.shared.stop(StreamError::Stopped);
    }

    /// Waits for the stragglers and gives each end's counts, in the order of the spec's ends.
    pub fn join(mut self) -> Result<Vec<EndResult>, StreamError> {
        let outcomes = self.workers.join();
        if let Some(error) = self.shared.stop.take_reason() {
            return Err(error);
        }
        let ends = self.shared.job.ends.iter().enumerate();
        Ok(ends.map(|(end, spec)| self.end_result(end, spec.path, &outcomes)).collect())
    }

    fn end_result(&self, end: usize, path: u16, outcomes: &[Option<Outcome>]) -> EndResult {
        let of_end: Vec<&Outcome> = self
            .shared
            .flows
            .iter()
            .zip(outcomes)
            .filter(|(flow, _)| flow.end == end)
            .filter_map(|(_, outcome)| outcome.as_ref())
            .collect();
        EndResult {
            path,
            interface: None,
            sent: sum_sent(of_end.iter().filter_map(|outcome| outcome.sent.as_ref())),
            received: sum_received(of_end.iter().filter_map(|outcome| outcome.received.as_ref())),
            transactions: sum_transactions(of_end.iter().filter_map(|outcome| outcome.transactions.as_ref())),
            operations: BTreeMap::new(),
            service: None,
            broken: None,
            remains: None,
            flows: of_end.iter().map(|outcome| outcome.flow.clone()).collect(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.workers.is_running() {
            self.stop();
        }
    }
}

/// Each flow's thread: its name and core. Cores are used in turn, senders' and receivers' apart.
fn plan(shared: &Shared) -> Vec<(usize, String, Option<u32>)> {
    let options = shared.job.socket();
    let transacts = matches!(shared.job.workload, Workload::Transact(_));
    let (mut senders, mut receivers) = (0, 0);
    let mut next = |sends: bool| {
        let (count, cpus) =
            if sends { (&mut senders, &options.sender_cpus) } else { (&mut receivers, &options.receiver_cpus) };
        let number = *count;
        *count += 1;
        (number, (!cpus.is_empty()).then(|| cpus[number % cpus.len()]))
    };
    let flows = shared.flows.iter().enumerate();
    flows
        .map(|(index, flow)| {
            let (number, cpu) = next(flow.sends());
            let verb = match (transacts, flow.sends()) {
                (false, true) => "send",
                (false, false) => "receive",
                (true, true) => "ask",
                (true, false) => "answer",
            };
            (index, format!("{verb} {number}"), cpu)
        })
        .collect()
}

fn work(shared: &Shared, index: usize, cpu: Option<u32>) -> Result<Outcome, StreamError> {
    if let Some(cpu) = cpu {
        affinity::pin(cpu)?;
    }
    let flow = &shared.flows[index];
    match (&shared.job.workload, &flow.link) {
        (Workload::Stream(spec), Link::Tcp(stream)) if flow.sends() => bulk_tcp::send(shared, index, spec, stream),
        (Workload::Stream(spec), Link::Tcp(stream)) => bulk_tcp::receive(shared, index, spec, stream),
        (Workload::Stream(spec), Link::Udp(socket)) if flow.sends() => bulk_udp::send(shared, index, spec, socket),
        (Workload::Stream(spec), Link::Udp(socket)) => bulk_udp::receive(shared, index, spec, socket),
        (Workload::Stream(_), Link::Dial | Link::Answer(_)) => unreachable!("streams have standing flows"),
        (Workload::Transact(spec), link) => transact::run(shared, index, spec, link),
        (Workload::Rpc(_) | Workload::Nfs(_), _) => unreachable!("`Job::check` refused it"),
    }
}

fn sum_sent<'a>(all: impl Iterator<Item = &'a Sent> + Clone) -> Option<Sent> {
    let window = joint_length(all.clone().map(|sent| (sent.payload_bytes, sent.window)));
    all.cloned()
        .reduce(|mut sum, sent| {
            sum.payload_bytes += sent.payload_bytes;
            sum.messages += sent.messages;
            sum.not_sent += sent.not_sent;
            sum.refused += sent.refused;
            sum
        })
        .map(|sum| Sent { window, ..sum })
}

fn sum_received<'a>(all: impl Iterator<Item = &'a Received> + Clone) -> Option<Received> {
    let window = joint_length(all.clone().map(|received| (received.payload_bytes, received.window)));
    let jitters: Vec<u64> = all.clone().filter_map(|received| received.jitter).map(Nanos::get).collect();
    let jitter = (!jitters.is_empty()).then(|| Nanos::new(jitters.iter().sum::<u64>() / jitters.len() as u64));
    all.cloned()
        .reduce(|mut sum, received| {
            sum.payload_bytes += received.payload_bytes;
            sum.messages += received.messages;
            sum.arrived += received.arrived;
            sum.duplicates += received.duplicates;
            sum.reordered += received.reordered;
            sum.socket_drops += received.socket_drops;
            sum.joined += received.joined;
            sum
        })
        .map(|sum| Received { window, jitter, ..sum })
}

fn sum_transactions<'a>(all: impl Iterator<Item = &'a Transactions> + Clone) -> Option<Transactions> {
    let window = joint_length(all.clone().map(|asked| (asked.completed, asked.window)));
    all.cloned()
        .reduce(|mut sum, asked| {
            sum.completed += asked.completed;
            sum.failed += asked.failed;
            sum.not_sent += asked.not_sent;
            sum.retransmitted += asked.retransmitted;
            sum.latency.merge(&asked.latency);
            sum
        })
        .map(|sum| Transactions { window, ..sum })
}
