//! The part of a session of calls that differs between linerate's own program and NFS.

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

    /// Returns the resources for this host's ends: [`calls_need`](crate::calls_need) and the protocol's own.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] if the task is of another engine.
    fn needs(&self, job: &Job) -> Result<Needs, RpcError>;

    /// Creates the files that the calls of one client need on the server, and returns its load.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses, or the session is stopped; files created by then are removed.
    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError>;

    /// Returns the programs of one server.
    ///
    /// # Errors
    /// Fails if the storage to serve cannot be opened.
    fn programs(&self, job: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError>;
}

/// Client to create a load for.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// Index of the path in the task.
    pub path: u16,
    /// Key that the client proves to the session's own server.
    pub key: SessionKey,
    /// Address of the session's own server; `None` if the server runs no agent.
    pub server: Option<SocketAddr>,
    /// Control of the session: takes progress of long preparations, and stops them.
    pub host: &'a dyn Conductor,
}

impl Opening<'_> {
    /// Returns the address of the session's own server.
    ///
    /// # Errors
    /// [`RpcError::InvalidRequest`] if none was given.
    pub fn server(&self) -> Result<SocketAddr, RpcError> {
        self.server
            .ok_or_else(|| RpcError::InvalidRequest(format!("path {}: no server was given to connect to", self.path)))
    }
}

/// Server programs that are fresh for each session.
pub trait ProgramSource: Debug + Send + Sync {
    /// Returns the memory limit of all served files in one session, in bytes.
    fn memory(&self) -> u64;

    /// Returns the programs of one of a session's `servers`, which share the session's memory evenly.
    ///
    /// # Errors
    /// Fails if the storage to serve cannot be opened.
    fn programs(&self, servers: u64) -> Result<Vec<Arc<dyn Program>>, RpcError>;
}
