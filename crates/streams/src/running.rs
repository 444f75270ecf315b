//! Flows at work, and the sums of their counts.

use crate::error::StreamError;
use crate::flow::{Outcome, Shared, plain};
use crate::job::Load;
use crate::meter::Meter;
use crate::progress::Progress;
use crate::window::joint_length;
use crate::{bulk_tcp, bulk_udp, spread, transact};
use linerate_engine::{SocketError, Stop, Stopped, Work, Worker, Workers, failed};
use linerate_model::{EndCounts, Received, RoleCounts, Sent, StreamTask, Transactions, Transport};
use linerate_observe::interface_between;
use linerate_sys::{affinity, clock};
use linerate_units::{ByteCount, Nanos};
use std::ops::AddAssign;
use std::sync::Arc;

/// Lifetime of a thread after its window. The kernel drops the CPU time of ended threads, and the agent reads it at the
/// window's close.
const OBSERVED_NS: u64 = 100_000_000;
/// Interval of looking whether the window has closed.
const LOOK_NS: u64 = 20_000_000;

/// Flows at work. Dropping it stops them and waits for their threads.
#[derive(Debug)]
pub(crate) struct Running {
    shared: Arc<Shared>,
    /// Each returns the outcomes of its flows with their indices, or nothing after a stop.
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
                flows.stop(Stopped.into());
            }
        });
        let workers = plan(shared).into_iter().map(|ThreadPlan { flows, name, sends, cpu }| {
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
        running.workers.start(workers).map_err(failed("starting a thread"))?;
        Ok(running)
    }

    /// Returns the running work for the agent to watch.
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

    /// Waits for the stragglers and returns the counts of each end, in the order of the assignment's roles.
    pub(crate) fn join(mut self) -> Result<Vec<RoleCounts>, StreamError> {
        let outcomes = self.outcomes()?;
        let mut roles = Vec::new();
        for (end, path_end) in self.shared.job.ends.iter().enumerate() {
            let counts = self.counts(end, path_end.path, &outcomes)?;
            roles.push(RoleCounts::Flows(Box::new(counts)));
        }
        Ok(roles)
    }

    /// Returns the progress of each flow, in the order of the flows.
    pub(crate) fn meters(&self) -> &[Meter] {
        &self.shared.meters
    }

    /// Waits for the stragglers and returns the outcome of each flow, in the order of the flows.
    pub(crate) fn outcomes(&mut self) -> Result<Vec<Option<Outcome>>, StreamError> {
        let mut outcomes: Vec<Option<Outcome>> = self.shared.flows.iter().map(|_| None).collect();
        for (index, outcome) in self.workers.join().into_iter().flatten() {
            outcomes[index] = Some(outcome);
        }
        self.shared.stop.take_reason().map_or(Ok(outcomes), Err)
    }

    /// Sums the outcomes of the flows of end number `end`, which belongs to `path`.
    pub(crate) fn counts(&self, end: usize, path: u16, outcomes: &[Option<Outcome>]) -> Result<EndCounts, StreamError> {
        let mut addresses = None;
        let mut end_outcomes = Vec::new();
        for (flow, outcome) in self.shared.flows.iter().zip(outcomes).filter(|(flow, _)| flow.end == end) {
            addresses.get_or_insert((plain(flow.local.ip()), plain(flow.peer.ip())));
            end_outcomes.extend(outcome);
        }
        // A volume is moved when its last flow is through.
        let length: Length = if self.shared.job.volume().is_some() { longest } else { joint_length };
        let received = sum_received(end_outcomes.iter().filter_map(|outcome| outcome.received.as_ref()), length);
        if let Some(Received { payload_bytes, window, .. }) = &received
            && *payload_bytes > 0
            && window.is_zero()
        {
            let bytes = ByteCount::new(*payload_bytes);
            let text = format!("{bytes} came at once, which cannot be timed: send more");
            return Err(SocketError::InvalidRequest(text).into());
        }
        Ok(EndCounts {
            path,
            interface: addresses.and_then(|(local, peer)| interface_between(local, peer)),
            sent: sum_sent(end_outcomes.iter().filter_map(|outcome| outcome.sent.as_ref()), length),
            received,
            transactions: sum_transactions(end_outcomes.iter().filter_map(|outcome| outcome.transactions.as_ref())),
            flows: end_outcomes.iter().map(|outcome| outcome.flow.clone()).collect(),
            ..EndCounts::default()
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.workers.is_running() {
            self.shared.stop(Stopped.into());
        }
    }
}

/// Sleeps until the agent has read the CPU time of this thread. The close of a window that ends by volume is known
/// late.
fn sleep_until_observed(shared: &Shared) {
    loop {
        let now = clock::now();
        let observed = shared.timeline.close() + OBSERVED_NS;
        if now >= observed || !shared.stop.sleep_until(observed.min(now + LOOK_NS)) {
            return;
        }
    }
}

/// The work of one thread.
struct ThreadPlan {
    /// Indices of its flows, all of one direction.
    flows: Vec<usize>,
    name: String,
    sends: bool,
    cpu: Option<u32>,
}

/// Distributes the flows over threads. Cores and threads are used in turn, separately for senders and receivers.
fn plan(shared: &Shared) -> Vec<ThreadPlan> {
    let mut senders = threads(shared, true);
    let mut receivers = threads(shared, false);
    let mut sender_count = 0;
    let mut receiver_count = 0;
    for (index, flow) in shared.flows.iter().enumerate() {
        let (threads, count) =
            if flow.sends() { (&mut senders, &mut sender_count) } else { (&mut receivers, &mut receiver_count) };
        let number = *count % threads.len();
        threads[number].flows.push(index);
        *count += 1;
    }
    senders.append(&mut receivers);
    // In the order of their first flows.
    senders.sort_by_key(|thread| thread.flows.first().copied());
    senders
}

/// Returns the threads of one direction, without flows.
fn threads(shared: &Shared, sends: bool) -> Vec<ThreadPlan> {
    let options = shared.job.socket();
    let transacts = shared.job.transacts();
    let (verb, cpus) = match (transacts, sends) {
        (false, true) => ("send", &options.sender_cpus),
        (false, false) => ("receive", &options.receiver_cpus),
        (true, true) => ("ask", &options.sender_cpus),
        (true, false) => ("answer", &options.receiver_cpus),
    };
    let flows = shared.flows.iter().filter(|flow| flow.sends() == sends).count();
    let threads = if transacts { flows } else { spread::threads(flows, cpus) };
    (0..threads)
        .map(|number| ThreadPlan {
            flows: Vec::new(),
            name: format!("{verb} {number}"),
            sends,
            cpu: (!cpus.is_empty()).then(|| cpus[number % cpus.len()]),
        })
        .collect()
}

/// Does the work of one thread. Returns the outcome of each of `flows`.
fn work(shared: &Shared, flows: &[usize], cpu: Option<u32>) -> Result<Vec<Outcome>, StreamError> {
    if let Some(cpu) = cpu {
        affinity::pin(cpu)?;
    }
    match &shared.job.load {
        Load::Stream(spec) => stream(shared, flows, spec),
        Load::Transact(spec) => flows.iter().map(|&index| transact::run(shared, index, spec)).collect(),
    }
}

/// Sends or receives the flows of one thread, which are all of one direction.
fn stream(shared: &Shared, flows: &[usize], spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    let sends = flows.iter().all(|index| shared.flows[*index].sends());
    match spec.net.transport {
        Transport::Tcp => {
            let streams: Vec<_> = flows.iter().filter_map(|&index| Some((index, shared.flows[index].tcp()?))).collect();
            match (sends, &streams[..]) {
                (true, [(index, stream)]) => Ok(vec![bulk_tcp::send(shared, *index, spec, stream)?]),
                (false, [(index, stream)]) => Ok(vec![bulk_tcp::receive(shared, *index, spec, stream)?]),
                (true, streams) => bulk_tcp::send_all(shared, streams, spec),
                (false, streams) => bulk_tcp::receive_all(shared, streams, spec),
            }
        }
        Transport::Udp => {
            let sockets: Vec<_> = flows.iter().filter_map(|&index| Some((index, shared.flows[index].udp()?))).collect();
            match (sends, &sockets[..]) {
                (true, [(index, socket)]) => Ok(vec![bulk_udp::send(shared, *index, spec, socket)?]),
                (false, [(index, socket)]) => Ok(vec![bulk_udp::receive(shared, *index, spec, socket)?]),
                (true, sockets) => bulk_udp::send_all(shared, sockets, spec),
                (false, sockets) => bulk_udp::receive_all(shared, sockets, spec),
            }
        }
    }
}

/// Length of the window of a sum, from each summand's count and length.
type Length = fn(&mut dyn Iterator<Item = (u64, Nanos)>) -> Nanos;

/// Returns the longest of all lengths.
fn longest(counts: &mut dyn Iterator<Item = (u64, Nanos)>) -> Nanos {
    counts.map(|(_, length)| length).max().unwrap_or_default()
}

/// Returns the sum of the counts of all flows, or `None` without flows.
fn sum<'a, C: Clone + AddAssign<&'a C> + 'a>(mut flows: impl Iterator<Item = &'a C>) -> Option<C> {
    let mut sum = flows.next()?.clone();
    for counts in flows {
        sum += counts;
    }
    Some(sum)
}

fn sum_sent<'a>(flows: impl Iterator<Item = &'a Sent> + Clone, length: Length) -> Option<Sent> {
    let window = length(&mut flows.clone().map(|sent| (sent.payload_bytes, sent.window)));
    Some(Sent { window, ..sum(flows)? })
}

fn sum_received<'a>(flows: impl Iterator<Item = &'a Received> + Clone, length: Length) -> Option<Received> {
    let window = length(&mut flows.clone().map(|received| (received.payload_bytes, received.window)));
    let jitters: Vec<u64> = flows.clone().filter_map(|received| received.jitter).map(Nanos::get).collect();
    let jitter = (!jitters.is_empty()).then(|| Nanos::new(jitters.iter().sum::<u64>() / jitters.len() as u64));
    Some(Received { window, jitter, ..sum(flows)? })
}

fn sum_transactions<'a>(flows: impl Iterator<Item = &'a Transactions> + Clone) -> Option<Transactions> {
    let window = joint_length(&mut flows.clone().map(|transactions| (transactions.completed, transactions.window)));
    Some(Transactions { window, ..sum(flows)? })
}
