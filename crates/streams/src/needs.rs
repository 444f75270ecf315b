//! What streams and transactions need of their host.

use crate::accept::STRANGERS;
use crate::job::Job;
use crate::spread;
use linerate_engine::{Needs, Side};
use linerate_model::{Power, StreamTask, Task, TransactStyle, TransactTask, Transport};

/// Buffers of a flow that do not depend on the size of its messages: batches of datagrams, a TCP receiver's buffer, the
/// numbers of datagrams that were seen (256 KiB, 128 KiB, 8 KiB).
const BUFFERS: u64 = 512 << 10;
/// Requests whose times are kept while they are unanswered: an open loop's queue, 16 bytes each.
const QUEUE: u64 = 16 << 20;

/// What a flow of a stream that shares its thread takes: its counts and its places in lists, and the numbers of datagrams that
/// were seen (8 KiB).
const SHARING_FLOW: u64 = 16 << 10;

/// Returns what `job` needs.
pub(crate) fn needs(job: &Job) -> Needs {
    // An end that listens has strangers besides, whose connections are closed, or sockets given up, when their time is over.
    let mut strangers = STRANGERS.places as u64;
    let (power, flow, descriptors) = match &job.task {
        Task::Transact(task) => {
            // A connection for each transaction: the old one may still be closing.
            let connects = task.style == TransactStyle::Connect;
            if connects {
                strangers = crate::transact::strangers(task) as u64;
            }
            (Power::Transact, transact_memory(task), if connects { 2 } else { 1 })
        }
        Task::Stream(task) => (Power::Stream, stream_memory(task), 2),
        other => unreachable!("`Job::check` takes no {}", other.kind()),
    };
    let listening = job.ends.iter().filter(|end| matches!(end.side, Side::Server { .. })).count() as u64;
    let is_udp = job.transport() == Transport::Udp;
    let mut needs = Needs::of(power);
    for (sends, cpus) in [(true, &job.socket().sender_cpus), (false, &job.socket().receiver_cpus)] {
        let flows = job.flows(sends);
        let own = match &job.task {
            Task::Stream(_) => spread::threads(flows as usize, cpus) as u64,
            _ => flows,
        };
        let (mut memory, mut sockets) =
            (own.saturating_mul(flow.saturating_add(Needs::THREAD)), flows.saturating_mul(descriptors));
        if own < flows {
            // The epoll of each thread, and its file for `sendfile`.
            sockets = flows * if is_udp { 2 } else { 1 } + 2 * own;
            memory = memory.saturating_add(flows.saturating_mul(SHARING_FLOW));
        }
        needs.memory = needs.memory.saturating_add(memory);
        needs.threads = needs.threads.saturating_add(own);
        needs.descriptors = needs.descriptors.saturating_add(sockets);
    }
    // Each listening end has a thread that accepts; of datagrams it has an epoll.
    needs.threads += listening;
    needs.descriptors = needs.descriptors.saturating_add(listening.saturating_mul(strangers + 1 + u64::from(is_udp)));
    needs
}

/// A sender's message exists twice while it is put into a file of memory for `sendfile`.
fn stream_memory(task: &StreamTask) -> u64 {
    let copies = if task.net.transport == Transport::Tcp { 2 } else { 1 };
    task.message_bytes.get().saturating_mul(copies).saturating_add(BUFFERS)
}

fn transact_memory(task: &TransactTask) -> u64 {
    let messages = match task.net.transport {
        // They are sent and taken by pieces.
        Transport::Tcp => 0,
        Transport::Udp => task.request_bytes.get().saturating_add(task.response_bytes.get()),
    };
    let queue = if task.rate.is_some() { QUEUE } else { 16 * u64::from(task.outstanding) };
    messages.saturating_add(queue).saturating_add(BUFFERS)
}
