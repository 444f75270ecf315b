//! Checks an assignment before any socket is opened.

use crate::error::RpcError;
use linerate_engine::{MOST_PER_SECOND, PathEnd, Timeline, check_assignment, check_rate, path_ends};
use linerate_model::{Assignment, IpVersion, Net, SessionId, SessionKey, SocketOptions, Task, Transport, Window};
use linerate_units::OpRate;

/// Checked assignment of one host in a load of calls.
#[derive(Debug, Clone)]
pub struct Job {
    /// Session identifier.
    pub id: SessionId,
    /// Secret of the session. The key of each link is derived from it: see [`PathEnd::key`].
    pub key: SessionKey,
    /// Task of the load.
    pub task: Task,
    /// Warm-up and measured window.
    pub window: Window,
    /// Ends of paths at this host, in the order of the assignment's roles.
    pub ends: Vec<PathEnd>,
}

/// Returns the number of calls under way on each flow, 0 for a task without calls.
fn outstanding(task: &Task) -> u16 {
    match task {
        Task::Rpc(task) => task.outstanding,
        Task::Nfs(task) => task.outstanding,
        _ => 0,
    }
}

impl Job {
    /// Checks everything that can be checked without a peer and for every protocol.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] says what to ask for instead.
    pub fn check(assignment: &Assignment) -> Result<Self, RpcError> {
        let task = &assignment.task;
        if outstanding(task) == 0 {
            return Err(RpcError::InvalidRequest("0 calls under way: choose 1 or more".to_owned()));
        }
        let rate = task.requests_per_s().map(OpRate::get);
        check_rate(rate, MOST_PER_SECOND, "calls", "call as fast as replies come")?;
        let window = check_assignment(assignment)?;
        let ends = path_ends(assignment)?;
        Ok(Self { id: assignment.id.clone(), key: assignment.key, task: task.clone(), window, ends })
    }

    /// Returns transport, flows and socket options of the task.
    ///
    /// # Panics
    /// Panics if the task has no sockets; [`Job::check`] refuses such a task.
    pub fn net(&self) -> &Net {
        self.task.net().expect("`Job::check` takes no task without sockets")
    }

    pub fn socket(&self) -> &SocketOptions {
        &self.net().socket
    }

    pub fn transport(&self) -> Transport {
        self.net().transport
    }

    /// Returns whether the path is IPv6.
    pub fn v6(&self) -> bool {
        self.net().ip == IpVersion::V6
    }

    /// Returns the number of servers at this host.
    pub fn servers(&self) -> u64 {
        self.ends.iter().filter(|end| !end.is_client()).count() as u64
    }

    /// Returns the number of clients at this host.
    pub fn clients(&self) -> u64 {
        self.ends.len() as u64 - self.servers()
    }

    /// Returns whether the server is no linerate agent.
    pub(crate) fn has_foreign_server(&self) -> bool {
        matches!(&self.task, Task::Nfs(task) if task.server.is_some())
    }

    /// Returns the timeline of a load that starts at `start`. Calls are timed one by one, so nothing has to drain
    /// before the window.
    pub fn timeline(&self, start: u64) -> Timeline {
        Timeline::new(start, self.window)
    }
}
