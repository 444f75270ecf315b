//! A half before its start.

use crate::client::Caller;
use crate::error::RpcError;
use crate::flow::{Flow, Shared, open};
use crate::job::Job;
use crate::load::Load;
use crate::protocol::{Opening, Protocol};
use crate::running::Running;
use crate::running_server::RunningServer;
use linerate_model::{Connect, EndRole, HalfSpec, Prepared};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All flows must be connected after this: before those who wait for it give up.
const ALL_NS: u64 = 9_000_000_000;
/// A greeting is answered within this.
const GREETING: Nanos = Nanos::from_secs(5);

/// One host's part of a trial: its servers at work, its flows perhaps connected, not yet started. Dropping it closes
/// everything.
#[derive(Debug)]
pub struct Half {
    job: Job,
    protocol: Arc<dyn Protocol>,
    servers: Vec<RunningServer>,
    opened: Vec<(Flow, Caller)>,
    loads: Vec<Arc<dyn Load>>,
    cancelled: Arc<AtomicBool>,
}

/// Checks what is asked for and starts the servers of this half's listening ends. They carry data for nobody but the trial.
///
/// # Errors
/// Fails if what is asked for cannot be done, or a server cannot listen.
pub fn prepare(spec: &HalfSpec, protocol: Arc<dyn Protocol>) -> Result<Half, RpcError> {
    let job = Job::check(spec, &*protocol)?;
    let mut servers = Vec::new();
    for (index, end) in spec.ends.iter().enumerate() {
        if let EndRole::Listener { address } = end.role {
            servers.push(RunningServer::start(&job, &*protocol, index, end.path, address)?);
        }
    }
    Ok(Half { job, protocol, servers, opened: Vec::new(), loads: Vec::new(), cancelled: Arc::default() })
}

impl Half {
    /// Where its servers listen.
    pub fn prepared(&self) -> Prepared {
        Prepared { listening: self.servers.iter().map(|server| (server.path, server.address())).collect() }
    }

    /// Set to true by whoever holds it, it ends [`Half::connect`] early: what a load needs on its server may take long to make.
    pub fn canceller(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// Connects this half's flows and makes what their calls need on the server; the connecting takes 9 s at the most.
    pub fn connect(&mut self, connect: &Connect) -> Result<(), RpcError> {
        for (index, end) in self.job.ends.iter().enumerate() {
            if end.role != EndRole::Opener {
                continue;
            }
            let listener = connect.listeners.get(&end.path).copied();
            let opening = Opening { path: end.path, listener, cancelled: &self.cancelled };
            let load = self.protocol.load(&self.job, &opening)?;
            // From here on the load is finished, whatever else fails.
            self.loads.push(Arc::clone(&load));
            let deadline = clock::now() + ALL_NS;
            for number in 0..self.job.workload.flows() {
                let (mut caller, local) = open(&self.job, load.server(), deadline)?;
                let (to, credential) = load.greeting();
                caller.ask("a null call", to, credential, &[], GREETING)?;
                let flow = Flow { end: index, path: end.path, number, local, load: Arc::clone(&load) };
                self.opened.push((flow, caller));
            }
        }
        Ok(())
    }

    /// Starts the load at `at_ns` on [`linerate_sys::clock::now`]'s clock. All flows must have connected.
    pub fn start(mut self, at_ns: u64) -> Result<Running, RpcError> {
        let timeline = self.job.timeline(at_ns);
        let expected = usize::from(self.job.workload.flows());
        for end in self.job.ends.iter().filter(|end| end.role == EndRole::Opener) {
            let arrived = self.opened.iter().filter(|(flow, _)| flow.path == end.path).count();
            if arrived != expected {
                return Err(linerate_engine::FlowsMissing { path: end.path, arrived, expected }.into());
            }
        }
        for server in &self.servers {
            server.begin(expected, timeline)?;
        }
        let (flows, callers) = std::mem::take(&mut self.opened).into_iter().unzip();
        let (servers, loads) = (std::mem::take(&mut self.servers), std::mem::take(&mut self.loads));
        Running::spawn(Shared::new(self.job.clone(), timeline, flows), callers, servers, loads)
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        for load in self.loads.drain(..) {
            // The trial was given up before it began; whoever gave it up has its reason.
            let _ = load.finish();
        }
    }
}
