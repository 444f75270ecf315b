//! One trial: what is done between which hosts, and for how long.

use crate::checked::{OutOfRange, check_when_read};
use crate::{Counterproof, HostName, Net, Path, Task, Timing, Window};
use linerate_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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

/// Checks that no two of `cells` have one name: trials of one name are repeats of one cell, and the other would never be done.
pub(crate) fn check_names(cells: &[Trial]) -> Result<(), OutOfRange> {
    let mut names = BTreeSet::new();
    match cells.iter().find(|cell| !names.insert(&cell.name)) {
        Some(cell) => Err(OutOfRange(format!("two trials of the plan are called `{}`", cell.name))),
        None => Ok(()),
    }
}
