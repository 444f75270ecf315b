//! A lab that outlives the program that built it: found again by a file that names its processes.

use crate::LabError;
use crate::linux::user::user_outside;
use linerate_model::{AgentUrl, HostName};
use linerate_sys::namespace::{NetNamespace, UserNamespace, effective_user};
use linerate_sys::process::{Placement, ProcessId, spawn, wait_in_foreground};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// Time for a kept agent to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// A kept lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    /// The bench it was built from.
    bench: String,
    /// Boot of the machine: after another boot, other processes have the same numbers.
    boot_id: String,
    agents: BTreeMap<HostName, KeptAgent>,
}

/// The agent of one host of a kept lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptAgent {
    pid: u32,
    started_ticks: u64,
    url: AgentUrl,
}

/// Returns the kept lab, if there is one. A file of a lab without running processes is removed.
pub fn kept() -> Result<Option<Kept>, LabError> {
    let path = file();
    let failed = |source| LabError::State { path: path.clone(), source };
    if !directory().exists() {
        return Ok(None);
    }
    // Before the file is opened: in someone else's directory it could be anything.
    check_directory()?;
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
    // As long as one of them runs there is something to take down.
    if kept.boot_id == boot_id() && kept.agents.values().any(|agent| agent.process().lives()) {
        return Ok(Some(kept));
    }
    kept.forget()?;
    Ok(None)
}

/// Checks that there is no kept lab yet.
pub(crate) fn none_yet() -> Result<(), LabError> {
    match kept()? {
        Some(other) => Err(LabError::AlreadyKept { bench: other.bench }),
        None => Ok(()),
    }
}

/// Writes down which processes a kept lab is made of.
pub(crate) fn save(bench: &str, agents: BTreeMap<HostName, KeptAgent>) -> Result<Kept, LabError> {
    let kept = Kept { bench: bench.to_owned(), boot_id: boot_id(), agents };
    let path = file();
    check_directory()?;
    // Whole or not at all, and never over another lab's file: a link is made only where there is none.
    let draft = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = serde_json::to_vec_pretty(&kept).map_err(io::Error::from).and_then(|text| {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?.write_all(&text)?;
        fs::hard_link(&draft, &path)
    });
    let _ = fs::remove_file(&draft);
    match written {
        Ok(()) => Ok(kept),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            none_yet()?;
            Err(LabError::State { path, source: error })
        }
        Err(source) => Err(LabError::State { path, source }),
    }
}

impl Kept {
    /// Returns the agent URL of each host.
    pub fn hosts(&self) -> BTreeMap<HostName, AgentUrl> {
        self.agents.iter().map(|(name, agent)| (name.clone(), agent.url.clone())).collect()
    }

    /// Runs `command` in a host, on this terminal, until it ends. Must be called outside the lab's user namespace.
    pub fn enter(&self, host: &HostName, mut command: Command) -> Result<ExitStatus, LabError> {
        let agent = self.agents.get(host).ok_or_else(|| LabError::UnknownHost {
            host: host.clone(),
            known: crate::error::host_list(self.agents.keys()),
        })?;
        let failed = || LabError::at(format!("enter host {host}"));
        let user = UserNamespace::of_process(agent.pid).map_err(failed())?;
        let net = NetNamespace::of_process(agent.pid).map_err(failed())?;
        // Only now is it certain that the namespaces are those of the agent.
        if !agent.process().lives() {
            let problem = String::from("it has ended; take the rest down with `linerate lab down`");
            return Err(LabError::Agent { host: host.clone(), problem });
        }
        let placement = Placement {
            user: user.as_ref().map(AsFd::as_fd),
            net: Some(net.as_fd()),
            ends_with_thread: true,
            ..Placement::default()
        };
        let mut child = spawn(&mut command, &placement).map_err(failed())?;
        wait_in_foreground(&mut child)
            .map_err(|error| failed()(linerate_sys::Error::new("wait", command.get_program().to_string_lossy(), error)))
    }

    /// Ends its processes, and only those, and waits until they are gone.
    pub fn down(self) -> Result<(), LabError> {
        let ended: Vec<_> = thread::scope(|scope| {
            let ending: Vec<_> =
                self.agents.iter().map(|(host, agent)| (host, scope.spawn(|| agent.process().end(GRACE)))).collect();
            ending
                .into_iter()
                .map(|(host, thread)| (host, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))))
                .collect()
        });
        for (host, end) in ended {
            end.map_err(LabError::at(format!("end the agent of host {host}")))?;
        }
        self.forget()
    }

    /// Removes the file.
    pub(crate) fn forget(&self) -> Result<(), LabError> {
        let path = file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::State { path, source: error }),
            _ => Ok(()),
        }
    }
}

impl KeptAgent {
    pub(crate) fn new(process: ProcessId, url: AgentUrl) -> Self {
        Self { pid: process.pid, started_ticks: process.started_ticks, url }
    }

    fn process(&self) -> ProcessId {
        ProcessId { pid: self.pid, started_ticks: self.started_ticks }
    }
}

fn file() -> PathBuf {
    directory().join("lab.json")
}

/// `$XDG_RUNTIME_DIR/linerate` if that is a directory of this user (su(1) leaves another user's in the environment);
/// otherwise /run/linerate for root and /tmp/linerate-UID for others.
fn directory() -> PathBuf {
    let own = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.uid() == effective_user());
    if let Some(directory) = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(own) {
        return directory.join("linerate");
    }
    match user_outside() {
        0 => PathBuf::from("/run/linerate"),
        user => PathBuf::from(format!("/tmp/linerate-{user}")),
    }
}

/// Makes the directory, and makes sure that it is this user's alone: the file in it holds secrets.
fn check_directory() -> Result<(), LabError> {
    let path = directory();
    let failed = |source| LabError::State { path: path.clone(), source };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let metadata = fs::symlink_metadata(&path).map_err(failed)?;
    let is_private = metadata.is_dir() && metadata.uid() == effective_user() && metadata.mode() & 0o077 == 0;
    if is_private { Ok(()) } else { Err(LabError::UnsafeDirectory { path }) }
}

/// Returns the identifier of this boot; empty, and always the same, if the kernel has none.
fn boot_id() -> String {
    linerate_sys::system::boot_id().unwrap_or_default()
}
