//! What streams and transactions need of their host.

use crate::accept::STRANGERS;
use crate::job::Job;
use linerate_engine::{Needs, Side};
use linerate_model::{Power, StreamTask, Task, TransactStyle, TransactTask, Transport};

/// Buffers of a flow that do not depend on the size of its messages: batches of datagrams, a TCP receiver's buffer, the
/// numbers of datagrams that were seen (256 KiB, 128 KiB, 8 KiB).
const BUFFERS: u64 = 512 << 10;
/// Requests whose times are kept while they are unanswered: an open loop's queue, 16 bytes each.
const QUEUE: u64 = 16 << 20;

/// Returns what `job` needs, with so many flows at each of its ends.
pub(crate) fn needs(job: &Job, flows_each: u64) -> Needs {
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
    let ends = job.ends.len() as u64;
    let listening = job.ends.iter().filter(|end| matches!(end.side, Side::Server { .. })).count() as u64;
    let flows = flows_each.saturating_mul(ends);
    Needs {
        memory: flows.saturating_mul(flow.saturating_add(Needs::THREAD)),
        // Each listening end has a thread that accepts.
        threads: flows.saturating_add(listening),
        descriptors: flows
            .saturating_mul(descriptors)
            .saturating_add(listening.saturating_mul(strangers.saturating_add(1))),
        ..Needs::of(power)
    }
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
