//! A path between hosts: it delays, limits, loses, changes and reorders frames as planted, each direction by its own
//! limits.
//!
//! `model.rs` decides for each frame, and knows time only as a number. `io.rs` takes frames from the ports of the
//! device and sends them. It runs in a child process of the lab, in the device's namespace, and lives as long as the
//! lab ([`crate::linux::child_processes`]).
//!
//! The path is a program and not a queueing discipline: many kernels have no netem.

pub(crate) mod chance;
mod collision_domain;
mod counts;
mod fair_queue;
pub(crate) mod frame;
mod io;
pub(crate) mod limits;
mod line;
mod model;
mod stations;
mod watch;

pub use collision_domain::HubPortCounts;
pub(crate) use counts::both;
pub use counts::{DirectionCounts, PathCounts};
pub use limits::{Alternation, PathLimits};
pub use watch::PathWatch;

use crate::linux::hub_limits::HubLimits;
use crate::linux::lifeline::wait_for_end;
use io::Engine;
use linerate_model::HostName;
use linerate_sys::Error;
use linerate_units::ParseError;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::io::{self as streams, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Line that the path's process prints when it forwards.
pub(crate) const READY: &str = "ready";
/// Request for its counts.
pub(crate) const ASK: u8 = b'?';
/// Between two looks for new counts.
const LOOK: Duration = Duration::from_millis(1);

/// Counts that the thread of the path publishes and others read.
#[derive(Debug, Default)]
struct Published {
    counts: Mutex<PathCounts>,
    /// Somebody waits for new ones.
    asked: AtomicBool,
    /// The thread waits for frames, and has published all that it knows.
    resting: AtomicBool,
}

impl Published {
    /// The counts of now.
    fn read(&self) -> PathCounts {
        self.asked.store(true, Ordering::SeqCst);
        while self.asked.load(Ordering::SeqCst) && !self.resting.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
        }
        self.counts.lock().map(|counts| counts.clone()).unwrap_or_default()
    }
}

/// Plan of a path, the argument of its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathPlan {
    /// Its ports.
    pub(crate) ports: Vec<PlannedPort>,
    /// Bytes of the longest frame.
    pub(crate) longest: usize,
    /// Frames leave past the queueing disciplines of the ports.
    pub(crate) bypass_queues: bool,
    /// Limits of the hub that repeats frames, instead of the limits of the ports.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hub")]
    pub(crate) hub: Option<HubLimits>,
}

/// A port of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedPort {
    /// Host at the port.
    pub(crate) host: HostName,
    /// Its interface.
    pub(crate) interface: String,
    /// Number of the network that the port belongs to: frames stay in it.
    #[serde(default)]
    pub(crate) network: usize,
    /// Limits of the frames to this host.
    #[serde(serialize_with = "written", deserialize_with = "read")]
    pub(crate) limits: PathLimits,
}

fn written<S: Serializer>(limits: &PathLimits, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(limits)
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathLimits, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// The limits of a hub as text.
mod hub {
    use super::HubLimits;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(limits: &Option<HubLimits>, serializer: S) -> Result<S::Ok, S::Error> {
        match limits {
            Some(limits) => serializer.collect_str(limits),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<HubLimits>, D::Error> {
        String::deserialize(deserializer)?.parse().map(Some).map_err(de::Error::custom)
    }
}

impl FromStr for PathPlan {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = |_| ParseError {
            text: text.to_owned(),
            expected: "the plan of a path",
            example: r#"{"ports":[],"longest":1518,"bypass_queues":true}"#,
        };
        serde_json::from_str(text).map_err(fail)
    }
}

impl fmt::Display for PathPlan {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Forwards frames between the ports of the calling thread's namespace until standard input ends. Says so on standard
/// output, a socket, and answers questions for its counts there.
///
/// # Errors
///
/// Fails if the path cannot be opened: there is no such port, or this user may not open packet sockets.
pub fn serve(plan: &PathPlan) -> Result<(), Error> {
    let counts = Arc::new(Published::default());
    let engine = match Engine::open(plan, Arc::clone(&counts)) {
        Ok(engine) => engine,
        Err(error) => {
            println!("{error}");
            return Err(error);
        }
    };
    let failed = |source| Error::new("clone", "the path's thread", source);
    thread::Builder::new().name(String::from("path")).spawn(move || engine.run()).map_err(failed)?;
    println!("{READY}");
    thread::Builder::new().name(String::from("counts")).spawn(move || answer(&counts)).map_err(failed)?;
    wait_for_end()
}

/// Answers each question on standard output with the counts in one line.
fn answer(counts: &Published) -> streams::Result<()> {
    let mut output = UnixStream::from(streams::stdout().as_fd().try_clone_to_owned()?);
    let mut question = [0];
    while output.read(&mut question)? > 0 {
        let mut line = serde_json::to_string(&counts.read())?;
        line.push('\n');
        output.write_all(line.as_bytes())?;
    }
    Ok(())
}
