//! Windows.

pub mod affinity;
pub mod clock;
pub mod cpu_time;
pub mod datagram_details;
pub mod descriptors;
pub mod echo_requests;
pub mod epoll;
pub mod error_queue;
pub mod event;
pub mod handle;
pub mod memory;
mod message;
pub mod netlink;
pub mod processor;
pub mod protocol_statistics;
pub mod socket;
mod status;
pub mod system;
pub mod tcp;
pub mod terminal;
pub mod thread;
pub mod udp;
