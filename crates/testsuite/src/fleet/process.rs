//! Processes of a fleet's lab.

use linerate_sys::namespace::NetNamespace;
use linerate_sys::process::{Placement, ProcessId, spawn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A program with its arguments and variables.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(String, OsString)>,
}

impl Launch {
    pub(super) fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), environment: Vec::new() }
    }

    pub(super) fn arguments<T: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(super) fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A process that ends with the thread that started it, and that can be started again.
pub(super) struct LabProcess {
    pub(super) name: String,
    launch: Launch,
    /// Standard output and error of all its runs.
    pub(super) log: PathBuf,
    child: Option<Child>,
    grace: Duration,
}

impl LabProcess {
    /// Describes a process that writes to `NAME.log` below `folder`. It is given `grace` to end by itself.
    pub(super) fn new(name: &str, launch: Launch, folder: &Path, grace: Duration) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { name: name.to_owned(), launch, log, child: None, grace }
    }

    /// Starts it in a namespace.
    ///
    /// # Panics
    /// It cannot be started.
    pub(super) fn start(&mut self, namespace: &NetNamespace) {
        self.start_with(namespace, &[]);
    }

    /// Starts it in a namespace with further variables.
    ///
    /// # Panics
    /// It cannot be started.
    pub(super) fn start_with(&mut self, namespace: &NetNamespace, variables: &[(&str, &str)]) {
        let log = File::options().create(true).append(true).open(&self.log).expect("a log file can be opened");
        let mut command = self.launch.command();
        command.envs(variables.iter().copied());
        command.stdout(log.try_clone().expect("a descriptor can be copied")).stderr(log);
        let placement = Placement {
            net: Some(namespace.as_fd()),
            own_session: true,
            ends_with_thread: true,
            ..Placement::default()
        };
        self.child = Some(spawn(&mut command, &placement).unwrap_or_else(|error| panic!("{}: {error}", self.name)));
    }

    /// Returns the number of its process. `None` if it was not started.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends it a signal. Its number is its own until it is waited for.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Waits until it has ended.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        self.child.take()?.wait().ok()
    }

    /// Returns its status. `None` if it runs or was not started.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// Ends it and waits for that.
    pub(super) fn end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // A stopped process takes no other signal.
        if let Ok(pid) = i32::try_from(child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
        if ProcessId::of(child.id()).is_none_or(|process| process.end(self.grace).is_ok()) {
            let _ = child.wait();
        }
    }

    /// Returns what it wrote.
    pub(super) fn text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for LabProcess {
    fn drop(&mut self) {
        self.end();
    }
}
