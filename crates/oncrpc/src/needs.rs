//! Resources that calls take on their host, whatever their protocol.

use crate::job::Job;
use crate::running_server::set_up_callers;
use crate::server::{CONNECTION_MEMORY, STRANGERS};
use linerate_engine::Needs;
use linerate_model::Transport;

/// Memory in which a server over UDP keeps its calls, so that none is executed twice.
const REMEMBERED: u64 = 4 << 20;

/// Buffers of a caller in addition to its calls: a reply of the largest kind, gathered from fragments.
const REPLY: u64 = 4 << 20;

/// Returns memory, threads and descriptors that the ends of `job` need here. Each flow has `outstanding` calls of
/// `data` bytes under way.
pub fn calls_need(job: &Job, data: u64, outstanding: u64) -> Needs {
    let flows = u64::from(job.net().flows);
    let calling = flows.saturating_mul(job.clients());
    let serving = flows.saturating_mul(job.servers());
    let under_way = data.saturating_mul(outstanding.saturating_add(1));
    let of_callers = calling.saturating_mul(under_way.saturating_add(REPLY + Needs::THREAD));
    let (set_up, remembered) = match job.transport() {
        Transport::Tcp => (job.servers().saturating_mul(set_up_callers(job) as u64), 0),
        Transport::Udp => (0, job.servers().saturating_mul(REMEMBERED)),
    };
    let connections = serving.saturating_add(set_up);
    Needs {
        // Those that set up have their memory of the others.
        memory: serving
            .saturating_mul(CONNECTION_MEMORY)
            .saturating_add(connections.saturating_mul(Needs::THREAD))
            .saturating_add(remembered)
            .saturating_add(of_callers),
        // A server over TCP has one more, which accepts.
        threads: calling.saturating_add(connections).saturating_add(job.servers()),
        descriptors: match job.transport() {
            // The listener, and the connections of strangers.
            Transport::Tcp => {
                let listening = job.servers().saturating_mul(1 + STRANGERS.places as u64);
                calling.saturating_add(connections).saturating_add(listening)
            }
            // At a port that is shared each caller has a socket, and each thread is woken for new ones.
            Transport::Udp => {
                let listening = job.servers().saturating_mul(1 + set_up_callers(job) as u64);
                calling.saturating_add(serving.saturating_mul(2)).saturating_add(listening)
            }
        },
        ..Needs::default()
    }
}
