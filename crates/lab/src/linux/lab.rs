//! A running lab: built, held and taken down by one thread.

use crate::LabError;
use crate::linux::agent::{Agent, end_all, scratch};
use crate::linux::bench::Bench;
use crate::linux::child_processes::ChildProcesses;
use crate::linux::cross;
use crate::linux::kept::{self, Kept, KeptAgent};
use crate::linux::open_vswitch::OpenVswitchWatch;
use crate::linux::path::{PathCounts, PathWatch};
use crate::linux::reference::ReferenceWatch;
use crate::linux::wiring::Wiring;
use crate::options::LabOptions;
use linerate_model::{AgentUrl, HostName};
use linerate_sys::process::{Placement, spawn};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// A running lab. It is taken down when dropped; if the program is killed, the kernel takes it down.
pub struct Lab {
    hosts: BTreeMap<HostName, AgentUrl>,
    wiring: Arc<Wiring>,
    kept: Option<Kept>,
    path: Option<Arc<PathWatch>>,
    open_vswitch: Option<Arc<OpenVswitchWatch>>,
    orders: Option<mpsc::Sender<Order>>,
    ended: Option<oneshot::Receiver<()>>,
    /// The thread that all processes of the lab are children of: they end with it.
    thread: Option<JoinHandle<()>>,
}

/// Orders to the lab's thread. It takes the lab down when no more orders can come.
enum Order {
    /// Start a program in a host.
    Run { host: HostName, command: Box<Command>, answer: mpsc::Sender<Result<Child, LabError>> },
    /// Leave everything as it is.
    Keep,
}

/// Result of building a lab.
struct Built {
    hosts: BTreeMap<HostName, AgentUrl>,
    wiring: Arc<Wiring>,
    kept: Option<Kept>,
    path: Option<PathWatch>,
    open_vswitch: Option<OpenVswitchWatch>,
}

impl Lab {
    /// Builds `bench` and starts an agent in each host.
    pub async fn up(bench: &Bench, options: &LabOptions) -> Result<Self, LabError> {
        bench.check()?;
        bench.check_programs()?;
        let (orders, to_do) = mpsc::channel();
        let (built, ready) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let bench = bench.clone();
        let options = options.clone();
        let thread = thread::Builder::new().name(String::from("lab")).spawn(move || {
            hold(&bench, &options, built, &to_do);
            let _ = end.send(());
        });
        let thread = thread
            .map_err(|error| LabError::at("start the lab's thread")(linerate_sys::Error::new("clone", "lab", error)))?;
        let Built { hosts, wiring, kept, path, open_vswitch } = ready.await.map_err(|_| LabError::Down)??;
        Ok(Self {
            hosts,
            wiring,
            kept,
            path: path.map(Arc::new),
            open_vswitch: open_vswitch.map(Arc::new),
            orders: Some(orders),
            ended: Some(ended),
            thread: Some(thread),
        })
    }

    /// Returns the agent URL of each host.
    pub fn hosts(&self) -> &BTreeMap<HostName, AgentUrl> {
        &self.hosts
    }

    /// Starts `command` in a host. It is killed when the lab comes down or is left to itself, if it still runs then.
    pub fn run_in(&self, host: &HostName, command: Command) -> Result<Child, LabError> {
        let (answer, child) = mpsc::channel();
        let order = Order::Run { host: host.clone(), command: Box::new(command), answer };
        self.orders.as_ref().ok_or(LabError::Down)?.send(order).map_err(|_| LabError::Down)?;
        child.recv().map_err(|_| LabError::Down)?
    }

    /// Runs `work` on a thread of its own in a host's network. Sockets that it opens stay in it.
    pub fn inside<T: Send>(&self, host: &HostName, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let host = self.wiring.host(host)?;
        host.namespace.enter(work).map_err(LabError::at(format!("enter host {}", host.name)))
    }

    /// Frames that planted faults have dropped so far, on the link of each host that has a fault.
    pub fn dropped(&self) -> Result<BTreeMap<HostName, u64>, LabError> {
        self.wiring.dropped()
    }

    /// Returns the path's counts since the lab was up, or `None` if the device is no path.
    ///
    /// # Errors
    ///
    /// Fails if the path's process has ended.
    pub fn path_counts(&self) -> Result<Option<PathCounts>, LabError> {
        self.path.as_ref().map(|path| path.counts()).transpose()
    }

    /// Returns the watch of the path between the hosts, or `None` if the device is no path.
    pub fn path(&self) -> Option<Arc<PathWatch>> {
        self.path.clone()
    }

    /// Returns the watch of the Open vSwitch between the hosts, or `None` if the device is another.
    pub fn open_vswitch(&self) -> Option<Arc<OpenVswitchWatch>> {
        self.open_vswitch.clone()
    }

    /// Returns the watch of the reference device between the hosts, or `None` if the device is another, or has no
    /// limits.
    pub fn reference(&self) -> Option<ReferenceWatch> {
        self.wiring.reference().map(ReferenceWatch::new)
    }

    /// Takes the lab down; returns when its agents are gone.
    pub async fn down(mut self) {
        self.orders = None;
        if let Some(ended) = self.ended.take() {
            // An error means that the thread has ended too.
            let _ = ended.await;
        }
    }

    /// Leaves the lab up when this program ends. It must have been built with [`LabOptions::keep`].
    pub fn keep(mut self) -> Result<Kept, LabError> {
        let kept = self.kept.take().ok_or(LabError::NotToKeep)?;
        self.orders.as_ref().ok_or(LabError::Down)?.send(Order::Keep).map_err(|_| LabError::Down)?;
        Ok(kept)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread itself; nothing is left to be taken down then.
            let _ = thread.join();
        }
    }
}

/// Builds a lab, says so, does what is asked, and takes it down.
fn hold(
    bench: &Bench,
    options: &LabOptions,
    built: oneshot::Sender<Result<Built, LabError>>,
    orders: &mpsc::Receiver<Order>,
) {
    let mut agents = Vec::new();
    let mut children = None;
    let up = build(bench, options, &mut agents, &mut children);
    let wiring = up.as_ref().ok().map(|up| Arc::clone(&up.wiring));
    let kept = up.as_ref().ok().and_then(|up| up.kept.clone());
    // If nobody waits any more, nobody can give orders either.
    let _ = built.send(up);
    if let Some(wiring) = wiring {
        for order in orders {
            match order {
                Order::Run { host, command, answer } => {
                    // The child is the asker's; if there is none left, it ends with this thread.
                    let _ = answer.send(run(&wiring, &host, *command));
                }
                Order::Keep => return,
            }
        }
    }
    end_all(agents);
    if let Some(children) = children {
        children.end();
    }
    if let Some(kept) = kept {
        // The agents it names are gone: if it stays, it is found to be stale.
        let _ = kept.forget();
    }
}

fn build(
    bench: &Bench,
    options: &LabOptions,
    agents: &mut Vec<Agent>,
    children: &mut Option<ChildProcesses>,
) -> Result<Built, LabError> {
    if options.keep {
        kept::none_yet()?;
    }
    let wiring = Wiring::build(bench)?;
    let children = children.insert(ChildProcesses::new(&options.program)?);
    // The device of a kept lab, and its child processes live as long as the agents hold them.
    let life = children.life()?;
    let path = wiring.path(bench).map(|(plan, device)| children.path(&plan, device)).transpose()?;
    let open_vswitch = wiring.open_vswitch(bench);
    let open_vswitch =
        open_vswitch.map(|(limits, core, device)| children.open_vswitch(&limits, core, device)).transpose()?;
    if let Some((pauses, device)) = wiring.pauses() {
        children.pauses(pauses, device)?;
    }
    for (plan, router) in wiring.slow_routers(bench)? {
        children.slow_router(&plan, router)?;
    }
    let held: Vec<_> =
        if options.keep { wiring.held().into_iter().chain([life.as_fd()]).collect() } else { Vec::new() };
    let folders: Vec<PathBuf> = options.folders.iter().cloned().chain([scratch()]).collect();
    for host in wiring.with_agent() {
        let disk = bench.slow_disk(&host.name).map(|disk| children.slow_disk(disk, &folders)).transpose()?;
        agents.push(Agent::start(host, bench.slow_server(&host.name), disk.as_ref(), options, &held)?);
    }
    drop(held);
    for (host, agent) in wiring.with_agent().zip(agents.iter()) {
        bench.plant_in_process(&host.name, children, agent.number())?;
    }
    let mut hosts = BTreeMap::new();
    for (host, agent) in wiring.with_agent().zip(agents.iter_mut()) {
        hosts.insert(host.name.clone(), agent.url(host)?);
    }
    // A device that delays does so by its agent, so only now.
    wiring.ring_through(bench)?;
    for traffic in &bench.cross_traffic {
        let [from, to] = [&traffic.from, &traffic.to].map(|name| wiring.host(name));
        cross::start(traffic, from?, to?, children)?;
    }
    let mut path = path;
    path.as_mut().map_or(Ok(()), PathWatch::begin)?;
    let kept = if options.keep {
        let kept = wiring.with_agent().zip(agents.iter()).filter_map(|(host, agent)| {
            let url = hosts.get(&host.name)?.clone();
            Some((host.name.clone(), KeptAgent::new(agent.process()?, url)))
        });
        Some(kept::save(&bench.name, kept.collect())?)
    } else {
        None
    };
    Ok(Built { hosts, wiring: Arc::new(wiring), kept, path, open_vswitch })
}

fn run(wiring: &Wiring, host: &HostName, mut command: Command) -> Result<Child, LabError> {
    let host = wiring.host(host)?;
    let placement = Placement { net: Some(host.namespace.as_fd()), ends_with_thread: true, ..Placement::default() };
    spawn(&mut command, &placement).map_err(LabError::at(format!("run a program in host {}", host.name)))
}
