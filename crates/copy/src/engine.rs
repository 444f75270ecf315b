//! Copies as an engine: what a session asks of its host, and how it goes from preparing to counts.

use crate::allowed_folders::AllowedFolders;
use crate::part::{Connected, Prepared};
use crate::prepare::Preparing;
use crate::progress::Progress;
use crate::role::{check, flows, needs};
use crate::scratch::Scratch;
use crate::{Control, CopyError};
use linerate_engine::{Conductor, Counted, Demand, Engine, EngineError, EngineFailure, FailedBy, Stopped, Work};
use linerate_model::{
    Assignment, Caveat, CopyCounts, CopyTask, Endpoints, Preparation, Ready, RoleCounts, RoleKind, Task,
};
use linerate_sys::clock;
use linerate_units::{BitRate, Nanos};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

/// From the last host hearing of the start to the first byte.
const LEAD: Nanos = Nanos::from_millis(50);
/// Time for making, counting or reading a large tree before the copy, and for removing it afterwards.
const TREE_TIME: Nanos = Nanos::from_secs(3600);

/// The engine of copies of folder trees. A session may have several roles: a host that copies to itself has a source
/// and a destination.
#[derive(Debug, Clone, Default)]
pub struct Copy {
    folders: AllowedFolders,
}

impl Copy {
    /// An engine that reads and writes below `folders` only.
    pub fn new(folders: AllowedFolders) -> Self {
        Self { folders }
    }
}

impl Engine for Copy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Copy(_))
    }

    /// A copy has no rate: where bytes leave or arrive, there is no bound.
    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        let task = task(assignment)?;
        let only = |one: fn(&RoleKind) -> bool| assignment.roles.iter().all(|role| one(&role.kind));
        Ok(Demand {
            sends: only(|role| matches!(role, RoleKind::Destination)).then(BitRate::default),
            receives: only(|role| matches!(role, RoleKind::Source)).then(BitRate::default),
            time: None,
            flows: assignment.roles.iter().map(|role| flows(task, role)).sum(),
            needs: needs(task, &assignment.roles),
            exclusive: None,
            set_up: TREE_TIME,
        })
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        let mut scratch = Vec::new();
        let copied = self.copy(assignment, host, &mut scratch);
        let remains = scratch.into_iter().filter_map(Scratch::remove).collect();
        match copied {
            Ok(counted) => Ok(Counted { remains, ..counted }),
            Err(error) => Err(EngineFailure { error, remains }),
        }
    }
}

impl Copy {
    fn copy(
        &self,
        assignment: &Assignment,
        host: &dyn Conductor,
        scratch: &mut Vec<Scratch>,
    ) -> Result<Counted, FailedBy> {
        let task = task(assignment)?;
        let progress = Arc::<Progress>::default();
        let controls: Vec<_> = assignment
            .roles
            .iter()
            .map(|_| Arc::new(Control::new(task.options.on_error, Arc::clone(&progress))))
            .collect();
        for control in &controls {
            // The stop may outlive the copy, and the copy's connections are to be closed at its end.
            let control = Arc::downgrade(control);
            host.stop().on_stop(move || {
                if let Some(control) = control.upgrade() {
                    control.stop();
                }
            });
        }

        let mut parts = Vec::with_capacity(controls.len());
        let mut here = Endpoints::new();
        let mut disks = BTreeSet::new();
        let mut caveats = Vec::new();
        let listening = host.listen_options();
        for (role, control) in assignment.roles.iter().zip(&controls) {
            let say = |doing| host.preparing(doing);
            let mut preparing = Preparing {
                task,
                assignment,
                folders: &self.folders,
                control,
                listening: &listening,
                say: &say,
                disks: &mut disks,
                scratch,
                caveats: &mut caveats,
            };
            let part = Prepared::new(role, &mut preparing)?;
            here.extend(part.endpoints());
            parts.push(part);
        }
        let there = host.listening(here)?;

        host.preparing(Preparation::Connecting);
        let parts = connect(parts, &there, assignment, task, &controls)?;
        let ready = parts.iter().fold(Ready { lead: LEAD, ..Ready::default() }, |ready, part| {
            let (files, bytes) = part.count();
            Ready { files: ready.files + files, bytes: ready.bytes + bytes, ..ready }
        });
        let start = host.ready(ready)?;
        let disks = disks.into_iter().collect();
        host.runs(Work { start, window: None, threads: Vec::new(), disks, meters: progress });
        if !host.stop().sleep_until(start) {
            return Err(Stopped.into());
        }
        let started_unix_ns = clock::unix_now();
        let roles = run(parts, start, task, &controls);
        if host.stop().is_set() {
            return Err(Stopped.into());
        }
        Ok(Counted {
            roles: roles.into_iter().map(RoleCounts::Copy).collect(),
            started_unix_ns,
            caveats: only_once(caveats),
            remains: Vec::new(),
        })
    }
}

impl From<CopyError> for FailedBy {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Stopped => Self::Stop(Stopped),
            other => Self::Task(EngineError::new(other.to_string())),
        }
    }
}

/// The copy that is assigned, once it and all roles were found to go together.
fn task(assignment: &Assignment) -> Result<&CopyTask, EngineError> {
    let Task::Copy(task) = &assignment.task else {
        return Err(EngineError::new("the task is no copy"));
    };
    if assignment.roles.is_empty() {
        return Err(EngineError::new("the assignment has no role in the copy"));
    }
    for role in &assignment.roles {
        check(task, role).map_err(|error| EngineError::new(error.to_string()))?;
    }
    Ok(task)
}

/// Connects all roles side by side: those of one host may wait for each other. One that fails stops the others.
fn connect(
    parts: Vec<Prepared>,
    there: &Endpoints,
    assignment: &Assignment,
    task: &CopyTask,
    controls: &[Arc<Control>],
) -> Result<Vec<Connected>, CopyError> {
    let connected: Vec<Result<Connected, CopyError>> = thread::scope(|scope| {
        let connect = |(part, control): (Prepared, _)| {
            scope.spawn(move || {
                let connected = part.connect(there, assignment, task, control);
                if connected.is_err() {
                    controls.iter().for_each(|control| control.stop());
                }
                connected
            })
        };
        let threads: Vec<_> = parts.into_iter().zip(controls).map(connect).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let (connected, errors): (Vec<_>, Vec<_>) = connected.into_iter().partition(Result::is_ok);
    let mut errors: Vec<CopyError> = errors.into_iter().filter_map(Result::err).collect();
    // The error that made the others stop, not theirs.
    errors.sort_by_key(|error| matches!(error, CopyError::Stopped));
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(connected.into_iter().filter_map(Result::ok).collect()),
    }
}

/// Copies in all roles side by side, to the end.
fn run(parts: Vec<Connected>, start: u64, task: &CopyTask, controls: &[Arc<Control>]) -> Vec<CopyCounts> {
    thread::scope(|scope| {
        let run = |(part, control): (Connected, &'_ Arc<Control>)| {
            let control = Arc::clone(control);
            scope.spawn(move || part.run(start, &task.options, &control))
        };
        let threads: Vec<_> = parts.into_iter().zip(controls).map(run).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Several roles have the same doubts of one host.
fn only_once(caveats: Vec<Caveat>) -> Vec<Caveat> {
    let mut different: Vec<Caveat> = Vec::with_capacity(caveats.len());
    for caveat in caveats {
        if !different.contains(&caveat) {
            different.push(caveat);
        }
    }
    different
}
