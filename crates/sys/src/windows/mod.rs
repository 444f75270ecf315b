//! Windows.

pub mod clock;
pub mod cpu_time;
pub mod event;
pub mod handle;
pub mod netlink;
mod nt_status;
pub mod processor;
pub mod protocol_statistics;
pub mod socket;
pub mod system;
pub mod thread;
