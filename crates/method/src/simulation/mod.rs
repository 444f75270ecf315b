//! A simulated network of planted properties, and what the agents of its hosts would count in a trial.
//!
//! Nothing is drawn by chance and no time passes: the same trial always gives the same counts, so that what a method finds can
//! be held against what was planted. Loads are treated as fluids. Whoever runs methods in tests can use it (feature
//! `simulation`): at the level of trials by [`Network::attempt`], and at that of hosts by [`Network::counts`].

mod calls;
mod copies;
mod frames;
mod streams;
#[cfg(test)]
mod tests;

use crate::task::{Addresses, Joining, assign, join};
use linerate_model::{
    Assignment, CoreUse, Host, HostCounts, HostName, InterfaceCounters, IpVersion, Nic, Observation, PathLimit, Role,
    RoleCounts, RoleKind, SessionId, SessionKey, Task, ThreadUse, Transport, Trial, TrialResult,
};
use linerate_units::{BitRate, FrameRate, Nanos};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// The interface of each host.
const INTERFACE: &str = "eth0";
/// Share of the window that each engine thread, and with it a core, is busy: hosts never limit anything here.
const BUSY: f64 = 0.1;

/// What is planted. All hosts are alike, and have one path between any two of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Rate of the line, each way; preambles and gaps take their part of it.
    pub line: BitRate,
    /// MTU of the line, bytes.
    pub mtu: u32,
    /// Time there and back of the smallest packet on an idle path.
    pub round_trip: Nanos,
    /// Time that a packet waits in the path's queue while a stream fills the line.
    pub queue: Nanos,
    /// Share of the packets that the path loses at any load, 0 to 1.
    pub loss: f64,
    /// Payload that a host can hand over or take, bits per second.
    pub host: BitRate,
    /// The NFS server.
    pub server: Server,
    /// What raw frames pass through.
    pub device: Device,
    /// Raw frames a second that the sending ports reach, all streams together.
    pub tester: FrameRate,
    /// What keeps the sending ports from offering the loads that they are to; none if nothing does.
    pub shortfall: Option<Shortfall>,
    /// Bytes a second that the storage of a copy's destination takes.
    pub storage: u64,
}

/// An NFS server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// Operations that it works on at a time.
    pub workers: u32,
    /// Time for each.
    pub service: Nanos,
}

impl Server {
    /// Operations a second at the most; none limits nothing.
    pub fn capacity(self) -> Option<f64> {
        (self.service.get() > 0).then(|| f64::from(self.workers) / self.service.as_secs_f64())
    }
}

/// A tester that offers less than it is to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shortfall {
    /// Of loads above this many frames a second, all streams together.
    pub above: FrameRate,
    /// The share that it offers of them, 0 to 1.
    pub share: f64,
    /// Something holds it up, rather than that it is too slow.
    pub held_up: bool,
}

/// A device that forwards frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Frames a second that it forwards, all directions together.
    pub rate: FrameRate,
    /// Frames that its buffer holds.
    pub buffer: u64,
    /// Time that a frame takes through it where none waits.
    pub latency: Nanos,
    /// Time that it goes on losing everything after it was offered more than it forwards.
    pub recovery: Nanos,
}

impl Default for Network {
    /// A line of 1 Gbit/s that loses nothing, hosts, tester and storage that are faster, and a device of 100,000 frames/s.
    fn default() -> Self {
        Self {
            line: BitRate::per_second(1_000_000_000),
            mtu: 1_500,
            round_trip: Nanos::new(200_000),
            queue: Nanos::default(),
            loss: 0.0,
            host: BitRate::per_second(40_000_000_000),
            server: Server { workers: 1, service: Nanos::default() },
            device: Device {
                rate: FrameRate::per_second(100_000),
                buffer: 0,
                latency: Nanos::new(10_000),
                recovery: Nanos::default(),
            },
            tester: FrameRate::per_second(20_000_000),
            shortfall: None,
            storage: 4_000_000_000,
        }
    }
}

impl Network {
    /// Returns the host called `name` as its agent would describe it.
    pub fn host(&self, name: &str) -> Host {
        Host {
            name: name.into(),
            version: "0".into(),
            protocol: 0,
            system: "simulated".into(),
            cpu_model: "simulated".into(),
            cores: 4,
            core_groups: Vec::new(),
            memory_bytes: 1 << 30,
            boot_id: name.into(),
            congestion_controls: Vec::new(),
            nics: vec![Nic {
                name: INTERFACE.into(),
                driver: "simulated".into(),
                speed: Some(self.line),
                duplex: None,
                mtu: self.mtu,
                up: true,
                mac: String::new(),
                addresses: Vec::new(),
                offloads: BTreeMap::new(),
                qdisc: String::new(),
                driver_version: String::new(),
                firmware: String::new(),
                slot: None,
            }],
            data_addresses: Vec::new(),
            capabilities: Vec::new(),
        }
    }

    /// Returns what a host counts in a session, while the loads of `beside` run as well.
    pub fn counts(&self, assignment: &Assignment, beside: &[Task]) -> HostCounts {
        let roles: Vec<RoleCounts> = assignment.roles.iter().map(|role| self.role(role, assignment, beside)).collect();
        HostCounts {
            observation: self.observation(assignment, &roles),
            series: linerate_model::Series::default(),
            roles,
            started_unix_ns: 1_000,
            caveats: Vec::new(),
            remains: Vec::new(),
        }
    }

    /// Returns the result of an attempt at `trial`, as a runner would have it of these hosts.
    ///
    /// # Errors
    /// The trial cannot be shared out; the text says why.
    pub fn attempt(&self, trial: &Trial, attempt: u32) -> Result<TrialResult, String> {
        let loads = trial.loads.iter().enumerate().map(|(index, load)| {
            let others = trial.loads.iter().enumerate().filter(|(other, _)| *other != index);
            let beside: Vec<Task> = others.map(|(_, load)| load.task.clone()).collect();
            let assigned = assign(load, &Somewhere)?;
            let part = |(host, roles): (HostName, Vec<Role>)| {
                let assignment = Assignment {
                    id: SessionId(String::new()),
                    key: SessionKey([0; 16]),
                    task: assigned.load.task.clone(),
                    timing: assigned.load.timing,
                    roles,
                    password: None,
                    sampling: linerate_model::Sampling::default(),
                };
                (host, Ok(self.counts(&assignment, &beside)))
            };
            Ok::<_, String>(Joining {
                caveats: assigned.caveats,
                parts: assigned.parts.into_iter().map(part).collect(),
            })
        });
        join(trial, attempt, loads.collect::<Result<_, _>>()?)
    }

    /// Returns how long a session takes from its start to its end, or until it has sent all.
    pub fn time(&self, assignment: &Assignment) -> Nanos {
        match (&assignment.task, assignment.timing.window()) {
            (Task::Frames(task), _) => task.time,
            (Task::Copy(task), _) => self.copy_time(task),
            (_, window) => window.map_or(Nanos::default(), linerate_model::Window::longest),
        }
    }

    /// Returns the payload bits a second that the line carries in such messages.
    pub fn payload(&self, transport: Transport, ip: IpVersion, message_bytes: u64) -> f64 {
        PathLimit::payload_of(self.line, transport, ip, message_bytes, self.mtu).get() as f64
    }

    fn role(&self, role: &Role, assignment: &Assignment, beside: &[Task]) -> RoleCounts {
        let window = assignment.timing.window().unwrap_or_default().measure;
        match (&role.kind, &assignment.task) {
            (RoleKind::Client { path }, task) => RoleCounts::Flows(Box::new(match task {
                Task::Stream(task) => self.stream_end(task, *path, window, true),
                task => self.asking_end(task, *path, window, beside),
            })),
            (RoleKind::Server { path }, task) => RoleCounts::Flows(Box::new(match task {
                Task::Stream(task) => self.stream_end(task, *path, window, false),
                task => self.answering_end(task, *path, window, beside),
            })),
            (RoleKind::Ports { own, .. }, Task::Frames(task)) => RoleCounts::Frames(self.ports(own, task)),
            (kind, Task::Copy(task)) => RoleCounts::Copy(self.copier(kind, task)),
            (kind, task) => panic!("{} has no role {kind:?}", task.kind()),
        }
    }

    /// What the host saw: cores with time to spare, and its interface's counters.
    fn observation(&self, assignment: &Assignment, roles: &[RoleCounts]) -> Observation {
        let window = match (&assignment.task, assignment.timing.window()) {
            (Task::Frames(task), _) => task.time,
            (Task::Copy(task), _) => self.copy_time(task),
            (_, window) => window.unwrap_or_default().measure,
        };
        let share = |share: f64| Nanos::new((window.get() as f64 * share) as u64);
        let core = |core| CoreUse { core, user: share(BUSY), idle: share(1.0 - BUSY), ..CoreUse::default() };
        let thread =
            |sends| ThreadUse { name: "engine".into(), cpu: share(BUSY), waited: Some(Nanos::default()), sends };
        let mut carried = InterfaceCounters { name: INTERFACE.into(), ..InterfaceCounters::default() };
        for (out, back) in roles.iter().map(moved) {
            let packets = |bytes: u64| bytes.div_ceil(u64::from(self.mtu - TCP_HEADERS));
            (carried.tx_packets, carried.rx_packets) = (packets(out), packets(back));
            let frame = u64::from(TCP_HEADERS + ETHERNET);
            carried.tx_bytes += out + carried.tx_packets * frame;
            carried.rx_bytes += back + carried.rx_packets * frame;
        }
        Observation {
            window,
            cores: (0..4).map(core).collect(),
            threads: vec![thread(true), thread(false)],
            carried: vec![carried],
            ..Observation::default()
        }
    }
}

/// Header bytes of a TCP segment over IPv4, with timestamps.
const TCP_HEADERS: u32 = 52;
/// Header bytes of an Ethernet frame that an interface counts.
const ETHERNET: u32 = 14;

/// Payload bytes that a role sent and received.
fn moved(role: &RoleCounts) -> (u64, u64) {
    match role {
        RoleCounts::Flows(end) => (
            end.sent.as_ref().map_or(0, |sent| sent.payload_bytes),
            end.received.as_ref().map_or(0, |received| received.payload_bytes),
        ),
        RoleCounts::Copy(copied) => {
            let bytes = copied.sides.iter().map(|side| side.bytes).sum();
            (bytes, bytes)
        }
        RoleCounts::Frames(_) | RoleCounts::Hops(_) => (0, 0),
    }
}

/// Where nobody asks for addresses.
struct Somewhere;

impl Addresses for Somewhere {
    fn data_address(&self, _: &HostName, _: &HostName, _: IpVersion) -> Result<IpAddr, String> {
        Ok(Ipv4Addr::LOCALHOST.into())
    }

    fn host(&self, _: &HostName) -> Option<&Host> {
        None
    }
}
