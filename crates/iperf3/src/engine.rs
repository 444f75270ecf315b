//! The engine: streams to iperf3 servers.

use crate::client;
use crate::job::Job;
use linerate_engine::{Conductor, Counted, Demand, Engine, EngineError, EngineFailure, ForeignServer, Needs};
use linerate_model::{Assignment, Power, Task};
use linerate_streams::Streams;

/// The engine of streams to iperf3 servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Iperf3;

impl Engine for Iperf3 {
    fn name(&self) -> &'static str {
        "iperf3"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Stream(stream) if stream.iperf3.is_some())
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        let job = Job::check(assignment)?;
        // The data move as in any stream.
        let demand = Streams.demand(assignment)?;
        let server = ForeignServer { address: job.server.address, export: EXPORT.to_owned(), user: None };
        let needs = Needs {
            powers: [Power::Stream, Power::Servers].into_iter().collect(),
            servers: vec![server],
            // One for the control connection, and a second one per flow until the server has ended the test.
            descriptors: demand.needs.descriptors.saturating_add(demand.flows).saturating_add(1),
            ..demand.needs
        };
        Ok(Demand { needs, ..demand })
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        Ok(client::run(assignment, host)?)
    }
}

/// Name of the used service, for an agent's list of servers that may be reached.
const EXPORT: &str = "iperf3";
