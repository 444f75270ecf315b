//! Windows.

pub mod affinity;
pub mod clock;
pub mod cpu_time;
pub mod descriptors;
pub mod handle;
pub mod memory;
pub mod netlink;
pub(crate) mod poll;
pub mod processor;
pub mod protocol_statistics;
pub mod socket;
mod status;
pub mod system;
pub mod tcp;
pub mod terminal;
pub mod thread;
