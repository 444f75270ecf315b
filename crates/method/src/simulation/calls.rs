//! Transactions, RPC and NFS: so many in flight, each a round trip and the server's time for it.

use super::{INTERFACE, Network};
use linerate_model::{
    EndCounts, FlowCounts, Histogram, Net, NfsClass, NfsTask, OperationCounts, Received, RpcTask, Sent, Service, Task,
    TransactTask, Transactions, Transport,
};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// Parts of the window in which the waiting times of an overloaded open loop are told apart.
const SLICES: u64 = 100;

/// What becomes of the requests on one path.
struct Answered {
    completed: u64,
    not_sent: u64,
    latency: Histogram,
    per_s: f64,
}

/// Payload bytes of a request, each way.
struct Size {
    there: f64,
    back: f64,
}

impl Network {
    /// The end that asks.
    pub(super) fn asking_end(&self, task: &Task, path: u16, window: Nanos, beside: &[Task]) -> EndCounts {
        let answered = self.answered(task, window, beside);
        let (sent, received) = data(task, answered.completed, window);
        let (sent, received) = if let Task::Transact(_) = task { (None, None) } else { (sent, received) };
        let operations = match task {
            Task::Nfs(nfs) => operations(nfs, &answered),
            _ => BTreeMap::new(),
        };
        EndCounts {
            path,
            interface: Some(INTERFACE.into()),
            sent,
            received,
            flows: self.flows(task, answered.per_s, window),
            operations,
            transactions: Some(Transactions {
                window,
                completed: answered.completed,
                not_sent: answered.not_sent,
                latency: answered.latency,
                ..Transactions::default()
            }),
            ..EndCounts::default()
        }
    }

    /// The end that answers.
    pub(super) fn answering_end(&self, task: &Task, path: u16, window: Nanos, beside: &[Task]) -> EndCounts {
        let answered = self.answered(task, window, beside);
        let (there, back) = data(task, answered.completed, window);
        let mut time = Histogram::default();
        time.record_many(self.service(task).get().max(1), answered.completed);
        let serves = !matches!(task, Task::Transact(_));
        EndCounts {
            path,
            interface: Some(INTERFACE.into()),
            sent: back.filter(|_| serves).map(|back| Sent {
                window,
                payload_bytes: back.payload_bytes,
                messages: back.messages,
                ..Sent::default()
            }),
            received: there.filter(|_| serves).map(|there| Received {
                window,
                payload_bytes: there.payload_bytes,
                messages: there.messages,
                ..Received::default()
            }),
            service: serves.then_some(Service { calls: answered.completed, time }),
            flows: self.flows(task, answered.per_s, window),
            ..EndCounts::default()
        }
    }

    fn service(&self, task: &Task) -> Nanos {
        if let Task::Nfs(_) = task { self.server.service } else { Nanos::default() }
    }

    fn answered(&self, task: &Task, window: Nanos, beside: &[Task]) -> Answered {
        let (seconds, paths) = (window.as_secs_f64(), task.paths().len().max(1) as f64);
        let queued = if self.filled(beside) { self.queue } else { Nanos::default() };
        let base = (self.round_trip + queued + self.service(task)).as_secs_f64();
        let Size { there, back } = size(task);
        let net = net(task);
        let line = self.payload(net.transport, net.ip, 1 << 20) / 8.0 / there.max(back) / paths;
        let server = match task {
            Task::Nfs(_) => self.server.capacity().unwrap_or(f64::INFINITY) / paths,
            _ => f64::INFINITY,
        };
        let in_flight = match task {
            // An open loop of transactions waits for no answer.
            Task::Transact(TransactTask { rate: Some(_), .. }) => f64::INFINITY,
            task => in_flight(task),
        };
        let capacity = (in_flight / base).min(line).min(server);
        let mut latency = Histogram::default();
        let nanos = |seconds: f64| (seconds * 1e9) as u64;
        let (per_s, due) = match task.requests_per_s().map(|rate| rate.get() as f64) {
            Some(due) => (due.min(capacity), due),
            None => (capacity, capacity),
        };
        let completed = (per_s * seconds).round() as u64;
        if due > capacity {
            // What is due late in the window waits for all that was due before it.
            let longest = seconds * (1.0 - capacity / due);
            for slice in 0..SLICES {
                let share = (slice as f64 + 0.5) / SLICES as f64;
                let until = |slice: u64| completed * slice / SLICES;
                latency.record_many(nanos(base + longest * share), until(slice + 1) - until(slice));
            }
        } else {
            // Little's law: with more in flight than the capacity needs, each waits for its turn.
            let wait = if task.requests_per_s().is_none() { in_flight / per_s } else { base };
            latency.record_many(nanos(wait.max(base)), completed);
        }
        let not_sent = ((due - per_s) * seconds).round() as u64;
        Answered { completed, not_sent, latency, per_s }
    }

    /// Whether a stream of `beside` fills the line.
    fn filled(&self, beside: &[Task]) -> bool {
        beside.iter().any(|task| matches!(task, Task::Stream(stream) if stream.offered.is_none()))
    }

    fn flows(&self, task: &Task, per_s: f64, window: Nanos) -> Vec<FlowCounts> {
        let net = net(task);
        let flows = net.flows.max(1);
        let Size { there, back } = size(task);
        let tcp = (net.transport == Transport::Tcp)
            .then(|| self.tcp_flow(net, per_s * there.max(back) * 8.0 / f64::from(flows), window));
        vec![FlowCounts { tcp, ..FlowCounts::default() }; usize::from(flows)]
    }
}

fn net(task: &Task) -> &Net {
    task.net().expect("requests go over the network")
}

fn in_flight(task: &Task) -> f64 {
    let slots = match task {
        Task::Transact(TransactTask { net, outstanding, .. }) => u32::from(net.flows) * u32::from(*outstanding),
        task => task.outstanding().unwrap_or(1),
    };
    f64::from(slots.max(1))
}

/// What a request takes of TCP's or UDP's payload.
fn size(task: &Task) -> Size {
    let least = |bytes: f64| bytes.max(1.0);
    match task {
        Task::Transact(task) => {
            Size { there: least(task.request_bytes.get() as f64), back: least(task.response_bytes.get() as f64) }
        }
        Task::Rpc(task) => {
            let large = task.message_bytes() as f64;
            let (there, back) = (task.call.carries_there(), task.call.carries_back());
            Size {
                there: if there { large } else { RpcTask::CALL_HEAD as f64 },
                back: if back { large } else { RpcTask::REPLY_HEAD as f64 },
            }
        }
        Task::Nfs(task) => {
            let share = |class| share(task, class) * task.transfer_bytes.get() as f64;
            Size { there: HEAD + share(NfsClass::Write), back: HEAD + share(NfsClass::Read) }
        }
        task => panic!("{} are no requests", task.kind()),
    }
}

/// Bytes of an NFS call or reply beside its data.
const HEAD: f64 = 130.0;

/// Share of a class in the operations.
fn share(task: &NfsTask, class: NfsClass) -> f64 {
    let percent = |of: Option<NfsClass>| -> f64 {
        let there = task.mix.percent.iter().filter(|(operation, _)| of.is_none_or(|of| operation.class() == of));
        there.map(|(_, percent)| percent).sum()
    };
    percent(Some(class)) / percent(None).max(f64::MIN_POSITIVE)
}

/// Units of data that so many requests moved, there and back.
fn data(task: &Task, completed: u64, window: Nanos) -> (Option<Sent>, Option<Received>) {
    let units = |share: f64| (completed as f64 * share).round() as u64;
    let (unit, there, back) = match task {
        Task::Rpc(task) => {
            let carried = |carries: bool| if carries { completed } else { 0 };
            (task.unit_bytes.get(), carried(task.call.carries_there()), carried(task.call.carries_back()))
        }
        Task::Nfs(task) => {
            (task.transfer_bytes.get(), units(share(task, NfsClass::Write)), units(share(task, NfsClass::Read)))
        }
        _ => (0, 0, 0),
    };
    let sent = Sent { window, payload_bytes: there * unit, messages: there, ..Sent::default() };
    let received = Received { window, payload_bytes: back * unit, messages: back, ..Received::default() };
    (Some(sent), Some(received))
}

/// The operations of a mix, each its share.
fn operations(task: &NfsTask, answered: &Answered) -> BTreeMap<linerate_model::NfsOperation, OperationCounts> {
    let all: f64 = task.mix.percent.values().sum();
    let mut left = answered.completed;
    let mut operations = BTreeMap::new();
    for (operation, percent) in &task.mix.percent {
        let completed = ((answered.completed as f64 * percent / all.max(f64::MIN_POSITIVE)).round() as u64).min(left);
        left -= completed;
        let moves = operation.class() != NfsClass::Other;
        let mut latency = Histogram::default();
        latency.record_many(answered.latency.mean() as u64, completed);
        let bytes = if moves { completed * task.transfer_bytes.get() } else { 0 };
        operations.insert(*operation, OperationCounts { completed, bytes, latency, ..OperationCounts::default() });
    }
    operations
}
