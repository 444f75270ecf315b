//! Linux.

pub mod affinity;
pub mod bpf;
pub mod capability;
pub mod cgroup;
pub mod datagram_details;
pub mod epoll;
pub mod error_queue;
pub mod ethtool;
pub mod event;
pub mod landlock;
pub mod link;
pub mod memory;
mod mmsg;
pub mod namespace;
pub mod netfilter;
pub mod netlink;
pub mod offload;
pub mod packet;
pub mod packet_ring;
pub mod process;
pub mod seccomp;
pub mod shaping;
pub mod socket;
pub mod tcp;
pub mod thread;
pub mod udp;
pub mod xdp;
