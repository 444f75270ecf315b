//! Runs a session of calls, from listening to counts, for any protocol over ONC RPC.

use crate::client::Caller;
use crate::connect::connect_flow;
use crate::error::RpcError;
use crate::job::Job;
use crate::load::{Calls, Flow, Load, LoadContext, max_outstanding};
use crate::needs::calls_need;
use crate::program::TestProgram;
use crate::protocol::{Opening, Protocol};
use crate::running::Running;
use crate::running_server::RunningServer;
use crate::server::Program;
use linerate_engine::{
    Conductor, Counted, Demand, Engine, EngineError, EngineFailure, ListenOptions, Needs, PathRates, Side,
    bits_per_second,
};
use linerate_model::{Assignment, Endpoints, Power, Ready, RoleCounts, RpcTask, Task, Transport};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::sync::Arc;

/// Time between the start order and the start, in which the threads are started.
const LEAD: Nanos = Nanos::from_millis(20);

/// The engine of ONC RPC calls of one size to linerate's own program.
#[derive(Debug, Clone, Copy, Default)]
pub struct OncRpc;

impl Engine for OncRpc {
    fn name(&self) -> &'static str {
        "oncrpc"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Rpc(_))
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        demand(self, assignment)
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        run(self, assignment, host)
    }
}

impl OncRpc {
    fn task(task: &Task) -> Result<&RpcTask, RpcError> {
        match task {
            Task::Rpc(task) => Ok(task),
            other => Err(RpcError::InvalidRequest(format!("task {} has an engine of its own", other.kind()))),
        }
    }
}

impl Protocol for OncRpc {
    fn check(&self, task: &Task) -> Result<(), RpcError> {
        let task = Self::task(task)?;
        let (transport, maximum) = match task.net.transport {
            Transport::Tcp => ("TCP", RpcTask::TCP_MAXIMUM),
            Transport::Udp => ("UDP", RpcTask::UDP_MAXIMUM),
        };
        let unit = task.unit_bytes.get();
        if unit > maximum {
            let text = format!("a unit of {unit} bytes over {transport}: choose at most {maximum}");
            return Err(RpcError::InvalidRequest(text));
        }
        Ok(())
    }

    fn rates(&self, job: &Job) -> Result<PathRates, RpcError> {
        let task = Self::task(&job.task)?;
        let rate = task.rate.map(|rate| bits_per_second(rate.get(), task.unit_bytes.get()));
        Ok(PathRates {
            forward: if task.call.carries_there() { rate } else { Some(0) },
            backward: if task.call.carries_back() { rate } else { Some(0) },
        })
    }

    fn needs(&self, job: &Job) -> Result<Needs, RpcError> {
        let task = Self::task(&job.task)?;
        // A server keeps the data of its replies.
        let units = RpcTask::TCP_MAXIMUM.saturating_mul(job.servers());
        // Queued data may be in memory twice, sent and unsent, in a buffer that grows by doubling.
        let needs = calls_need(job, task.unit_bytes.get().saturating_mul(4), max_outstanding(task));
        Ok(Needs { powers: Power::Rpc.into(), memory: needs.memory.saturating_add(units), ..needs })
    }

    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError> {
        Ok(Arc::new(Calls::new(Self::task(&job.task)?, opening.key, opening.server()?)))
    }

    fn programs(&self, _: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError> {
        Ok(vec![Arc::new(TestProgram::new())])
    }
}

/// Returns the demand of `assignment`, a load of calls of `protocol`, on its host.
///
/// # Errors
/// Fails if the assignment is not valid.
pub fn demand(protocol: &dyn Protocol, assignment: &Assignment) -> Result<Demand, EngineError> {
    let job = check(assignment, protocol)?;
    let needs = protocol.needs(&job)?;
    Ok(protocol.rates(&job)?.demand(assignment, job.window, &job.ends, job.net().flows.into(), needs))
}

/// Runs `assignment`, a load of calls of `protocol`, from listening to counts.
///
/// # Errors
/// The task could not be done, or the session was stopped.
pub fn run(protocol: &dyn Protocol, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
    let job = check(assignment, protocol)?;
    let servers = serve(&job, protocol, &host.listen_options())?;
    let local_endpoints = servers.iter().map(|server| (server.link, server.address())).collect();
    let remote_endpoints = host.listening(local_endpoints)?;
    let mut loads = Loads::default();
    let result = work(&job, protocol, host, &remote_endpoints, &servers, &mut loads);
    // After a failure or a stop, the loads are not finished yet.
    loads.finish();
    let remains = std::mem::take(&mut loads.remains);
    match result {
        Ok((roles, opens)) => {
            Ok(Counted { roles, started_unix_ns: clock::unix_at(opens), caveats: Vec::new(), remains })
        }
        Err(error) => {
            let failure = EngineFailure::from(error);
            Err(EngineFailure { remains: failure.remains.into_iter().chain(remains).collect(), ..failure })
        }
    }
}

/// Checks everything that can be checked without a peer.
fn check(assignment: &Assignment, protocol: &dyn Protocol) -> Result<Job, RpcError> {
    protocol.check(&assignment.task)?;
    Job::check(assignment)
}

/// Starts the servers of this host's ends. They carry data for the session only.
fn serve(job: &Job, protocol: &dyn Protocol, options: &ListenOptions) -> Result<Vec<RunningServer>, RpcError> {
    let mut servers = Vec::new();
    for (index, end) in job.ends.iter().enumerate() {
        if let Side::Server { link, address } = end.side {
            servers.push(RunningServer::start(job, protocol, index, (link, address), options)?);
        }
    }
    Ok(servers)
}

/// Connects, waits for the start and the end of the load, and counts.
fn work(
    job: &Job,
    protocol: &dyn Protocol,
    host: &dyn Conductor,
    remote_endpoints: &Endpoints,
    servers: &[RunningServer],
    loads: &mut Loads,
) -> Result<(Vec<RoleCounts>, u64), RpcError> {
    let (flows, callers) = connect(job, protocol, host, remote_endpoints, loads)?;
    let start = host.ready(Ready { lead: LEAD, ..Ready::default() })?;
    let timeline = job.timeline(start);
    for server in servers {
        server.begin(job.net().flows.into(), &timeline)?;
    }
    let mut context = LoadContext::new(job.clone(), timeline.clone(), flows);
    context.rate_limited = host.is_rate_limited();
    let mut running = Running::spawn(context, callers, servers, host.stop())?;
    host.runs(running.work());
    let outcomes = running.wait();
    // Servers stay until their callers have removed their files.
    loads.finish();
    Ok((running.counts(&outcomes)?, timeline.open()))
}

/// Prepares the loads of this host's clients on their servers, and connects their flows.
fn connect(
    job: &Job,
    protocol: &dyn Protocol,
    host: &dyn Conductor,
    remote_endpoints: &Endpoints,
    loads: &mut Loads,
) -> Result<(Vec<Flow>, Vec<Caller>), RpcError> {
    let mut flows = Vec::new();
    let mut callers = Vec::new();
    for (index, end) in job.ends.iter().enumerate() {
        let Side::Client { link } = end.side else { continue };
        let server = link.and_then(|link| remote_endpoints.get(&link)).copied();
        let load = protocol.load(job, &Opening { path: end.path, key: end.key(&job.key), server, host })?;
        loads.unfinished.push(Arc::clone(&load));
        for number in 0..job.net().flows {
            let (mut caller, local) = connect_flow(job, load.server(), host.stop())?;
            let credential = load.greet(&mut caller)?;
            flows.push(Flow { end: index, path: end.path, number, local, credential, load: Arc::clone(&load) });
            callers.push(caller);
        }
    }
    Ok((flows, callers))
}

/// Loads of a session, and the files that they left on their servers. Dropping it finishes them all.
#[derive(Default)]
struct Loads {
    unfinished: Vec<Arc<dyn Load>>,
    remains: Vec<String>,
}

impl Loads {
    /// Removes the files of the loads. A file that cannot be removed does not spoil the counts.
    fn finish(&mut self) {
        for load in self.unfinished.drain(..) {
            if let Err(error) = load.finish() {
                self.remains.push(error.to_string());
            }
        }
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{LinkId, Path, Role, RoleKind, RpcCall, SessionId, SessionKey, Timing};
    use linerate_units::{BitRate, ByteCount, OpRate};

    #[test]
    fn demand_covers_the_directions_that_carry_data() {
        let rate = Some(80_000);
        for (call, paced, expected) in [
            (RpcCall::Null, true, (Some(0), Some(0))),
            (RpcCall::Write, true, (rate, Some(0))),
            (RpcCall::Read, true, (Some(0), rate)),
            (RpcCall::Echo, true, (rate, rate)),
            (RpcCall::Write, false, (None, Some(0))),
        ] {
            let plain = RpcTask::plain(Transport::Tcp, call, ByteCount::new(1_000));
            let rate = paced.then_some(OpRate::per_second(10));
            let kind = RoleKind::Client { path: 0 };
            let assignment = Assignment {
                id: SessionId("t".into()),
                key: SessionKey([1; 16]),
                task: Task::Rpc(RpcTask { paths: vec![Path::between("a", "b")], rate, ..plain }),
                timing: Timing::of(Nanos::from_secs(1), Nanos::from_secs(10)),
                roles: vec![Role { kind, listens: Vec::new(), connects: vec![LinkId(0)] }],
                password: None,
                sampling: linerate_model::Sampling::default(),
            };
            let demand = OncRpc.demand(&assignment).expect("a valid assignment");
            let rates = (demand.sends.map(BitRate::get), demand.receives.map(BitRate::get));
            assert_eq!(rates, expected, "{call}");
            assert_eq!((demand.time, demand.flows), (Some(Nanos::from_secs(11)), 1));
        }
    }
}
