//! The contract between an engine and its agent.
//!
//! An engine is one blocking function with waiting points: it listens, waits for its peers, becomes ready, waits for
//! the start, works, and returns what it counted. The agent decides when it goes on, watches the host meanwhile, and
//! can stop it at any point.

use crate::{ListenOptions, Stop, Timeline};
use linerate_model::{
    Assignment, Caveat, Endpoints, Meter, Power, Powers, Preparation, Readings, Ready, RoleCounts, Task,
};
use linerate_sys::thread::EngineThread;
use linerate_units::{BitRate, Nanos};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Engine of one task, or a few, on one host.
///
/// The resources of the host that it may use (folders, the service of an NFS server) are passed when it is created.
pub trait Engine: Send + Sync {
    /// Returns its name in messages, as in `streams`.
    fn name(&self) -> &'static str;

    /// Returns whether it does `task`. Each task has exactly one engine.
    fn takes(&self, task: &Task) -> bool;

    /// Returns the demand of `assignment` on the host, without opening anything. The agent checks it against its limits
    /// first.
    ///
    /// # Errors
    /// The assignment is invalid: a rate of zero, more flows than ports, a role that the task does not have.
    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError>;

    /// Carries out the assignment, from listening to counts, on the calling thread and its own threads. Afterwards
    /// nothing is left on the host except what `remains` lists.
    ///
    /// # Errors
    /// The task could not be done, or it was stopped.
    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure>;
}

/// Control of an engine's session through its stages, implemented by the agent. Waiting calls return [`Stopped`] at
/// once when the session is stopped.
pub trait Conductor: Sync {
    /// Reports a preparation that takes a while.
    fn preparing(&self, doing: Preparation);

    /// Reports the addresses of this host's listeners, and waits for the addresses of the links it connects to. An
    /// engine without links passes an empty map.
    ///
    /// # Errors
    /// The session was stopped.
    fn listening(&self, here: Endpoints) -> Result<Endpoints, Stopped>;

    /// Reports that the work could begin, and waits for the start time, nanoseconds on the clock of
    /// [`linerate_sys::clock::now`]. Another call returns the same time at once.
    ///
    /// # Errors
    /// The session was stopped.
    fn ready(&self, ready: Ready) -> Result<u64, Stopped>;

    /// Reports that the work is running. From now on the agent reads the meters, and watches the host in the window.
    fn runs(&self, work: Work);

    /// Reports that everything is sent, and waits until all hosts have sent. Only for tasks that need it.
    ///
    /// # Errors
    /// The session was stopped.
    fn sent(&self) -> Result<(), Stopped>;

    /// Returns how this host's ends listen: allowed peers and ports.
    fn listen_options(&self) -> ListenOptions {
        ListenOptions::default()
    }

    /// Returns whether a rate limit applies to the session. It also applies to the engine's preparations.
    fn is_rate_limited(&self) -> bool {
        false
    }

    /// Returns the session's stop flag.
    fn stop(&self) -> &Arc<Stop>;
}

/// Running work of an engine.
pub struct Work {
    /// Begin of the load, nanoseconds on the clock of [`linerate_sys::clock::now`].
    pub start: u64,
    /// Measured window. `None` measures from now until the engine returns. If the warm-up ends when the load is steady,
    /// the agent opens the window.
    pub window: Option<Timeline>,
    /// Threads of the work, for their CPU times.
    pub threads: Vec<EngineThread>,
    /// Device numbers of the disks in use.
    pub disks: Vec<u64>,
    /// Counts up to now.
    pub meters: Arc<dyn Meters>,
}

/// Progress of running work. Reading it must not slow the work, so it uses relaxed loads.
pub trait Meters: Send + Sync {
    /// Returns the progress since the load began.
    fn read(&self) -> Meter;

    /// Adds further samples to `readings`: TCP_INFO, response times, lateness of senders.
    fn sample(&self, _readings: &mut Readings) {}

    /// Returns whether all threads have ended, as after the loss of a peer before the window closes.
    fn has_ended(&self) -> bool {
        false
    }
}

/// Counts of an engine.
#[derive(Debug)]
pub struct Counted {
    /// Counts of each role, in the order of the assignment's roles.
    pub roles: Vec<RoleCounts>,
    /// Opening of the window or time of the first frame, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Caveats of the measurement.
    pub caveats: Vec<Caveat>,
    /// Objects that could not be removed, and must be removed by hand.
    pub remains: Vec<String>,
}

/// The session was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session was stopped")]
pub struct Stopped;

/// Failure of an engine's task.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// Description of the failure, its cause and the remedy.
    pub message: String,
}

impl EngineError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// End of an engine without counts.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct EngineFailure {
    /// Cause.
    pub error: FailedBy,
    /// Objects that could not be removed, and must be removed by hand.
    pub remains: Vec<String>,
}

/// Cause of the end of an engine.
#[derive(Debug, thiserror::Error)]
pub enum FailedBy {
    /// Error of the task.
    #[error(transparent)]
    Task(#[from] EngineError),
    /// Error of the agent.
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

/// Demand of a session on its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Highest payload rate (frames: bits of frames) that it sends. `None` is unlimited.
    pub sends: Option<BitRate>,
    /// Highest rate that it receives. `None` is unlimited.
    pub receives: Option<BitRate>,
    /// Duration, warm-up and settling included. `None` runs until it is done, and ends at the agent's limit.
    pub time: Option<Nanos>,
    /// Number of connections or sockets on this host.
    pub flows: u64,
    /// Other resources.
    pub needs: Needs,
    /// Resource that only one session at a time may use, as in `raw frames`. `None` shares the host.
    pub exclusive: Option<&'static str>,
    /// Additional time for preparing, connecting, waiting for other hosts and removing.
    pub set_up: Nanos,
}

/// Resources that a session needs on its host in addition to rates, time and flows.
///
/// The agent checks them before any work begins: powers against the credential, interfaces against its options, and the
/// others against its budget less the needs of other sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Powers that the credential must grant.
    pub powers: Powers,
    /// Interfaces that raw frames leave by or arrive at.
    pub interfaces: BTreeSet<String>,
    /// File servers of third parties that it uses.
    pub servers: Vec<ForeignServer>,
    /// Whether it empties the caches of the host.
    pub cold_cache: bool,
    /// Most memory that it uses in this process, bytes, without the kernel's socket buffers.
    pub memory: u64,
    /// Most threads that it has at a time.
    pub threads: u64,
    /// Most descriptors that it has open at a time.
    pub descriptors: u64,
}

/// File server of a third party, and its used export. The assignment or the server's portmapper chooses the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignServer {
    /// Address of the host.
    pub address: IpAddr,
    /// NFS: the path to be mounted, from `/` on. SMB: the share, and the folder below it.
    pub export: String,
    /// User and group of NFS calls. `None` if a login decides.
    pub user: Option<(u32, u32)>,
}

impl Needs {
    /// Memory of a working thread, bytes: used stack, histograms and samples.
    pub const THREAD: u64 = 256 << 10;

    /// Returns the needs of a session that needs only `power`.
    pub fn of(power: Power) -> Self {
        Self { powers: power.into(), ..Self::default() }
    }
}
