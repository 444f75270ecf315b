//! Windows.

pub mod affinity;
pub mod clock;
pub mod cpu_time;
pub mod descriptors;
pub mod epoll;
pub mod error_queue;
pub mod event;
pub mod handle;
pub mod memory;
pub mod netlink;
mod nt_status;
pub mod processor;
pub mod protocol_statistics;
pub mod socket;
pub mod system;
pub mod tcp;
pub mod terminal;
pub mod thread;
