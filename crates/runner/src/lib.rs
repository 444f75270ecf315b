//! The loop every command runs: ask the method for the next trial, run it through the agents, keep it, repeat.
//!
//! There is one way to run a trial, and it is the `trial` module: through the agents' API, whether they are in this process, in
//! the lab or on other machines.
#![forbid(unsafe_code)]

mod copy;
mod copy_trial;
mod device;
mod device_load;
mod error;
mod frame_trial;
mod ladder;
mod peer;
mod run;
mod trial;

pub use copy::{CopyEvent, CopyRun};
pub use device::{DeviceEvent, DeviceRun};
pub use device_load::DeviceWatch;
pub use error::RunError;
pub use peer::{Peer, Peers};
pub use run::{Asked, Event, Outcome, Run};
