//! The agent in each host: `linerate serve` with a listening socket from outside, so that no control traffic crosses
//! the lab's links.

use crate::linux::wiring::WiredHost;
use crate::options::LabOptions;
use crate::{LabError, SlowServer};
use linerate_model::AgentUrl;
use linerate_sys::namespace::MountNamespace;
use linerate_sys::process::{Placement, ProcessId, scratch_file, spawn};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for an agent to print its URL: the machine may be busy.
const START: Duration = Duration::from_secs(60);
/// Time for an agent to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// The longest agent URL.
const LINE_MAXIMUM: usize = 1024;

/// A running agent.
pub(crate) struct Agent {
    child: Child,
    words: File,
    /// Source of the agent URL; kept open so that the agent may go on writing.
    output: UnixStream,
}

impl Agent {
    /// Starts the agent of `host`, with a `slow` NFS server and the folders of a mount namespace, its
    /// `disk`. One that is `kept` outlives the lab and holds `held` open.
    pub(crate) fn start(
        host: &WiredHost,
        slow: Option<&SlowServer>,
        disk: Option<&MountNamespace>,
        options: &LabOptions,
        held: &[BorrowedFd<'_>],
    ) -> Result<Self, LabError> {
        let LabOptions { program, keep: kept, folders } = options;
        let failed = |error: io::Error| host.no_agent(format!("{error} (program {})", program.display()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let (output, childs_output) = UnixStream::pair().map_err(failed)?;
        let words = scratch_file("linerate-agent-stderr").map_err(|error| host.no_agent(error.to_string()))?;

        // What it is itself made of is not on its slow disk, even if that covers where the program is.
        let outside = disk.map(|_| File::open(program)).transpose().map_err(failed)?;
        let mut command = match &outside {
            Some(file) => Command::new(format!("/proc/self/fd/{}", file.as_raw_fd())),
            None => Command::new(program),
        };
        command.arg0(program).arg("serve");
        command.arg("--listen-fd").arg(listener.as_raw_fd().to_string());
        command.arg("--copy-scratch").arg(scratch());
        for folder in folders {
            command.arg("--copy-directory").arg(folder);
        }
        command.arg("--name").arg(&host.name.0);
        // Frames stay in the lab, wherever they are sent.
        command.args(["--allow-frames", "all"]);
        // So do calls of file servers.
        command.args(["--allow-server", "any", "--allow-uid", "any"]);
        // Whoever makes a lab may empty the caches of its host by other programs, too.
        command.arg("--allow-cold-cache");
        for address in &host.addresses {
            command.arg("--data-address").arg(address.to_string());
        }
        for (interface, rate) in &host.rates {
            command.arg("--link-speed").arg(format!("{interface}={}bit/s", rate.get()));
            if let Some(duplex) = host.duplex {
                command.arg("--link-duplex").arg(format!("{interface}={duplex}"));
            }
        }
        command.args(slow.map(SlowServer::arguments).unwrap_or_default());
        command.stdin(Stdio::null()).stdout(OwnedFd::from(childs_output)).stderr(words.try_clone().map_err(failed)?);
        let placement = Placement {
            user: None,
            net: Some(host.namespace.as_fd()),
            mount: disk.map(AsFd::as_fd),
            inherited: [listener.as_fd()].into_iter().chain(held.iter().copied()).collect(),
            own_session: true,
            ends_with_thread: !kept,
        };
        let child = spawn(&mut command, &placement).map_err(|error| host.no_agent(error.to_string()))?;
        Ok(Self { child, words, output })
    }

    /// Waits for the agent's agent URL.
    pub(crate) fn url(&mut self, host: &WiredHost) -> Result<AgentUrl, LabError> {
        let line = self.first_line().map_err(|problem| {
            let words = self.last_words();
            host.no_agent(if words.is_empty() { problem } else { format!("{problem}; it said: {words}") })
        })?;
        line.parse().map_err(|error| host.no_agent(format!("{error}")))
    }

    /// The number of its process, its own until it is waited for.
    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process, or `None` if it has ended.
    pub(crate) fn process(&self) -> Option<ProcessId> {
        ProcessId::of(self.child.id())
    }

    /// Ends it and waits until it is gone.
    pub(crate) fn end(mut self) {
        // It is this thread's child and not yet waited for: the number is still its own. What cannot be ended even by
        // SIGKILL cannot be waited for.
        if self.process().is_none_or(|process| process.end(GRACE).is_ok()) {
            let _ = self.child.wait();
        }
    }

    fn first_line(&mut self) -> Result<String, String> {
        let deadline = Instant::now() + START;
        let late = || format!("it printed no agent URL within {} s", START.as_secs());
        let mut line = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            let mut byte = [0];
            let result = self.output.set_read_timeout(Some(left)).and_then(|()| self.output.read(&mut byte));
            match result {
                Ok(0) => {
                    let status = self.child.wait().map_err(|error| error.to_string())?;
                    return Err(format!("it ended without an agent URL ({status})"));
                }
                Ok(_) if byte == *b"\n" => return String::from_utf8(line).map_err(|error| error.to_string()),
                Ok(_) if line.len() < LINE_MAXIMUM => line.push(byte[0]),
                Ok(_) => return Err(String::from("its first line is too long for an agent URL")),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// The end of what it wrote to standard error.
    fn last_words(&mut self) -> String {
        const SHOWN: usize = 2_000;
        let mut words = Vec::new();
        // The offset is shared with the agent, which has ended or is about to.
        let _ = self.words.rewind().and_then(|()| self.words.read_to_end(&mut words));
        String::from_utf8_lossy(&words[words.len().saturating_sub(SHOWN)..]).trim().to_owned()
    }
}

/// Returns the folder in which copies of a lab's hosts make theirs.
pub(crate) fn scratch() -> PathBuf {
    std::env::temp_dir()
}

impl WiredHost {
    fn no_agent(&self, problem: String) -> LabError {
        LabError::Agent { host: self.name.clone(), problem }
    }
}

/// Ends all of them at once.
pub(crate) fn end_all(agents: Vec<Agent>) {
    std::thread::scope(|scope| {
        for agent in agents {
            scope.spawn(|| agent.end());
        }
    });
}
