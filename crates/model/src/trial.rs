//! One trial: what is done between which hosts, and for how long.

use crate::checked::{OutOfRange, check_when_read, within};
use crate::{Counterproof, HostName, Net, Path, Task};
use linerate_units::{ByteCount, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One trial to run. It names hosts; addresses, keys and passwords belong to an attempt and are kept nowhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Trial {
    /// The name of what is measured; trials of the same name are repeats.
    pub name: String,
    /// What runs at the same time. The first load is measured, the others run beside it; never empty.
    pub loads: Vec<Load>,
    /// The verdict that this trial tests; none if it was asked for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proves: Option<Counterproof>,
}

impl Trial {
    fn check(&self) -> Result<(), OutOfRange> {
        match self.loads.is_empty() {
            true => Err(OutOfRange(format!("trial `{}` has no load", self.name))),
            false => Ok(()),
        }
    }

    /// A trial of one load that tests no verdict.
    pub fn new(name: impl Into<String>, task: Task, timing: Timing) -> Self {
        Self { name: name.into(), loads: vec![Load { task, timing }], proves: None }
    }

    /// The load that is measured.
    ///
    /// # Panics
    /// If the trial has no load. [`Trial::new`] makes none such, and one without is refused when it is read.
    pub fn load(&self) -> &Load {
        self.loads.first().expect("a trial has a load")
    }

    /// The task that is measured.
    ///
    /// # Panics
    /// As [`Trial::load`].
    pub fn task(&self) -> &Task {
        &self.load().task
    }

    /// The measured task, to be changed.
    ///
    /// # Panics
    /// As [`Trial::load`].
    pub fn task_mut(&mut self) -> &mut Task {
        &mut self.loads.first_mut().expect("a trial has a load").task
    }

    /// The paths of the measured task; none for frames and copies.
    pub fn paths(&self) -> &[Path] {
        self.task().paths()
    }

    /// The measured task's transport, flows and sockets; none for frames and copies.
    pub fn net(&self) -> Option<&Net> {
        self.task().net()
    }

    /// The window of the measured load; none if it runs until it is done.
    pub fn window(&self) -> Option<Window> {
        self.load().timing.window()
    }

    /// What each sender of the measured load sends in the window, in each direction; none where the window ends by time.
    pub fn volume(&self) -> Option<ByteCount> {
        match self.task() {
            Task::Stream(stream) => stream.whole_volume(),
            _ => None,
        }
    }

    /// Every host that has an agent and takes part, each once, in the order of the loads.
    pub fn hosts(&self) -> Vec<&HostName> {
        let mut hosts: Vec<&HostName> = Vec::new();
        for host in self.loads.iter().flat_map(|load| load.task.hosts()) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }
}

check_when_read!(Trial);

/// A task and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// What is done.
    pub task: Task,
    /// For how long.
    pub timing: Timing,
}

/// How long a load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// For a warm-up and a measured window.
    Window(Window),
    /// Until the task has done what it is to do: all frames sent, all files copied.
    UntilDone,
}

impl Timing {
    /// A warm-up of fixed length and a measured window.
    pub const fn of(warmup: Nanos, measure: Nanos) -> Self {
        Self::Window(Window { warmup: Warmup::Fixed(warmup), measure })
    }

    /// A warm-up that ends when the load is steady, and a measured window.
    pub const fn when_steady(measure: Nanos) -> Self {
        Self::Window(Window { warmup: Warmup::STEADY, measure })
    }

    /// The window; none where the task ends by itself.
    pub fn window(self) -> Option<Window> {
        match self {
            Self::Window(window) => Some(window),
            Self::UntilDone => None,
        }
    }
}

/// Warm-up and measured window of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Window {
    /// Warm-up, excluded from results.
    pub warmup: Warmup,
    /// The measured window.
    pub measure: Nanos,
}

impl Window {
    /// No load runs longer: a year and a day, so that sums of times stay far within 64 bits.
    pub(crate) const LONGEST: Nanos = Nanos::from_secs(366 * 86_400);

    fn check(&self) -> Result<(), OutOfRange> {
        within("of warm-up and window", self.longest(), Nanos::default()..=Self::LONGEST)
    }

    /// How long warm-up and window take at the most.
    pub fn longest(self) -> Nanos {
        self.warmup.longest() + self.measure
    }
}

check_when_read!(Window);

/// When a warm-up ends. One of fixed length is kept as a number, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Warmup {
    /// After this time.
    Fixed(Nanos),
    /// When the load is steady.
    Steady {
        /// After this time in any case.
        at_most: Nanos,
        /// So much later, as for requests beside a load whose window has opened.
        #[serde(default, skip_serializing_if = "Nanos::is_zero")]
        then: Nanos,
    },
}

impl Warmup {
    /// Ends when the load is steady, after 10 s in any case.
    pub const STEADY: Self = Self::Steady { at_most: Nanos::from_secs(10), then: Nanos::new(0) };

    /// Its length at the most.
    pub fn longest(self) -> Nanos {
        match self {
            Self::Fixed(time) => time,
            Self::Steady { at_most, then } => at_most + then,
        }
    }

    /// The same, and `more` beyond it.
    pub fn and(self, more: Nanos) -> Self {
        match self {
            Self::Fixed(time) => Self::Fixed(time + more),
            Self::Steady { at_most, then } => Self::Steady { at_most, then: then + more },
        }
    }
}

impl Default for Warmup {
    fn default() -> Self {
        Self::Fixed(Nanos::default())
    }
}
