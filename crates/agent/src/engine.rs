//! The engines that carry trials, behind one front: which one it is follows from the workload.

use linerate_model::{Connect, EndResult, HalfSpec, Prepared, Progress, Workload};
use linerate_nfs::NfsTrial;
use linerate_oncrpc::{RpcError, TestCalls};
use linerate_streams::StreamError;
use linerate_sys::thread::EngineThread;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why an engine failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    #[error(transparent)]
    Streams(#[from] StreamError),
    #[error(transparent)]
    Rpc(#[from] RpcError),
}

/// A half before its start. Dropping it closes everything.
#[derive(Debug)]
pub(crate) enum Half {
    Streams(linerate_streams::Half),
    Rpc(Box<linerate_oncrpc::Half>),
}

/// Checks what is asked for and begins to listen.
pub(crate) fn prepare(spec: &HalfSpec, nfs: &NfsTrial) -> Result<Half, EngineError> {
    Ok(match &spec.workload {
        Workload::Stream(_) | Workload::Transact(_) => Half::Streams(linerate_streams::prepare(spec)?),
        Workload::Rpc(_) => Half::Rpc(Box::new(linerate_oncrpc::prepare(spec, Arc::new(TestCalls))?)),
        Workload::Nfs(_) => Half::Rpc(Box::new(linerate_oncrpc::prepare(spec, Arc::new(nfs.clone()))?)),
    })
}

impl Half {
    pub(crate) fn prepared(&self) -> Prepared {
        match self {
            Self::Streams(half) => half.prepared(),
            Self::Rpc(half) => half.prepared(),
        }
    }

    pub(crate) fn connect(&mut self, connect: &Connect) -> Result<(), EngineError> {
        match self {
            Self::Streams(half) => half.connect(connect)?,
            Self::Rpc(half) => half.connect(connect)?,
        }
        Ok(())
    }

    /// Set to true, it ends [`Half::connect`] early; none where that takes a moment only.
    pub(crate) fn canceller(&self) -> Option<Arc<AtomicBool>> {
        match self {
            Self::Streams(_) => None,
            Self::Rpc(half) => Some(half.canceller()),
        }
    }

    pub(crate) fn start(self, at_ns: u64) -> Result<Running, EngineError> {
        Ok(match self {
            Self::Streams(half) => Running::Streams(half.start(at_ns)?),
            Self::Rpc(half) => Running::Rpc(half.start(at_ns)?),
        })
    }
}

/// A half at work. Dropping it stops it and waits for its threads.
#[derive(Debug)]
pub(crate) enum Running {
    Streams(linerate_streams::Running),
    Rpc(linerate_oncrpc::Running),
}

impl Running {
    pub(crate) fn opens_at(&self) -> u64 {
        match self {
            Self::Streams(running) => running.opens_at(),
            Self::Rpc(running) => running.opens_at(),
        }
    }

    pub(crate) fn closes_at(&self) -> u64 {
        match self {
            Self::Streams(running) => running.closes_at(),
            Self::Rpc(running) => running.closes_at(),
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        match self {
            Self::Streams(running) => running.progress(),
            Self::Rpc(running) => running.progress(),
        }
    }

    pub(crate) fn threads(&self) -> Vec<EngineThread> {
        match self {
            Self::Streams(running) => running.threads(),
            Self::Rpc(running) => running.threads(),
        }
    }

    pub(crate) fn local_addresses(&self) -> Vec<(u16, IpAddr)> {
        match self {
            Self::Streams(running) => running.local_addresses(),
            Self::Rpc(running) => running.local_addresses(),
        }
    }

    pub(crate) fn stop(&self) {
        match self {
            Self::Streams(running) => running.stop(),
            Self::Rpc(running) => running.stop(),
        }
    }

    pub(crate) fn join(self) -> Result<Vec<EndResult>, EngineError> {
        Ok(match self {
            Self::Streams(running) => running.join()?,
            Self::Rpc(running) => running.join()?,
        })
    }
}
