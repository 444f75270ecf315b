//! The loop every command runs: ask the method for the next trial, run it through the agents, keep it, repeat.
//!
//! There is one way to run a trial, and it is the `session` module: through the agents' API, whether they are in this
//! process, in the lab or on other machines.
#![forbid(unsafe_code)]

mod agents;
mod clock;
mod clock_exchanges;
mod control_agents;
mod device_load;
mod error;
mod event;
mod intervals;
mod run;
mod run_keeper;
mod served_run;
mod session;
mod stream_events;
#[cfg(test)]
mod tests;

pub use agents::{Agents, OpenSession};
pub use control_agents::{AgentHandle, ControlAgents};
pub use device_load::DeviceWatch;
pub use error::{HostFailure, RunError};
pub use event::Event;
pub use intervals::Intervals;
pub use run::{BenchWatch, Ended, Origin, Resumed, Run};
pub use run_keeper::{Keep, KeepRun};
pub use served_run::ServedRun;
pub use stream_events::Telling;
