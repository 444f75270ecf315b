//! What an engine and an agent are to each other.
//!
//! An engine is one blocking function with waiting points: it listens, waits for its peers, becomes ready, waits for the start,
//! works, and returns what it counted. The agent decides when it goes on, watches the host meanwhile, and can stop it at any point.

use crate::{ListenOptions, Stop, Timeline};
use linerate_model::{Assignment, Caveat, Endpoints, Meter, Power, Powers, Readings, Ready, RoleCounts, Task};
use linerate_sys::thread::EngineThread;
use linerate_units::{BitRate, Nanos};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Does one task, or a few, on one host. What of the host it may use (folders, the service of an NFS server) it is given when
/// it is made.
pub trait Engine: Send + Sync {
    /// Its name in messages, as in `streams`.
    fn name(&self) -> &'static str;

    /// Whether it does `task`. Each task is done by exactly one engine.
    fn takes(&self, task: &Task) -> bool;

    /// What `assignment` asks of the host. It opens nothing: the agent weighs the demand against its limits first.
    ///
    /// # Errors
    /// The assignment cannot be meant: a rate of zero, more flows than ports, a role that the task does not have.
    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError>;

    /// Does the assignment, from listening to counts, on the calling thread and threads of its own. However it returns, nothing
    /// of it is left on the host but what `remains` names.
    ///
    /// # Errors
    /// The task could not be done, or it was stopped.
    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure>;
}

/// Leads an engine through its stages; implemented by the agent. Calls that wait return [`Stopped`] at once when the session is
/// stopped.
pub trait Conductor: Sync {
    /// Says what takes a while.
    fn preparing(&self, doing: &str);

    /// Says where this host's links are listened on, and waits for the addresses of the links it connects to. An engine that
    /// has no links passes an empty map.
    ///
    /// # Errors
    /// The session was stopped.
    fn listening(&self, here: Endpoints) -> Result<Endpoints, Stopped>;

    /// Says that the work could begin, and waits for the moment to begin, nanoseconds on the clock of
    /// [`linerate_sys::clock::now`]. Called again, it gives the same answer at once.
    ///
    /// # Errors
    /// The session was stopped.
    fn ready(&self, ready: Ready) -> Result<u64, Stopped>;

    /// Says that the work is under way. From now on meters are read for progress, and the host is watched in the window.
    fn runs(&self, work: Work);

    /// Says that all is sent, and waits until all hosts have sent. Only for tasks that need it.
    ///
    /// # Errors
    /// The session was stopped.
    fn sent(&self) -> Result<(), Stopped>;

    /// How this host's ends listen: for whom, and at which ports.
    fn listen_options(&self) -> ListenOptions {
        ListenOptions::default()
    }

    /// Whether a limit of rate binds the session. It then holds for what the engine does beforehand, too.
    fn is_rate_limited(&self) -> bool {
        false
    }

    /// The session's stop flag.
    fn stop(&self) -> &Arc<Stop>;
}

/// Work under way.
pub struct Work {
    /// When the load begins, nanoseconds on the clock of [`linerate_sys::clock::now`].
    pub start: u64,
    /// When it is measured; none is measured from now until the engine returns. Where the warm-up ends when the load is steady,
    /// the agent opens the window.
    pub window: Option<Timeline>,
    /// The threads that do it, whose CPU time is told apart.
    pub threads: Vec<EngineThread>,
    /// Device numbers of the disks in use.
    pub disks: Vec<u64>,
    /// Progress.
    pub meters: Arc<dyn Meters>,
}

/// Progress of work under way. Reading it must not slow the work: relaxed loads.
pub trait Meters: Send + Sync {
    /// What was done since the load began.
    fn read(&self) -> Meter;

    /// Adds what else is sampled to `readings`: TCP's own account, response times, how far a sender is behind.
    fn sample(&self, _readings: &mut Readings) {}

    /// Whether all threads have ended, as they do when a peer goes away before the window closes.
    fn has_ended(&self) -> bool {
        false
    }
}

/// What an engine counted.
#[derive(Debug)]
pub struct Counted {
    /// Each role's counts, in the order of the assignment's roles.
    pub roles: Vec<RoleCounts>,
    /// When the window opened or the first frame was sent, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Doubts.
    pub caveats: Vec<Caveat>,
    /// What could not be removed, and must be by hand.
    pub remains: Vec<String>,
}

/// The session was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session was stopped")]
pub struct Stopped;

/// Why an engine could not do its task.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// What failed, why, and what to do.
    pub message: String,
}

impl EngineError {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// How an engine ended without counts.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct EngineFailure {
    /// Why.
    pub error: FailedBy,
    /// What could not be removed, and must be by hand.
    pub remains: Vec<String>,
}

/// What ended an engine.
#[derive(Debug, thiserror::Error)]
pub enum FailedBy {
    /// The task.
    #[error(transparent)]
    Task(#[from] EngineError),
    /// The agent.
    #[error(transparent)]
    Stop(#[from] Stopped),
}

/// Error of an engine's work, which is either a failure of the task or a stop by the agent.
pub trait WorkError: std::error::Error + Sized {
    /// Returns whether the agent stopped the work.
    fn is_stop(&self) -> bool;

    /// Splits off descriptions of what the work left on the host and could not remove.
    fn split_remains(self) -> (Self, Vec<String>) {
        (self, Vec::new())
    }
}

impl<E: WorkError> From<E> for EngineError {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl<E: WorkError> From<E> for FailedBy {
    fn from(error: E) -> Self {
        if error.is_stop() { Self::Stop(Stopped) } else { Self::Task(error.into()) }
    }
}

impl<E: WorkError> From<E> for EngineFailure {
    fn from(error: E) -> Self {
        let (error, remains) = error.split_remains();
        Self { error: error.into(), remains }
    }
}

impl From<FailedBy> for EngineFailure {
    fn from(error: FailedBy) -> Self {
        Self { error, remains: Vec::new() }
    }
}

impl From<EngineError> for EngineFailure {
    fn from(error: EngineError) -> Self {
        FailedBy::from(error).into()
    }
}

impl From<Stopped> for EngineFailure {
    fn from(stopped: Stopped) -> Self {
        FailedBy::from(stopped).into()
    }
}

/// What a session asks of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Payload (frames: bits of frames) it sends per second at the most; none has no bound.
    pub sends: Option<BitRate>,
    /// What it receives per second at the most; none has no bound.
    pub receives: Option<BitRate>,
    /// How long it runs, warm-up and settling included; none runs until it is done, and is ended at the agent's limit.
    pub time: Option<Nanos>,
    /// Connections or sockets on this host.
    pub flows: u64,
    /// What else it needs.
    pub needs: Needs,
    /// What only one session at a time may have, as in `raw frames`; none shares the host.
    pub exclusive: Option<&'static str>,
    /// Time beyond the usual that preparing, connecting, waiting for other hosts and removing may take.
    pub set_up: Nanos,
}

/// What a session needs of its host beyond rates, time and flows. The agent weighs it before any work begins: powers against
/// the credential, interfaces against its options, and the rest against what other sessions have left of its budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// What the credential must grant.
    pub powers: Powers,
    /// Interfaces that raw frames leave by or arrive at.
    pub interfaces: BTreeSet<String>,
    /// File servers of others that it reaches.
    pub servers: Vec<ForeignServer>,
    /// Whether it empties the caches of the host.
    pub cold_cache: bool,
    /// The most memory that it takes in this process, bytes; the kernel's socket buffers are not counted.
    pub memory: u64,
    /// The most threads that it has at a time.
    pub threads: u64,
    /// The most descriptors that it has open at a time.
    pub descriptors: u64,
}

/// A file server of others, and what of it a session uses. The port is the assignment's choice, or the server's portmapper's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignServer {
    /// Its address.
    pub address: IpAddr,
    /// NFS: the path to be mounted, from `/` on. SMB: the share, and the folder below it.
    pub export: String,
    /// User and group that NFS calls are made as; none where a login decides.
    pub user: Option<(u32, u32)>,
}

impl Needs {
    /// Memory of a thread that works, bytes: its stack as far as it is used, its histograms and its samples.
    pub const THREAD: u64 = 256 << 10;

    /// Needs of `power` alone.
    pub fn of(power: Power) -> Self {
        Self { powers: power.into(), ..Self::default() }
    }
}
