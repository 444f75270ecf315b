//! An assignment with its options checked: what cannot work is said before anything is opened.

use crate::error::RpcError;
use crate::protocol::Protocol;
use linerate_engine::{MOST_PER_SECOND, PathEnd, Timeline, check_assignment, check_rate, path_ends};
use linerate_model::{Assignment, IpVersion, Net, SessionId, SessionKey, SocketOptions, Task, Transport, Window};
use linerate_units::OpRate;

/// What this host is to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// The session's name.
    pub id: SessionId,
    /// What its callers show its servers.
    pub key: SessionKey,
    /// Its load.
    pub task: Task,
    /// Its warm-up and window.
    pub window: Window,
    /// The ends of paths at this host, in the order of the assignment's roles.
    pub ends: Vec<PathEnd>,
}

/// Calls under way at a time on each flow.
fn outstanding(task: &Task) -> u16 {
    match task {
        Task::Rpc(task) => task.outstanding,
        Task::Nfs(task) => task.outstanding,
        _ => 0,
    }
}

impl Job {
    /// Checks everything that can be checked without a peer.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] says what to ask for instead.
    pub fn check(assignment: &Assignment, protocol: &dyn Protocol) -> Result<Self, RpcError> {
        let task = &assignment.task;
        protocol.check(task)?;
        if outstanding(task) == 0 {
            return Err(RpcError::InvalidRequest("0 calls under way: choose 1 or more".to_owned()));
        }
        let rate = task.requests_per_s().map(OpRate::get);
        check_rate(rate, MOST_PER_SECOND, "calls", "call as fast as replies come")?;
        let window = check_assignment(assignment)?;
        let ends = path_ends(assignment)?;
        Ok(Self { id: assignment.id.clone(), key: assignment.key, task: task.clone(), window, ends })
    }

    /// The key that callers on `path` show its server.
    pub fn listener_key(&self, path: u16) -> SessionKey {
        linerate_engine::proof::listener_key(&self.key, path)
    }

    /// Transport, flows and sockets.
    ///
    /// # Panics
    /// If the task has none; [`Job::check`] takes no such task.
    pub fn net(&self) -> &Net {
        self.task.net().expect("`Job::check` takes no task without sockets")
    }

    /// The sockets' options.
    pub fn socket(&self) -> &SocketOptions {
        &self.net().socket
    }

    /// TCP or UDP.
    pub fn transport(&self) -> Transport {
        self.net().transport
    }

    /// IPv6.
    pub fn v6(&self) -> bool {
        self.net().ip == IpVersion::V6
    }

    /// Ends at this host that serve.
    pub fn servers(&self) -> u64 {
        self.ends.iter().filter(|end| !end.is_client()).count() as u64
    }

    /// Ends at this host that call.
    pub fn clients(&self) -> u64 {
        self.ends.len() as u64 - self.servers()
    }

    /// Whether the server is not one of linerate's own.
    pub(crate) fn has_foreign_server(&self) -> bool {
        matches!(&self.task, Task::Nfs(task) if task.server.is_some())
    }

    /// The times of a load that starts at `start`. Calls are timed one by one, so nothing has to drain before the window.
    pub fn timeline(&self, start: u64) -> Timeline {
        Timeline::new(start, self.window)
    }
}
