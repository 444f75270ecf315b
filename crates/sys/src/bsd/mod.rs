//! macOS and FreeBSD.

pub mod affinity;
mod ancillary;
pub mod confinement;
pub mod cpu_time;
pub mod datagram_details;
pub mod error_queue;
pub mod file_cache;
pub mod memory;
pub mod netlink;
pub mod process;
pub mod processor;
pub mod protocol_statistics;
mod records;
pub mod socket;
mod sysctl;
pub mod system;
pub mod tcp;
pub mod thread;
pub mod udp;
