//! What a trial of calls speaks: the part of it that differs between linerate's own program and NFS.

use crate::error::RpcError;
use crate::job::Job;
use crate::load::{Calls, Load};
use crate::program::TestProgram;
use crate::server::Program;
use linerate_model::{RpcSpec, Transport, TrialKey, Workload};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A protocol over ONC RPC: its checks, the load of its callers and the programs of its servers.
pub trait Protocol: Debug + Send + Sync {
    /// Checks everything of `workload` that can be checked without a peer.
    ///
    /// # Errors
    /// [`RpcError::Asked`] says what to ask for instead, or that the workload is of another protocol.
    fn check(&self, workload: &Workload) -> Result<(), RpcError>;

    /// Returns the load of one calling end, after making what its calls need on the server.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses; what was made on it by then is removed.
    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError>;

    /// Returns the programs of one listening end.
    ///
    /// # Errors
    /// Fails if what they are to serve cannot be opened.
    fn programs(&self, job: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError>;
}

/// The end whose load is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The path's index in the trial.
    pub path: u16,
    /// Where the trial's own server listens; `None` if the server runs no agent.
    pub listener: Option<SocketAddr>,
    /// Set to true, it ends the set-up of the load early.
    pub cancelled: &'a AtomicBool,
}

impl Opening<'_> {
    /// Returns the address of the trial's own server.
    ///
    /// # Errors
    /// [`RpcError::Asked`] if none was given.
    pub fn listener(&self) -> Result<SocketAddr, RpcError> {
        let missing = || RpcError::Asked(format!("path {}: no listener was given to connect to", self.path));
        self.listener.ok_or_else(missing)
    }
}

/// Server programs that are fresh for each trial.
pub trait ProgramSource: Debug + Send + Sync {
    /// Returns the programs of one server, which carry data only for callers that show `key`.
    ///
    /// # Errors
    /// Fails if what they are to serve cannot be opened.
    fn programs(&self, key: TrialKey) -> Result<Vec<Arc<dyn Program>>, RpcError>;
}

/// Calls of one size to linerate's own program.
#[derive(Debug, Clone, Copy)]
pub struct TestCalls;

impl TestCalls {
    fn spec(workload: &Workload) -> Result<&RpcSpec, RpcError> {
        match workload {
            Workload::Rpc(spec) => Ok(spec),
            _ => Err(RpcError::Asked("this trial is not one of RPC calls".to_owned())),
        }
    }
}

impl Protocol for TestCalls {
    fn check(&self, workload: &Workload) -> Result<(), RpcError> {
        let spec = Self::spec(workload)?;
        let (over, most) = match spec.transport {
            Transport::Tcp => ("TCP", RpcSpec::TCP_MAXIMUM),
            Transport::Udp => ("UDP", RpcSpec::UDP_MAXIMUM),
        };
        let unit = spec.unit_bytes.get();
        if unit > most {
            return Err(RpcError::Asked(format!("a unit of {unit} bytes over {over}: choose at most {most}")));
        }
        Ok(())
    }

    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError> {
        let spec = Self::spec(&job.workload)?;
        Ok(Arc::new(Calls::new(spec, &job.key, opening.listener()?)))
    }

    fn programs(&self, job: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError> {
        Ok(vec![Arc::new(TestProgram::new(Some(job.key)))])
    }
}
