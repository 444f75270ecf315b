//! Agents within this process, on hosts of a simulated network. They follow a script, take simulated time, refuse orders that a
//! real agent would refuse, and note all that is ordered of them.

mod act;
mod garbage;
mod session;

pub(super) use act::{Act, Moment, Step, Told};
pub(super) use garbage::Garbage;

use crate::{Agents, OpenSession, RunError};
use futures_util::future::BoxFuture;
use linerate_control::AgentError;
use linerate_method::Addresses;
use linerate_method::simulation::Network;
use linerate_model::{Assignment, ClockExchange, Host, HostCounts, HostName, IpVersion, SessionId, Task};
use linerate_units::Nanos;
use session::FakeSession;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// An agent that does not answer a request is given up after this, as the client of the agents' API does.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// An agent without news is given up after this, as that client does.
pub(super) const SILENCE: Duration = Duration::from_secs(15);

/// Decides what happens at a moment.
type Script = dyn Fn(&Moment<'_>) -> Act + Send + Sync;

/// What a load has done after so many seconds: bytes received, and operations.
type Course = dyn Fn(f64) -> u64 + Send + Sync;

/// All agents of a run.
pub(super) struct FakeAgents {
    world: Arc<World>,
}

/// What all sessions share.
struct World {
    network: Network,
    hosts: Vec<Host>,
    script: Box<Script>,
    cancel: watch::Sender<bool>,
    log: Mutex<Vec<Entry>>,
    opened: Mutex<Vec<Opened>>,
    began: Instant,
    exchanges: Mutex<Vec<Exchange>>,
    /// None tells no progress.
    course: Option<Box<Course>>,
    windows: Mutex<Vec<FakeWindow>>,
    /// Counts of sessions that are done, by their names.
    kept: Mutex<BTreeMap<SessionId, HostCounts>>,
    /// Names of sessions that another runner closed.
    closed: Mutex<Vec<SessionId>>,
}

/// The window of a session whose warm-up ended when it was ordered to.
#[derive(Debug, Clone)]
pub(super) struct FakeWindow {
    pub(super) id: String,
    /// From the start of the load to the opening.
    pub(super) warm_up: Duration,
    pub(super) opened: Instant,
}

impl FakeWindow {
    /// The part of the session's name that all sessions of an attempt share.
    pub(super) fn attempt(&self) -> &str {
        attempt_of(&self.id)
    }
}

/// A host was asked for its clock.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) host: HostName,
    /// How many entries the log had.
    pub(super) entries: usize,
}

/// What was told by a session, or ordered of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The session's name.
    pub(super) id: String,
    pub(super) host: HostName,
    /// It connects to others.
    pub(super) client: bool,
    pub(super) told: Told,
}

impl Entry {
    /// The part of the name that all sessions of an attempt share.
    pub(super) fn attempt(&self) -> &str {
        attempt_of(&self.id)
    }
}

/// The load that a session takes part in.
struct Opened {
    id: String,
    task: Task,
}

/// A session's name is that of its attempt, the number of its load, and its number in that.
fn attempt_of(id: &str) -> &str {
    load_of(load_of(id))
}

fn load_of(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(load, _)| load)
}

impl FakeAgents {
    /// Agents `names` on a usual network, on which all goes well.
    pub(super) fn new(names: &[&str]) -> Self {
        Self::on(Network::default(), names)
    }

    /// Agents `names` on `network`, on which all goes well.
    pub(super) fn on(network: Network, names: &[&str]) -> Self {
        let world = World {
            hosts: names.iter().map(|name| network.host(name)).collect(),
            network,
            script: Box::new(|_| Act::Pass),
            cancel: watch::channel(false).0,
            log: Mutex::default(),
            opened: Mutex::default(),
            began: Instant::now(),
            exchanges: Mutex::default(),
            course: Some(Box::new(|seconds| (seconds * 1e8) as u64)),
            windows: Mutex::default(),
            kept: Mutex::default(),
            closed: Mutex::default(),
        };
        Self { world: Arc::new(world) }
    }

    /// The same, to which happens what `script` says.
    pub(super) fn script(mut self, script: impl Fn(&Moment<'_>) -> Act + Send + Sync + 'static) -> Self {
        Arc::get_mut(&mut self.world).expect("nothing is open yet").script = Box::new(script);
        self
    }

    /// The same, whose loads do what `course` says; none tells no progress.
    pub(super) fn course(mut self, course: Option<Box<Course>>) -> Self {
        Arc::get_mut(&mut self.world).expect("nothing is open yet").course = course;
        self
    }

    /// The windows that were ordered open, in order.
    pub(super) fn windows(&self) -> Vec<FakeWindow> {
        self.world.windows.lock().expect("no holder panics").clone()
    }

    /// What turns true when the user presses Ctrl-C.
    pub(super) fn cancel(&self) -> watch::Receiver<bool> {
        self.world.cancel.subscribe()
    }

    /// Presses Ctrl-C.
    pub(super) fn interrupt(&self) {
        self.world.cancel.send_replace(true);
    }

    /// Everything that was told and ordered, in order.
    pub(super) fn log(&self) -> Vec<Entry> {
        self.world.log().clone()
    }

    /// Drops the kept counts of one session.
    pub(super) fn drop_kept(&self, id: &str) {
        self.world.kept.lock().expect("no holder panics").remove(&SessionId(id.to_owned()));
    }

    /// Names of sessions that a runner closed without having opened them.
    pub(super) fn closed(&self) -> Vec<SessionId> {
        self.world.closed.lock().expect("no holder panics").clone()
    }

    /// Whenever a host was asked for its clock, in order.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.world.exchanges.lock().expect("no holder panics").clone()
    }

    /// How far the clock of the host of this number is ahead of the runner's.
    pub(super) fn clock_offset(place: usize) -> i64 {
        (place as i64 + 1) * 1_000_000_007
    }

    /// The same, attempt by attempt.
    pub(super) fn attempts(&self) -> Vec<Vec<Entry>> {
        let mut attempts: Vec<Vec<Entry>> = Vec::new();
        for entry in self.log() {
            match attempts.iter_mut().find(|attempt| attempt[0].attempt() == entry.attempt()) {
                Some(attempt) => attempt.push(entry),
                None => attempts.push(vec![entry]),
            }
        }
        attempts
    }
}

impl World {
    fn log(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.log.lock().expect("no holder panics")
    }

    /// An exchange of times with the host of this number, which takes no simulated time.
    fn exchange(&self, place: usize) -> ClockExchange {
        let origin_ns = self.began.elapsed().as_nanos() as u64;
        let there = self.network.round_trip.get() / 2;
        let receive_ns = (origin_ns + there).wrapping_add_signed(FakeAgents::clock_offset(place));
        ClockExchange {
            origin_ns,
            receive_ns,
            transmit_ns: receive_ns + 10,
            destination_ns: origin_ns + 2 * there + 10,
        }
    }

    /// Notes a session that is being opened. Returns the number of the attempt that it belongs to.
    fn opens(&self, assignment: &Assignment) -> usize {
        let mut opened = self.opened.lock().expect("no holder panics");
        opened.push(Opened { id: assignment.id.0.clone(), task: assignment.task.clone() });
        let mut attempts: Vec<&str> = Vec::new();
        for session in opened.iter() {
            let attempt = attempt_of(&session.id);
            if !attempts.contains(&attempt) {
                attempts.push(attempt);
            }
        }
        attempts.len() - 1
    }

    /// The tasks of the loads that run beside that of a session.
    fn beside(&self, id: &str) -> Vec<Task> {
        let opened = self.opened.lock().expect("no holder panics");
        let mut loads = vec![load_of(id)];
        let mut tasks = Vec::new();
        for other in opened.iter().filter(|other| attempt_of(&other.id) == attempt_of(id)) {
            if !loads.contains(&load_of(&other.id)) {
                loads.push(load_of(&other.id));
                tasks.push(other.task.clone());
            }
        }
        tasks
    }
}

impl Addresses for FakeAgents {
    fn data_address(&self, listener: &HostName, _: &HostName, _: IpVersion) -> Result<IpAddr, String> {
        let at = self.world.hosts.iter().position(|host| host.name == *listener);
        let last = at.and_then(|at| u8::try_from(at + 1).ok()).ok_or_else(|| format!("no host {listener}"))?;
        Ok(Ipv4Addr::new(198, 18, 0, last).into())
    }

    fn host(&self, name: &HostName) -> Option<&Host> {
        self.world.hosts.iter().find(|host| host.name == *name)
    }
}

impl Agents for FakeAgents {
    fn hosts(&self) -> Vec<Host> {
        self.world.hosts.clone()
    }

    fn round_trip(&self, _: &HostName) -> Nanos {
        self.world.network.round_trip
    }

    fn clock<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, Result<ClockExchange, RunError>> {
        Box::pin(async move {
            let place = self.world.hosts.iter().position(|known| known.name == *host);
            let place = place.ok_or_else(|| RunError::UnknownHost(host.clone()))?;
            let asked = Exchange { host: host.clone(), entries: self.world.log().len() };
            self.world.exchanges.lock().expect("no holder panics").push(asked);
            let attempt = self.attempts().len();
            match (self.world.script)(&Moment { attempt, host, step: Step::Clock }) {
                Act::Silence => std::future::pending().await,
                Act::Delay(time) => tokio::time::sleep(time).await,
                Act::Pass => {}
                _ => {
                    let message = String::from("as the script has it");
                    let source = AgentError::Failed { address: host.to_string(), message };
                    return Err(RunError::Agent { host: host.clone(), source });
                }
            }
            Ok(self.world.exchange(place))
        })
    }

    fn open<'a>(
        &'a self,
        host: &'a HostName,
        assignment: &'a Assignment,
    ) -> BoxFuture<'a, Result<Box<dyn OpenSession>, RunError>> {
        Box::pin(async move {
            let place = self.world.hosts.iter().position(|known| known.name == *host);
            let place = place.ok_or_else(|| RunError::UnknownHost(host.clone()))?;
            let attempt = self.world.opens(assignment);
            let session = FakeSession::new(Arc::clone(&self.world), host, place, attempt, assignment);
            let failed = |source: AgentError| RunError::Agent { host: host.clone(), source };
            Ok(Box::new(session.open().await.map_err(failed)?) as Box<dyn OpenSession>)
        })
    }

    fn kept_counts<'a>(&'a self, _: &'a HostName, id: &'a SessionId) -> BoxFuture<'a, Option<HostCounts>> {
        Box::pin(async move { self.world.kept.lock().expect("no holder panics").get(id).cloned() })
    }

    fn close<'a>(&'a self, _: &'a HostName, id: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.world.closed.lock().expect("no holder panics").push(id.clone()) })
    }
}
