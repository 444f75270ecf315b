//! Sessions of calls, from listening to counts: the same for every protocol over ONC RPC.

use crate::client::Caller;
use crate::error::RpcError;
use crate::flow::{Flow, Shared, open};
use crate::job::Job;
use crate::load::{Calls, Load, most_under_way};
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

/// From hearing of the start to the start: time to start the threads.
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
        let (over, most) = match task.net.transport {
            Transport::Tcp => ("TCP", RpcTask::TCP_MAXIMUM),
            Transport::Udp => ("UDP", RpcTask::UDP_MAXIMUM),
        };
        let unit = task.unit_bytes.get();
        if unit > most {
            return Err(RpcError::InvalidRequest(format!("a unit of {unit} bytes over {over}: choose at most {most}")));
        }
        Ok(())
    }

    fn rates(&self, job: &Job) -> Result<PathRates, RpcError> {
        let task = Self::task(&job.task)?;
        let rate = task.rate.map(|rate| bits_per_second(rate.get(), task.unit_bytes.get()));
        let way = |carries| if carries { rate } else { Some(0) };
        Ok(PathRates { forward: way(task.call.carries_there()), backward: way(task.call.carries_back()) })
    }

    fn needs(&self, job: &Job) -> Result<Needs, RpcError> {
        let task = Self::task(&job.task)?;
        // A server keeps the units that it answers with.
        let units = RpcTask::TCP_MAXIMUM.saturating_mul(job.servers());
        // What waits to be sent may be kept twice over, sent and not sent, in a buffer that grows by doubling.
        let needs = calls_need(job, task.unit_bytes.get().saturating_mul(4), most_under_way(task));
        Ok(Needs { powers: Power::Rpc.into(), memory: needs.memory.saturating_add(units), ..needs })
    }

    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError> {
        Ok(Arc::new(Calls::new(Self::task(&job.task)?, opening.key, opening.server()?)))
    }

    fn programs(&self, _: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError> {
        Ok(vec![Arc::new(TestProgram::new())])
    }
}

/// Returns what `assignment` asks of its host, in whose task calls speak `protocol`.
///
/// # Errors
/// The assignment cannot be meant.
pub fn demand(protocol: &dyn Protocol, assignment: &Assignment) -> Result<Demand, EngineError> {
    let job = Job::check(assignment, protocol)?;
    let (flows, needs) = (job.net().flows.into(), protocol.needs(&job)?);
    Ok(protocol.rates(&job)?.demand(assignment, job.window, &job.ends, flows, needs))
}

/// Does `assignment`, in whose task calls speak `protocol`, from listening to counts.
///
/// # Errors
/// The task could not be done, or the session was stopped.
pub fn run(protocol: &dyn Protocol, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
    let job = Job::check(assignment, protocol)?;
    let servers = serve(&job, protocol, &host.listen_options())?;
    let here = servers.iter().map(|server| (server.link, server.address())).collect();
    let there = host.listening(here)?;
    let mut loads = Loads::default();
    let worked = work(&job, protocol, host, &there, &servers, &mut loads);
    // Where it failed or was stopped, they are not finished yet.
    loads.finish();
    let remains = std::mem::take(&mut loads.remains);
    match worked {
        Ok((roles, opens)) => {
            Ok(Counted { roles, started_unix_ns: clock::unix_at(opens), caveats: Vec::new(), remains })
        }
        Err(error) => {
            let failure = EngineFailure::from(error);
            Err(EngineFailure { remains: failure.remains.into_iter().chain(remains).collect(), ..failure })
        }
    }
}

/// Starts the servers of this host's ends. They carry data for nobody but the session.
fn serve(job: &Job, protocol: &dyn Protocol, listening: &ListenOptions) -> Result<Vec<RunningServer>, RpcError> {
    let servers = job.ends.iter().enumerate().filter_map(|(index, end)| match end.side {
        Side::Server { link, address } => Some(RunningServer::start(job, protocol, index, (link, address), listening)),
        Side::Client { .. } => None,
    });
    servers.collect()
}

/// Connects, waits for the start and the end of the load, and counts.
fn work(
    job: &Job,
    protocol: &dyn Protocol,
    host: &dyn Conductor,
    there: &Endpoints,
    servers: &[RunningServer],
    loads: &mut Loads,
) -> Result<(Vec<RoleCounts>, u64), RpcError> {
    let (flows, callers) = connect(job, protocol, host, there, loads)?;
    let start = host.ready(Ready { lead: LEAD, ..Ready::default() })?;
    let timeline = job.timeline(start);
    for server in servers {
        server.begin(job.net().flows.into(), &timeline)?;
    }
    let shared = Shared { rate_limited: host.is_rate_limited(), ..Shared::new(job.clone(), timeline.clone(), flows) };
    let mut running = Running::spawn(shared, callers, servers, host.stop())?;
    host.runs(running.work());
    let outcomes = running.wait();
    // Servers stay until their callers have removed what they made.
    loads.finish();
    Ok((running.counts(&outcomes)?, timeline.open()))
}

/// Makes what the calls of this host's clients need on their servers, and connects their flows.
fn connect(
    job: &Job,
    protocol: &dyn Protocol,
    host: &dyn Conductor,
    there: &Endpoints,
    loads: &mut Loads,
) -> Result<(Vec<Flow>, Vec<Caller>), RpcError> {
    let (mut flows, mut callers) = (Vec::new(), Vec::new());
    for (index, end) in job.ends.iter().enumerate() {
        let Side::Client { link } = end.side else { continue };
        let server = link.and_then(|link| there.get(&link)).copied();
        let load = protocol.load(job, &Opening { path: end.path, key: end.key(&job.key), server, host })?;
        loads.unfinished.push(Arc::clone(&load));
        for number in 0..job.net().flows {
            let (mut caller, local) = open(job, load.server(), host.stop())?;
            let credential = load.greet(&mut caller)?;
            flows.push(Flow { end: index, path: end.path, number, local, credential, load: Arc::clone(&load) });
            callers.push(caller);
        }
    }
    Ok((flows, callers))
}

/// The loads of a session, and what they left on their servers. All are finished, also after a panic.
#[derive(Default)]
struct Loads {
    unfinished: Vec<Arc<dyn Load>>,
    remains: Vec<String>,
}

impl Loads {
    /// Removes what the loads made. Counts stand all the same where something cannot be removed.
    fn finish(&mut self) {
        let finished = self.unfinished.drain(..).map(|load| load.finish());
        self.remains.extend(finished.filter_map(|finished| Some(finished.err()?.to_string())));
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
    fn calls_load_the_ways_that_carry_data() {
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
            let demand = OncRpc.demand(&assignment).expect("it can be meant");
            let rates = (demand.sends.map(BitRate::get), demand.receives.map(BitRate::get));
            assert_eq!(rates, expected, "{call}");
            assert_eq!((demand.time, demand.flows), (Some(Nanos::from_secs(11)), 1));
        }
    }
}
