//! A half before its start.

use crate::accept::Acceptor;
use crate::connect;
use crate::error::StreamError;
use crate::flow::{Flow, Shared};
use crate::job::Job;
use crate::running::Running;
use linerate_model::{Connect, EndRole, HalfSpec, Prepared};
use linerate_sys::clock;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One host's part of a trial, listening and perhaps connected, not yet started. Dropping it closes everything.
#[derive(Debug)]
pub struct Half {
    job: Arc<Job>,
    acceptors: Vec<Acceptor>,
    opened: Vec<Flow>,
}

/// Checks what is asked for and begins to listen. Each listener waits for the trial's flows, and for nothing else, for
/// 30 s.
///
/// ```no_run
/// # fn run(spec: &linerate_model::HalfSpec, connect: &linerate_model::Connect) -> Result<(), linerate_streams::StreamError> {
/// let mut half = linerate_streams::prepare(spec)?;
/// println!("{:?}", half.prepared());
/// half.connect(connect)?;
/// let running = half.start(linerate_sys::clock::now() + 10_000_000)?;
/// println!("{:?}", running.join()?);
/// # Ok(())
/// # }
/// ```
pub fn prepare(spec: &HalfSpec) -> Result<Half, StreamError> {
    let job = Arc::new(Job::check(spec)?);
    let mut acceptors = Vec::new();
    let stop = Arc::new(AtomicBool::new(false));
    for (index, end) in spec.ends.iter().enumerate() {
        if let EndRole::Listener { address } = end.role {
            acceptors.push(Acceptor::listen(&job, index, end.path, address, &stop)?);
        }
    }
    Ok(Half { job, acceptors, opened: Vec::new() })
}

impl Half {
    /// Where its listeners listen.
    pub fn prepared(&self) -> Prepared {
        Prepared { listening: self.acceptors.iter().map(|acceptor| (acceptor.path, acceptor.address)).collect() }
    }

    /// Connects this half's openers; at most 5 s for each flow, and 9 s for all.
    pub fn connect(&mut self, connect: &Connect) -> Result<(), StreamError> {
        let deadline = clock::now() + connect::ALL_NS;
        for (index, end) in self.job.ends.iter().enumerate() {
            if end.role != EndRole::Opener {
                continue;
            }
            let Some(listener) = connect.listeners.get(&end.path) else {
                return Err(StreamError::Asked(format!("path {}: no listener was given to connect to", end.path)));
            };
            self.opened.extend(connect::open(&self.job, index, end.path, *listener, deadline)?);
        }
        Ok(())
    }

    /// Starts the load at `at_ns` on [`linerate_sys::clock::now`]'s clock. All flows must have connected.
    pub fn start(self, at_ns: u64) -> Result<Running, StreamError> {
        let Self { job, acceptors, opened: mut flows } = self;
        for end in job.ends.iter().filter(|end| end.role == EndRole::Opener) {
            let expected = job.hellos(end.path).len();
            let arrived = flows.iter().filter(|flow| flow.hello.path == end.path).count();
            if arrived != expected {
                return Err(linerate_engine::FlowsMissing { path: end.path, arrived, expected }.into());
            }
        }
        for acceptor in acceptors {
            flows.extend(acceptor.finish(&job)?);
        }
        let job = Arc::into_inner(job).expect("the accepting threads have ended and gave up theirs");
        let timeline = job.timeline(at_ns);
        Running::spawn(Shared::new(job, timeline, flows))
    }
}
