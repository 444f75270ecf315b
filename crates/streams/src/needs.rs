//! Resources that streams and transactions need on their host.

use crate::accept::STRANGERS;
use crate::job::{Job, Load};
use crate::spread;
use linerate_engine::{Needs, Side};
use linerate_model::{Power, StreamTask, TransactStyle, TransactTask, Transport};

/// Buffers of a flow that do not depend on the size of its messages: batches of datagrams (256 KiB), a TCP receiver's
/// buffer (128 KiB), numbers of received datagrams (8 KiB).
const BUFFERS: u64 = 512 << 10;
/// Queue of an open loop: 16 bytes for the times of each unanswered request.
const QUEUE: u64 = 16 << 20;

/// Memory of a flow that shares its thread: counts, list entries, and the numbers of received datagrams (8 KiB).
const SHARING_FLOW: u64 = 16 << 10;

/// Returns what `job` needs.
pub(crate) fn needs(job: &Job) -> Needs {
    // A listening end also has unauthenticated peers, until they run into their time limit.
    let mut strangers = STRANGERS.places as u64;
    let (power, flow_memory, flow_descriptors) = match &job.load {
        Load::Transact(task) if task.style == TransactStyle::Connect => {
            strangers = crate::transact::strangers(task) as u64;
            // The connection of the previous transaction may still be closing.
            (Power::Transact, transact_memory(task), 2)
        }
        Load::Transact(task) => (Power::Transact, transact_memory(task), 1),
        Load::Stream(task) => (Power::Stream, stream_memory(task), 2),
    };
    let listening = job.ends.iter().filter(|end| matches!(end.side, Side::Server { .. })).count() as u64;
    let is_udp = job.transport() == Transport::Udp;
    let mut needs = Needs::of(power);
    for (sends, cpus) in [(true, &job.socket().sender_cpus), (false, &job.socket().receiver_cpus)] {
        let flows = job.flows(sends);
        let threads = if job.transacts() { flows } else { spread::threads(flows as usize, cpus) as u64 };
        let mut memory = threads.saturating_mul(flow_memory.saturating_add(Needs::THREAD));
        let mut descriptors = flows.saturating_mul(flow_descriptors);
        if threads < flows {
            // Each thread has an epoll and a file for `sendfile`.
            descriptors = flows * if is_udp { 2 } else { 1 } + 2 * threads;
            memory = memory.saturating_add(flows.saturating_mul(SHARING_FLOW));
        }
        needs.memory = needs.memory.saturating_add(memory);
        needs.threads = needs.threads.saturating_add(threads);
        needs.descriptors = needs.descriptors.saturating_add(descriptors);
    }
    // Each listening end has an accepting thread; with UDP also an epoll.
    needs.threads += listening;
    needs.descriptors = needs.descriptors.saturating_add(listening.saturating_mul(strangers + 1 + u64::from(is_udp)));
    needs
}

/// Returns the memory of one flow. A sender's message exists twice while it is copied into a memory file for
/// `sendfile`.
fn stream_memory(task: &StreamTask) -> u64 {
    let copies = if task.net.transport == Transport::Tcp { 2 } else { 1 };
    task.message_bytes.get().saturating_mul(copies).saturating_add(BUFFERS)
}

fn transact_memory(task: &TransactTask) -> u64 {
    let messages = match task.net.transport {
        // Messages are sent and received in pieces.
        Transport::Tcp => 0,
        Transport::Udp => task.request_bytes.get().saturating_add(task.response_bytes.get()),
    };
    let queue = if task.rate.is_some() { QUEUE } else { 16 * u64::from(task.outstanding) };
    messages.saturating_add(queue).saturating_add(BUFFERS)
}
