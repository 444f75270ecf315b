//! Why there is no lab.

use linerate_model::HostName;
use std::path::PathBuf;

/// A lab that could not be built, found or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The system has no network namespaces.
    #[error("the lab needs Linux: run this command on a Linux host, or measure between the agents of real hosts")]
    NeedsLinux,
    /// The program has no built-in bench of that name.
    #[error(
        "there is no bench `{name}`; built in are {known}, or give a bench file with its path, as in ./{name}.toml"
    )]
    UnknownBench {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A bench file that cannot be read.
    #[error("bench file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A bench file that is not one; the message shows line and field.
    #[error("bench file {origin}: {problem}")]
    Malformed {
        /// The file, or the name of the bench.
        origin: String,
        /// Line, field and what is wrong.
        problem: String,
    },
    /// A bench that reads well but cannot be built.
    #[error("bench {bench}: {problem}")]
    Impossible {
        /// The bench.
        bench: String,
        /// The field, what is wrong with it, and what would do.
        problem: String,
    },
    /// The user may not make networks.
    #[error("a lab needs to make network namespaces, and this user may not: {problem}; {remedy}")]
    NotPermitted {
        problem: String,
        /// Remedy.
        remedy: String,
    },
    /// A step of building failed.
    #[error("cannot {step}: {source}")]
    Build {
        /// The step.
        step: String,
        /// The call that failed.
        source: linerate_sys::Error,
    },
    /// Open vSwitch is not installed, or one of its programs has ended.
    #[error("Open vSwitch does not run in the lab: {problem}")]
    OpenVswitch {
        /// Program, problem and remedy.
        problem: String,
    },
    /// An agent did not start.
    #[error("the agent of lab host {host} did not start: {problem}")]
    Agent {
        /// The host.
        host: HostName,
        /// Problem, with the end of the agent's standard error.
        problem: String,
    },
    /// The lab has no such host.
    #[error("the lab has no host `{host}`; it has {known}")]
    UnknownHost {
        /// The name asked for.
        host: HostName,
        /// The names there are.
        known: String,
    },
    /// Another lab is kept already.
    #[error("a lab is kept already (bench {bench}); take it down with `linerate lab down` first")]
    AlreadyKept {
        /// The bench it was built from.
        bench: String,
    },
    /// The state of the kept lab cannot be written or read.
    #[error("state of the kept lab, {}: {source}; if no agent of it runs any more (`ps`), delete it", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory for the state of a kept lab belongs to someone else, or others may write to it.
    #[error(
        "{} is not this user's alone, so the secrets of a kept lab are not safe there; set XDG_RUNTIME_DIR",
        path.display()
    )]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A lab that was built to end with its program cannot be kept.
    #[error("this lab was built to end with its program; build it with `keep` set")]
    NotToKeep,
    /// The thread that holds the lab is gone.
    #[error("the lab is down")]
    Down,
}

#[cfg(target_os = "linux")]
impl LabError {
    /// Adds what was being done to an error of a system call.
    pub(crate) fn at(step: impl Into<String>) -> impl FnOnce(linerate_sys::Error) -> Self {
        |source| Self::Build { step: step.into(), source }
    }
}

/// Lists host names for an error text, as in `a, b`.
#[cfg(target_os = "linux")]
pub(crate) fn host_list<'a>(hosts: impl IntoIterator<Item = &'a HostName>) -> String {
    hosts.into_iter().map(|host| host.0.as_str()).collect::<Vec<_>>().join(", ")
}
