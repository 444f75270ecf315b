//! What a session of calls speaks: the part of it that differs between linerate's own program and NFS.

use crate::error::RpcError;
use crate::job::Job;
use crate::load::Load;
use crate::server::Program;
use linerate_engine::{Conductor, Needs, PathRates};
use linerate_model::{SessionKey, Task};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

/// A protocol over ONC RPC: its checks, the load of its callers and the programs of its servers.
pub trait Protocol: Debug + Send + Sync {
    /// Checks everything of `task` that can be checked without a peer.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] says what to ask for instead, or that the task is of another engine.
    fn check(&self, task: &Task) -> Result<(), RpcError>;

    /// Returns the payload rates of one path.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] if the task is of another engine.
    fn rates(&self, job: &Job) -> Result<PathRates, RpcError>;

    /// Returns what this host's ends need, those of [`calls_need`](crate::calls_need) and what the protocol adds.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] if the task is of another engine.
    fn needs(&self, job: &Job) -> Result<Needs, RpcError>;

    /// Returns the load of one client, after making what its calls need on the server.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses, or the session is stopped; what was made on it by then is removed.
    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError>;

    /// Returns the programs of one server.
    ///
    /// # Errors
    /// Fails if what they are to serve cannot be opened.
    fn programs(&self, job: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError>;
}

/// The client whose load is wanted.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// The path's index in the task.
    pub path: u16,
    /// What the session's own server is to be shown.
    pub key: SessionKey,
    /// Where the session's own server listens; `None` if the server runs no agent.
    pub server: Option<SocketAddr>,
    /// Leads the session: it is told what takes a while, and its stop ends that.
    pub host: &'a dyn Conductor,
}

impl Opening<'_> {
    /// Returns the address of the session's own server.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] if none was given.
    pub fn server(&self) -> Result<SocketAddr, RpcError> {
        let missing = || RpcError::InvalidRequest(format!("path {}: no server was given to connect to", self.path));
        self.server.ok_or_else(missing)
    }
}

/// Server programs that are fresh for each session.
pub trait ProgramSource: Debug + Send + Sync {
    /// The most memory that what they serve may take in one session, bytes.
    fn memory(&self) -> u64;

    /// Returns the programs of one of a session's `servers`, which share the session's memory evenly.
    ///
    /// # Errors
    /// Fails if what they are to serve cannot be opened.
    fn programs(&self, servers: u64) -> Result<Vec<Arc<dyn Program>>, RpcError>;
}
