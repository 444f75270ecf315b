//! The server's end of a path: its server and its counts.

use crate::client::TICK_NS;
use crate::error::RpcError;
use crate::job::Job;
use crate::protocol::Protocol;
use crate::server::{CONNECTION_MEMORY, Server, ServerMeter, ServerOptions};
use linerate_engine::{ListenOptions, SocketSpec, Timeline};
use linerate_model::{EndCounts, LinkId, Received, Sent, Task, Transport};
use linerate_observe::interface_of;
use linerate_sys::clock;
use linerate_sys::thread::EngineThread;
use linerate_units::Nanos;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::thread;

/// Time without a call (UDP) after which a server ends, once the window has closed ...
const QUIET_NS: u64 = 400_000_000;
/// ... or until its callers have closed their connections (TCP), and have removed what they made, but no longer than
/// this and the time that removing may take.
const STAY_NS: u64 = 10_000_000_000;

/// Returns how many callers set up and tidy up a server of `job`, in addition to those of the load. Over UDP each keeps
/// its place until the server ends, and each step is another.
pub(crate) fn set_up_callers(job: &Job) -> usize {
    match job.transport() {
        Transport::Udp => 64,
        // One that mounts while another makes files, and those before that are closing.
        Transport::Tcp => 4,
    }
}

/// A server of a session, from listening to its counts.
#[derive(Debug)]
pub(crate) struct RunningServer {
    pub(crate) end: usize,
    pub(crate) link: LinkId,
    path: u16,
    server: Server,
    transport: Transport,
    stay_ns: u64,
    /// When it began to count, nanoseconds.
    begun: OnceLock<u64>,
}

impl RunningServer {
    /// Serves end number `end`, on `link` at `address` as `listening` says, to those that hold the session's key.
    pub(crate) fn start(
        job: &Job,
        protocol: &dyn Protocol,
        end: usize,
        (link, address): (LinkId, IpAddr),
        listening: &ListenOptions,
    ) -> Result<Self, RpcError> {
        let transport = job.transport();
        let path = job.ends[end].path;
        let spec = SocketSpec { transport, v6: job.v6(), options: job.socket(), bind: None, device: false };
        let flows = usize::from(job.net().flows);
        let options = ServerOptions {
            threads: flows.min(thread::available_parallelism().map_or(1, usize::from)),
            first: end * flows,
            cpus: job.socket().receiver_cpus.clone(),
            key: Some(job.ends[end].key(&job.key)),
            connections: flows + set_up_callers(job),
            connections_each: flows + set_up_callers(job),
            memory: flows as u64 * CONNECTION_MEMORY,
            peers: listening.peers.clone(),
            replies: Arc::clone(&listening.replies),
            ..ServerOptions::default()
        };
        let server = Server::in_session(spec, address, listening, protocol.programs(job)?, options)?;
        let stay_ns = STAY_NS + job.task.set_up().get();
        Ok(Self { end, link, path, server, transport, stay_ns, begun: OnceLock::new() })
    }

    /// Returns where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the threads that answer calls at the moment.
    pub(crate) fn threads(&self) -> Vec<EngineThread> {
        self.server.threads()
    }

    /// Begins the window of `timeline`; `flows` connections must have come.
    pub(crate) fn begin(&self, flows: usize, timeline: &Timeline) -> Result<(), RpcError> {
        let arrived = self.server.connections();
        if self.transport == Transport::Tcp && arrived < flows {
            return Err(linerate_engine::FlowsMissing { path: self.path, arrived, expected: flows }.into());
        }
        // Read first: what counts must not lie before it.
        let begun = clock::now();
        self.server.observe(timeline);
        let _ = self.begun.set(begun);
        Ok(())
    }

    /// Returns the running counts of carried data.
    pub(crate) fn meter(&self) -> ServerMeter {
        self.server.meter()
    }

    /// Waits after the window of `timeline` until no more calls are to be expected, unless `stopped`.
    pub(crate) fn stay(&self, timeline: &Timeline, stopped: impl Fn() -> bool) {
        loop {
            let now = clock::now();
            let done = match self.transport {
                Transport::Tcp => self.server.connections() == 0,
                Transport::Udp => now > self.server.last_reply().max(timeline.close()) + QUIET_NS,
            };
            let done = done && !self.server.is_in_use();
            if stopped() || (now > timeline.close() && done) || now > timeline.close() + self.stay_ns {
                return;
            }
            clock::sleep_until(now + TICK_NS / 5);
        }
    }

    /// Returns this end's counts.
    pub(crate) fn counts(&self, job: &Job, timeline: &Timeline) -> EndCounts {
        // A host that hears of the start when the window is open counts the rest of it.
        let begun = self.begun.get().copied().unwrap_or_default().max(timeline.open());
        let remaining = Nanos::new(timeline.close().saturating_sub(begun));
        let window = if remaining == Nanos::default() { timeline.measure() } else { remaining };
        let mut result = EndCounts {
            path: self.path,
            interface: interface_of(self.address().ip().to_canonical()),
            service: Some(self.server.service()),
            ..EndCounts::default()
        };
        let (Some(moved), Task::Rpc(spec)) = (self.server.moved(), &job.task) else { return result };
        let io_method = "calls".to_owned();
        if spec.call.carries_there() {
            result.received = Some(Received {
                window,
                payload_bytes: moved.received_bytes,
                messages: moved.received_calls,
                arrived: moved.received_calls,
                duplicates: moved.duplicates,
                io_method: io_method.clone(),
                ..Received::default()
            });
        }
        if spec.call.carries_back() {
            let payload_bytes = moved.sent_bytes;
            let messages = moved.sent_calls;
            result.sent = Some(Sent { window, payload_bytes, messages, io_method, ..Sent::default() });
        }
        result
    }
}
