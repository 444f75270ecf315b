//! The engine: from listening to counts.

use crate::accept::Acceptor;
use crate::connect;
use crate::error::StreamError;
use crate::flow::{Flow, Shared};
use crate::job::{Job, Load};
use crate::needs::needs;
use crate::running::Running;
use linerate_engine::{
    Conductor, Counted, Demand, Engine, EngineError, EngineFailure, ListenOptions, PathRates, Side, SocketError,
    bits_per_second,
};
use linerate_model::{Assignment, Direction, Endpoints, Offered, Ready, StreamTask, Task, TransactTask, Transport};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Time between the order to start and the start, for closing listeners and starting threads.
const LEAD: Nanos = Nanos::from_millis(20);
/// Additional time per flow, for setting up its socket.
const LEAD_FLOW: Nanos = Nanos::new(20_000);

/// The engine of bulk streams and transactions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Streams;

impl Engine for Streams {
    fn name(&self) -> &'static str {
        "streams"
    }

    fn takes(&self, task: &Task) -> bool {
        match task {
            Task::Stream(stream) => stream.is_between_agents(),
            task => matches!(task, Task::Transact(_)),
        }
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        let job = Job::check(assignment)?;
        let (rates, directions) = match &job.load {
            Load::Stream(task) => (stream_rates(task), if task.direction == Direction::Both { 2 } else { 1 }),
            Load::Transact(task) => (transact_rates(task), 1),
        };
        let flows = u64::from(job.net().flows) * directions;
        Ok(rates.demand(assignment, job.window, &job.ends, flows, needs(&job)))
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        Ok(run(assignment, host)?)
    }
}

fn run(assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, StreamError> {
    let job = Arc::new(Job::check(assignment)?);
    let acceptors = listen(&job, &host.listen_options())?;
    let local = acceptors.iter().map(|acceptor| (acceptor.link, acceptor.address)).collect();
    let servers = host.listening(local)?;
    let mut flows = connect(&job, &servers, host.stop().flag())?;
    let flow_count = job.flows(true) + job.flows(false);
    let lead = Nanos::new(LEAD.get() + LEAD_FLOW.get().saturating_mul(flow_count));
    let start = host.ready(Ready { lead, ..Ready::default() })?;
    for acceptor in acceptors {
        flows.extend(acceptor.finish(&job)?);
    }
    let job = Arc::into_inner(job).expect("the accepting threads have ended and dropped their references");
    let timeline = job.timeline(start);
    let shared = Shared::new(job, timeline.clone(), flows, host.listen_options().peers);
    let running = Running::spawn(shared.rate_limited(host.is_rate_limited()), host.stop())?;
    host.runs(running.work());
    Ok(Counted {
        roles: running.join()?,
        started_unix_ns: clock::unix_at(timeline.open()),
        caveats: Vec::new(),
        remains: Vec::new(),
    })
}

/// Listens for the session's flows at all ends that accept them.
fn listen(job: &Arc<Job>, listening: &ListenOptions) -> Result<Vec<Acceptor>, StreamError> {
    if job.transport() == Transport::Udp {
        let servers = job.ends.iter().filter(|end| !end.is_client());
        listening.check_ports(servers.map(|end| 1 + job.hellos(end.path).len()).sum())?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut acceptors = Vec::new();
    for (index, end) in job.ends.iter().enumerate() {
        if let Side::Server { link, address } = end.side {
            acceptors.push(Acceptor::listen(job, index, link, address, listening, &stop)?);
        }
    }
    Ok(acceptors)
}

/// Connects the flows of all ends that open them.
fn connect(job: &Job, servers: &Endpoints, stop: &AtomicBool) -> Result<Vec<Flow>, StreamError> {
    let mut flows = Vec::new();
    for (index, end) in job.ends.iter().enumerate() {
        let Side::Client { link } = end.side else { continue };
        let path = end.path;
        let Some(server) = link.and_then(|link| servers.get(&link)) else {
            let text = format!("path {path}: no server was given to connect to");
            return Err(SocketError::InvalidRequest(text).into());
        };
        flows.extend(connect::open(job, index, path, *server, stop)?);
    }
    Ok(flows)
}

fn stream_rates(task: &StreamTask) -> PathRates {
    let rate = task.offered.map(|offered| match offered {
        Offered::PayloadBps(rate) => rate.get(),
        Offered::MessagesPerS(rate) => bits_per_second(rate.get(), task.message_bytes.get()),
    });
    let (forward, backward) = match task.direction {
        Direction::Send => (rate, Some(0)),
        Direction::Receive => (Some(0), rate),
        Direction::Both => (rate, rate),
    };
    PathRates { forward, backward }
}

/// Returns the highest rates of transactions. The larger of the two messages counts both ways, because servers are not
/// paced.
fn transact_rates(task: &TransactTask) -> PathRates {
    let bytes = task.request_bytes.max(task.response_bytes).get();
    let rate = task.rate.map(|rate| bits_per_second(rate.get(), bytes));
    PathRates { forward: rate, backward: rate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_engine::testing::assignment;
    use linerate_model::{LinkId, Listen, Net, Path, Role, RoleKind, Timing, TransactStyle, Transport};
    use linerate_units::{BitRate, ByteCount, FrameRate, OpRate};
    use std::net::Ipv4Addr;

    fn client(path: u16) -> Role {
        Role { kind: RoleKind::Client { path }, listens: Vec::new(), connects: vec![LinkId(path)] }
    }

    fn server(path: u16) -> Role {
        let listen = Listen { link: LinkId(path), address: Ipv4Addr::LOCALHOST.into(), folder: None };
        Role { kind: RoleKind::Server { path }, listens: vec![listen], connects: Vec::new() }
    }

    fn demand(task: Task, roles: &[Role]) -> Demand {
        let timing = Timing::of(Nanos::from_secs(1), Nanos::from_secs(10));
        let assignment = assignment(task, timing, roles.to_vec());
        Streams.demand(&assignment).expect("it can be meant")
    }

    /// Returns the bits per second that the host sends and receives.
    fn rates(task: Task, roles: &[Role]) -> (Option<u64>, Option<u64>) {
        let demand = demand(task, roles);
        (demand.sends.map(BitRate::get), demand.receives.map(BitRate::get))
    }

    /// Returns a UDP stream of 8 Mbit/s over three paths.
    fn stream() -> StreamTask {
        StreamTask {
            paths: ["a", "b", "c"].map(|client| Path::between(client, "receiver")).into(),
            offered: Some(Offered::PayloadBps(BitRate::per_second(8_000_000))),
            ..StreamTask::plain(Transport::Udp, ByteCount::new(1_000))
        }
    }

    #[test]
    fn stream_rate_applies_to_its_direction() {
        let eight = Some(8_000_000);
        for (role, direction, expected) in [
            (client(0), Direction::Send, (eight, Some(0))),
            (client(0), Direction::Receive, (Some(0), eight)),
            (client(0), Direction::Both, (eight, eight)),
            (server(0), Direction::Send, (Some(0), eight)),
            (server(0), Direction::Receive, (eight, Some(0))),
        ] {
            let task = Task::Stream(StreamTask { direction, ..stream() });
            assert_eq!(rates(task, std::slice::from_ref(&role)), expected, "{role:?} {direction:?}");
        }
        let offered = Some(Offered::MessagesPerS(FrameRate::per_second(1_000)));
        let task = Task::Stream(StreamTask { offered, ..stream() });
        assert_eq!(rates(task, &[server(0), server(1), server(2)]), (Some(0), Some(3 * 1_000 * 1_000 * 8)));
        // A server that only receives, at full speed, sends nothing all the same.
        let task = Task::Stream(StreamTask { offered: None, ..stream() });
        assert_eq!(rates(task, &[server(0)]), (Some(0), None));
        let highest = linerate_engine::MOST_BITS_PER_SECOND;
        let offered = Some(Offered::PayloadBps(BitRate::per_second(highest)));
        let roles = vec![client(0); 200_000];
        assert_eq!(
            rates(Task::Stream(StreamTask { offered, ..stream() }), &roles).0,
            Some(u64::MAX),
            "it does not wrap"
        );
    }

    /// Attack: unauthenticated peers connect to every listener and use up descriptors that the agent has granted to
    /// sessions.
    #[test]
    fn listening_end_reserves_descriptors_for_unauthenticated_peers() {
        let net = Net { flows: 4, ..Net::plain(Transport::Tcp) };
        let stream = Task::Stream(StreamTask { paths: vec![Path::between("a", "b")], net, ..stream() });
        for (task, flow_descriptors, peer_descriptors) in [
            (stream, 8, 256),
            (transactions(TransactStyle::Persistent, 4), 4, 256),
            (transactions(TransactStyle::Connect, 4), 8, 2 * 4 + 256),
            (transactions(TransactStyle::Connect, 300), 600, 4 * 300),
        ] {
            let client = demand(task.clone(), &[client(0)]).needs;
            assert_eq!(client.descriptors, flow_descriptors, "{task:?}");
            let server = demand(task.clone(), &[server(0)]).needs;
            assert_eq!(server.descriptors, flow_descriptors + 1 + peer_descriptors, "{task:?}");
        }
    }

    /// Returns a task of transactions over TCP on one path.
    fn transactions(style: TransactStyle, flows: u16) -> Task {
        let net = Net { flows, ..Net::plain(Transport::Tcp) };
        let paths = vec![Path::between("a", "b")];
        Task::Transact(TransactTask { paths, style, net, ..TransactTask::plain(Transport::Tcp) })
    }

    /// One thread and buffers per flow would take gigabytes.
    #[test]
    fn many_flows_of_a_stream_need_few_threads_and_little_memory() {
        let cores = std::thread::available_parallelism().expect("a number of cores").get() as u64;
        for (transport, descriptors) in [(Transport::Tcp, 4_096), (Transport::Udp, 2 * 4_096)] {
            let net = Net { flows: Net::MOST_FLOWS, ..Net::plain(transport) };
            let message_bytes = ByteCount::new(128 << 10).min(ByteCount::new(StreamTask::UDP_MAXIMUM));
            let paths = vec![Path::between("a", "b")];
            let task = Task::Stream(StreamTask { paths, net, message_bytes, ..stream() });
            for role in [client(0), server(0)] {
                let needs = demand(task.clone(), &[role]).needs;
                assert!(needs.threads <= cores + 1, "{needs:?}");
                assert!(needs.memory <= (64 << 20) + cores * (2 << 20), "{needs:?}");
                assert!(needs.descriptors <= descriptors + 2 * cores + 258, "{needs:?}");
            }
        }
        let [few, many] = [1_024, 4_096].map(|flows| {
            let net = Net { flows, ..Net::plain(Transport::Tcp) };
            demand(Task::Stream(StreamTask { net, ..stream() }), &[client(0)]).set_up
        });
        assert_eq!(few, Nanos::default());
        assert!(many > Nanos::from_secs(30), "128 times the time that 32 connections take");
    }

    #[test]
    fn transactions_load_both_ways() {
        let closed_loop = TransactTask {
            paths: vec![Path::between("a", "b")],
            request_bytes: ByteCount::new(100),
            response_bytes: ByteCount::new(1_000),
            ..TransactTask::plain(Transport::Tcp)
        };
        let paced = TransactTask { rate: Some(OpRate::per_second(10)), ..closed_loop.clone() };
        for role in [client(0), server(0)] {
            let both_ways = (Some(80_000), Some(80_000));
            assert_eq!(rates(Task::Transact(paced.clone()), std::slice::from_ref(&role)), both_ways);
            assert_eq!(rates(Task::Transact(closed_loop.clone()), &[role]), (None, None), "a closed loop has no rate");
        }
    }

    #[test]
    fn demand_includes_time_and_flows() {
        let net = Net { flows: 4, ..Net::plain(Transport::Udp) };
        let task = StreamTask { net, direction: Direction::Both, ..stream() };
        let demand = demand(Task::Stream(task), &[server(0), client(1), server(2)]);
        assert_eq!((demand.time, demand.set_up), (Some(Nanos::from_secs(11)), Nanos::default()));
        assert_eq!(demand.flows, 24, "four each way, of three ends");
    }
}
