//! Windows.

mod acl;
pub mod affinity;
pub mod byte_lock;
pub mod clock;
pub mod cpu_time;
pub mod descriptors;
pub mod epoll;
pub mod event;
pub mod file_identity;
pub mod file_system;
pub mod handle;
pub mod inherited;
pub mod interrupt;
pub mod memory;
pub mod netlink;
pub mod private;
pub mod process;
pub mod processor;
pub mod protocol_statistics;
pub mod socket;
mod status;
pub mod system;
pub mod tcp;
pub mod terminal;
pub mod thread;
pub mod user;
mod wide;
