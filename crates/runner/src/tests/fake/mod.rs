//! Agents within this process that follow a script, and note all that is ordered of them.

use super::counting;
use crate::{Agents, OpenSession, RunError};
use futures_util::future::BoxFuture;
use linerate_control::AgentError;
use linerate_method::Addresses;
use linerate_model::{
    Assignment, Endpoints, FailureKind, Host, HostCounts, HostName, IpVersion, Meter, Order, Ready, SessionFailure,
    Stage, TaskKind,
};
use linerate_units::Nanos;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{mpsc, watch};

/// The stages by name, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Open,
    Preparing,
    Listening,
    Ready,
    Running,
    Sent,
    Done,
    Counts,
}

impl Step {
    pub(super) const ALL: [Self; 8] = [
        Self::Open,
        Self::Preparing,
        Self::Listening,
        Self::Ready,
        Self::Running,
        Self::Sent,
        Self::Done,
        Self::Counts,
    ];
}

/// What happens when a session comes to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// It goes on.
    Pass,
    /// It fails, and says so.
    Fail,
    /// Its agent is lost.
    Lose,
    /// The user presses Ctrl-C, and the session never comes to the step.
    Interrupt,
}

/// What was told by a session, or ordered of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Reached(Step),
    Ordered(&'static str),
    Closed,
    Dropped,
}

/// Decides what happens to the session of a host, at a step of the so many-th attempt.
type Script = dyn Fn(usize, &HostName, Step) -> Act + Send + Sync;
/// What a host counts in the so many-th attempt.
type Counting = dyn Fn(usize, &HostName, &Assignment) -> HostCounts + Send + Sync;

/// All agents of a run.
pub(super) struct FakeAgents {
    world: Arc<World>,
}

struct World {
    hosts: Vec<Host>,
    script: Box<Script>,
    counting: Box<Counting>,
    cancel: watch::Sender<bool>,
    log: Mutex<Vec<(String, HostName, Told)>>,
    /// The attempts by the part of the sessions' names that they share.
    attempts: Mutex<Vec<String>>,
}

impl FakeAgents {
    /// Agents `names` on which all goes well.
    pub(super) fn new(names: &[&str]) -> Self {
        let world = World {
            hosts: names.iter().map(|name| host(name)).collect(),
            script: Box::new(|_, _, _| Act::Pass),
            counting: Box::new(|_, host, assignment| counting::counts(host, assignment)),
            cancel: watch::channel(false).0,
            log: Mutex::default(),
            attempts: Mutex::default(),
        };
        Self { world: Arc::new(world) }
    }

    pub(super) fn script(mut self, script: impl Fn(usize, &HostName, Step) -> Act + Send + Sync + 'static) -> Self {
        Arc::get_mut(&mut self.world).expect("nothing is open yet").script = Box::new(script);
        self
    }

    pub(super) fn counting(
        mut self,
        counting: impl Fn(usize, &HostName, &Assignment) -> HostCounts + Send + Sync + 'static,
    ) -> Self {
        Arc::get_mut(&mut self.world).expect("nothing is open yet").counting = Box::new(counting);
        self
    }

    /// What turns true when the user presses Ctrl-C.
    pub(super) fn cancel(&self) -> watch::Receiver<bool> {
        self.world.cancel.subscribe()
    }

    /// Everything that was told and ordered: the session's name, its host, what.
    pub(super) fn log(&self) -> Vec<(String, HostName, Told)> {
        self.world.log().clone()
    }
}

impl World {
    fn log(&self) -> MutexGuard<'_, Vec<(String, HostName, Told)>> {
        self.log.lock().expect("no holder panics")
    }

    /// The number of the attempt that a session belongs to.
    fn attempt(&self, id: &str) -> usize {
        let shared = id.split('-').next().unwrap_or_default();
        let mut attempts = self.attempts.lock().expect("no holder panics");
        attempts.iter().position(|known| known == shared).unwrap_or_else(|| {
            attempts.push(shared.to_owned());
            attempts.len() - 1
        })
    }
}

fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        version: "0".into(),
        protocol: 0,
        system: "fake".into(),
        cpu_model: "fake".into(),
        cores: 2,
        memory_bytes: 1 << 30,
        boot_id: name.into(),
        congestion_controls: Vec::new(),
        nics: Vec::new(),
        data_addresses: Vec::new(),
        capabilities: Vec::new(),
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
        Nanos::default()
    }

    fn open<'a>(
        &'a self,
        host: &'a HostName,
        assignment: &'a Assignment,
    ) -> BoxFuture<'a, Result<Box<dyn OpenSession>, RunError>> {
        Box::pin(async move {
            self.host(host).ok_or_else(|| RunError::UnknownHost(host.clone()))?;
            let (orders, ordered) = mpsc::unbounded_channel();
            let mut session = FakeSession {
                attempt: self.world.attempt(&assignment.id.0),
                world: Arc::clone(&self.world),
                host: host.clone(),
                assignment: assignment.clone(),
                next: Step::Preparing,
                orders,
                ordered,
            };
            session.come_to(Step::Open).await.map_err(|source| RunError::Agent { host: host.clone(), source })?;
            Ok(Box::new(session) as Box<dyn OpenSession>)
        })
    }
}

/// One session, at one agent.
struct FakeSession {
    world: Arc<World>,
    attempt: usize,
    host: HostName,
    assignment: Assignment,
    /// The step that comes next.
    next: Step,
    orders: mpsc::UnboundedSender<Order>,
    ordered: mpsc::UnboundedReceiver<Order>,
}

impl FakeSession {
    fn note(&self, told: Told) {
        self.world.log().push((self.assignment.id.0.clone(), self.host.clone(), told));
    }

    /// Comes to `step`, unless the script has it otherwise. Returns whether the session fails there.
    async fn come_to(&mut self, step: Step) -> Result<bool, AgentError> {
        let address = self.host.to_string();
        match (self.world.script)(self.attempt, &self.host, step) {
            Act::Pass => {
                self.note(Told::Reached(step));
                Ok(false)
            }
            Act::Fail if step == Step::Open || step == Step::Counts => {
                Err(AgentError::Refused { address, message: "as the script has it".into() })
            }
            Act::Fail => Ok(true),
            Act::Lose => Err(AgentError::Lost { address, task: "follow the script", reason: "as it has it".into() }),
            Act::Interrupt => {
                self.world.cancel.send_replace(true);
                std::future::pending().await
            }
        }
    }

    /// Waits for the order that comes before the next step.
    async fn wait_for_order(&mut self) {
        let waits = match self.next {
            Step::Ready | Step::Running => true,
            Step::Done => self.assignment.task.kind() == TaskKind::Frames,
            _ => false,
        };
        if waits && self.ordered.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for FakeSession {
    fn drop(&mut self) {
        self.note(Told::Dropped);
    }
}

impl OpenSession for FakeSession {
    fn stage(&mut self) -> BoxFuture<'_, Result<Stage, AgentError>> {
        Box::pin(async move {
            self.wait_for_order().await;
            let step = self.next;
            if self.come_to(step).await? {
                let failure = SessionFailure {
                    kind: FailureKind::Task,
                    message: "as the script has it".into(),
                    remains: Vec::new(),
                };
                return Ok(Stage::Failed(failure));
            }
            let drains = self.assignment.task.kind() == TaskKind::Frames;
            let (stage, next) = match step {
                Step::Open | Step::Preparing => (Stage::Preparing { doing: "what it needs".into() }, Step::Listening),
                Step::Listening => {
                    let endpoint = |at: usize, address| SocketAddr::new(address, 5000 + at as u16);
                    let links = self.assignment.listens().enumerate();
                    let endpoints: Endpoints =
                        links.map(|(at, listen)| (listen.link, endpoint(at, listen.address))).collect();
                    (Stage::Listening { endpoints }, Step::Ready)
                }
                Step::Ready => (Stage::Ready(Ready::default()), Step::Running),
                Step::Running => (Stage::Running(Meter::default()), if drains { Step::Sent } else { Step::Done }),
                Step::Sent => (Stage::Sent, Step::Done),
                Step::Done | Step::Counts => (Stage::Done, Step::Counts),
            };
            self.next = next;
            Ok(stage)
        })
    }

    fn order<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            self.note(Told::Ordered(match order {
                Order::Connect(_) => "connect",
                Order::Start { .. } => "start",
                Order::Drain => "drain",
            }));
            // The session itself holds the other end.
            let _ = self.orders.send(order.clone());
            Ok(())
        })
    }

    fn counts(&self) -> BoxFuture<'_, Result<HostCounts, AgentError>> {
        let act = (self.world.script)(self.attempt, &self.host, Step::Counts);
        let counts = (self.world.counting)(self.attempt, &self.host, &self.assignment);
        let (address, cancel) = (self.host.to_string(), self.world.cancel.clone());
        Box::pin(async move {
            match act {
                Act::Pass => Ok(counts),
                Act::Interrupt => {
                    cancel.send_replace(true);
                    std::future::pending().await
                }
                Act::Fail | Act::Lose => Err(AgentError::Lost {
                    address,
                    task: "hand over its counts",
                    reason: "as the script has it".into(),
                }),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        self.note(Told::Closed);
        Box::pin(async { Ok(Vec::new()) })
    }
}
