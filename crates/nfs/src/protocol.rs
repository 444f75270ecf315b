//! NFS as the protocol of a trial.

use crate::check::check;
use crate::load::Operations;
use linerate_model::{NfsSpec, Workload};
use linerate_oncrpc::load::Load;
use linerate_oncrpc::server::Program;
use linerate_oncrpc::{Job, Opening, ProgramSource, Protocol, RpcError};
use std::sync::Arc;

/// NFS operations on a server of the trial's own, or on any other.
#[derive(Debug, Clone)]
pub struct NfsTrial {
    /// The programs of the trial's own server.
    pub server: Arc<dyn ProgramSource>,
    /// Whether the load's files are made no faster than the load itself runs: a limit of the agent holds for set-up, too.
    pub paced: bool,
}

fn spec(workload: &Workload) -> Result<&NfsSpec, RpcError> {
    match workload {
        Workload::Nfs(spec) => Ok(spec),
        _ => Err(RpcError::Asked("this trial is not one of NFS".to_owned())),
    }
}

impl Protocol for NfsTrial {
    fn check(&self, workload: &Workload) -> Result<(), RpcError> {
        check(spec(workload)?)
    }

    fn load(&self, job: &Job, opening: &Opening<'_>) -> Result<Arc<dyn Load>, RpcError> {
        Ok(Arc::new(Operations::open(job, spec(&job.workload)?, opening, self.paced)?))
    }

    fn programs(&self, job: &Job) -> Result<Vec<Arc<dyn Program>>, RpcError> {
        self.server.programs(job.key)
    }
}
