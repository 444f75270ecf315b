//! Flows at work, and the sum of what they counted.

use crate::error::StreamError;
use crate::flow::{Link, Outcome, Shared, plain};
use crate::meter::Meter;
use crate::progress::Progress;
use crate::window::joint_length;
use crate::{bulk_tcp, bulk_udp, spread, transact};
use linerate_engine::{Stop, Work, Worker, Workers};
use linerate_model::{EndCounts, Received, RoleCounts, Sent, Task, Transactions, Transport};
use linerate_observe::interface_between;
use linerate_sys::{affinity, clock};
use linerate_units::{ByteCount, Nanos};
use std::sync::Arc;

/// A thread lives on for so long after its window: the kernel forgets what an ended thread cost, and whoever watches the host
/// reads it at the window's close.
const OBSERVED_NS: u64 = 100_000_000;
/// How often it looks whether the window has closed.
const LOOK_NS: u64 = 20_000_000;

/// Flows at work. Dropping it stops them and waits for their threads.
#[derive(Debug)]
pub(crate) struct Running {
    shared: Arc<Shared>,
    /// Each gives what its flows counted, by their indices; nothing if it was stopped.
    workers: Workers<Vec<(usize, Outcome)>>,
}

impl Running {
    /// Starts the flows' threads. They end when `stop` is set.
    pub(crate) fn spawn(shared: Shared, stop: &Stop) -> Result<Self, StreamError> {
        let mut running = Self { shared: Arc::new(shared), workers: Workers::default() };
        let shared = &running.shared;
        let flows = Arc::downgrade(shared);
        stop.on_stop(move || {
            if let Some(flows) = flows.upgrade() {
                flows.stop(StreamError::Stopped);
            }
        });
        let workers = plan(shared).into_iter().map(|Share { flows, name, sends, cpu }| {
            let shared = Arc::clone(shared);
            let work = move || {
                let outcomes = work(&shared, &flows, cpu);
                if outcomes.is_ok() {
                    sleep_until_observed(&shared);
                }
                let outcomes = outcomes.map_err(|error| shared.stop(error)).unwrap_or_default();
                flows.into_iter().zip(outcomes).collect()
            };
            Worker { name, sends, work }
        });
        running.workers.start(workers).map_err(StreamError::socket("starting a thread"))?;
        Ok(running)
    }

    /// What is under way, for whoever watches it.
    pub(crate) fn work(&self) -> Work {
        let timeline = &self.shared.timeline;
        Work {
            start: timeline.start(),
            window: Some(timeline.clone()),
            threads: self.workers.threads().to_vec(),
            disks: Vec::new(),
            meters: Arc::new(Progress::new(&self.shared, self.workers.ended())),
        }
    }

    /// Waits for the stragglers and gives each end's counts, in the order of the assignment's roles.
    pub(crate) fn join(mut self) -> Result<Vec<RoleCounts>, StreamError> {
        let outcomes = self.outcomes()?;
        let ends = self.shared.job.ends.iter().enumerate();
        ends.map(|(end, path_end)| Ok(RoleCounts::Flows(Box::new(self.counts(end, path_end.path, &outcomes)?))))
            .collect()
    }

    /// How far each flow is, in the order of the flows.
    pub(crate) fn meters(&self) -> &[Meter] {
        &self.shared.meters
    }

    /// Waits for the stragglers and gives what each flow counted, in the order of the flows.
    pub(crate) fn outcomes(&mut self) -> Result<Vec<Option<Outcome>>, StreamError> {
        let mut outcomes: Vec<Option<Outcome>> = self.shared.flows.iter().map(|_| None).collect();
        for (index, outcome) in self.workers.join().into_iter().flatten() {
            outcomes[index] = Some(outcome);
        }
        self.shared.stop.take_reason().map_or(Ok(outcomes), Err)
    }

    /// What the end of index `end`, of the path `path`, makes of its flows' `outcomes`.
    pub(crate) fn counts(&self, end: usize, path: u16, outcomes: &[Option<Outcome>]) -> Result<EndCounts, StreamError> {
        let flows = self.shared.flows.iter().zip(outcomes).filter(|(flow, _)| flow.end == end);
        let addresses = flows.clone().map(|(flow, _)| (plain(flow.local.ip()), plain(flow.peer.ip()))).next();
        let of_end: Vec<&Outcome> = flows.filter_map(|(_, outcome)| outcome.as_ref()).collect();
        // A volume is moved when its last flow is through.
        let length: Length = if self.shared.job.volume().is_some() { longest } else { joint_length };
        let counts = EndCounts {
            path,
            interface: addresses.and_then(|(local, peer)| interface_between(local, peer)),
            sent: sum_sent(of_end.iter().filter_map(|outcome| outcome.sent.as_ref()), length),
            received: sum_received(of_end.iter().filter_map(|outcome| outcome.received.as_ref()), length),
            transactions: sum_transactions(of_end.iter().filter_map(|outcome| outcome.transactions.as_ref())),
            flows: of_end.iter().map(|outcome| outcome.flow.clone()).collect(),
            ..EndCounts::default()
        };
        match counts.received.as_ref().filter(|received| received.payload_bytes > 0 && received.window.is_zero()) {
            Some(Received { payload_bytes, .. }) => Err(StreamError::InvalidRequest(format!(
                "{} came at once, which cannot be timed: send more",
                ByteCount::new(*payload_bytes)
            ))),
            None => Ok(counts),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.workers.is_running() {
            self.shared.stop(StreamError::Stopped);
        }
    }
}

/// Sleeps until whoever watches the host has read what this thread cost. Of a volume, the window's close is known late.
fn sleep_until_observed(shared: &Shared) {
    loop {
        let (now, observed) = (clock::now(), shared.timeline.close() + OBSERVED_NS);
        if now >= observed || !shared.stop.sleep_until(observed.min(now + LOOK_NS)) {
            return;
        }
    }
}

/// What one thread does.
struct Share {
    /// The indices of its flows, all of one direction.
    flows: Vec<usize>,
    name: String,
    sends: bool,
    cpu: Option<u32>,
}

/// The threads. Cores are used in turn, and so are the threads that share flows, senders' and receivers' apart.
fn plan(shared: &Shared) -> Vec<Share> {
    let options = shared.job.socket();
    let transacts = matches!(shared.job.task, Task::Transact(_));
    let direction = |sends: bool| {
        let flows = shared.flows.iter().filter(|flow| flow.sends() == sends).count();
        let (verb, cpus) = match (transacts, sends) {
            (false, true) => ("send", &options.sender_cpus),
            (false, false) => ("receive", &options.receiver_cpus),
            (true, true) => ("ask", &options.sender_cpus),
            (true, false) => ("answer", &options.receiver_cpus),
        };
        let threads = if transacts { flows } else { spread::threads(flows, cpus) };
        (0..threads).map(move |number| Share {
            flows: Vec::new(),
            name: format!("{verb} {number}"),
            sends,
            cpu: (!cpus.is_empty()).then(|| cpus[number % cpus.len()]),
        })
    };
    let (mut senders, mut receivers): (Vec<_>, Vec<_>) = (direction(true).collect(), direction(false).collect());
    let (mut sent, mut received) = (0, 0);
    for (index, flow) in shared.flows.iter().enumerate() {
        let (shares, number) = if flow.sends() { (&mut senders, &mut sent) } else { (&mut receivers, &mut received) };
        let threads = shares.len();
        shares[*number % threads].flows.push(index);
        *number += 1;
    }
    senders.append(&mut receivers);
    // In the order of their first flows.
    senders.sort_by_key(|share| share.flows.first().copied());
    senders
}

/// Does the work of one thread, and returns what each of `flows` counted.
fn work(shared: &Shared, flows: &[usize], cpu: Option<u32>) -> Result<Vec<Outcome>, StreamError> {
    if let Some(cpu) = cpu {
        affinity::pin(cpu)?;
    }
    let index = match flows {
        [index] => *index,
        several => return work_in_turn(shared, several),
    };
    let flow = &shared.flows[index];
    let outcome = match (&shared.job.task, &flow.link) {
        (Task::Stream(spec), Link::Tcp(stream)) if flow.sends() => bulk_tcp::send(shared, index, spec, stream),
        (Task::Stream(spec), Link::Tcp(stream)) => bulk_tcp::receive(shared, index, spec, stream),
        (Task::Stream(spec), Link::Udp(socket)) if flow.sends() => bulk_udp::send(shared, index, spec, socket),
        (Task::Stream(spec), Link::Udp(socket)) => bulk_udp::receive(shared, index, spec, socket),
        (Task::Stream(_), Link::Dial | Link::Answer(_)) => unreachable!("streams have standing flows"),
        (Task::Transact(spec), link) => transact::run(shared, index, spec, link),
        _ => unreachable!("`Job::check` refused it"),
    };
    Ok(vec![outcome?])
}

/// The same of several flows of a stream.
fn work_in_turn(shared: &Shared, flows: &[usize]) -> Result<Vec<Outcome>, StreamError> {
    let Task::Stream(spec) = &shared.job.task else { unreachable!("each flow of other tasks has a thread of its own") };
    match (spec.net.transport, shared.flows[flows[0]].sends()) {
        (Transport::Tcp, true) => bulk_tcp::send_all(shared, flows, spec),
        (Transport::Tcp, false) => bulk_tcp::receive_all(shared, flows, spec),
        (Transport::Udp, true) => bulk_udp::send_all(shared, flows, spec),
        (Transport::Udp, false) => bulk_udp::receive_all(shared, flows, spec),
    }
}

/// The length over which a sum of counts is told, by each one's count and length.
type Length = fn(&mut dyn Iterator<Item = (u64, Nanos)>) -> Nanos;

/// The longest of all.
fn longest(counts: &mut dyn Iterator<Item = (u64, Nanos)>) -> Nanos {
    counts.map(|(_, length)| length).max().unwrap_or_default()
}

fn sum_sent<'a>(all: impl Iterator<Item = &'a Sent> + Clone, length: Length) -> Option<Sent> {
    let window = length(&mut all.clone().map(|sent| (sent.payload_bytes, sent.window)));
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

fn sum_received<'a>(all: impl Iterator<Item = &'a Received> + Clone, length: Length) -> Option<Received> {
    let window = length(&mut all.clone().map(|received| (received.payload_bytes, received.window)));
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
    let window = joint_length(&mut all.clone().map(|asked| (asked.completed, asked.window)));
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
