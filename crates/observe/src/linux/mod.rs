//! Linux.
//!
//! Everything is read from the network namespace of the thread that asks: interfaces by netlink, counters from
//! `/proc/thread-self/net`. `/sys/class/net` is never used, since it shows the namespace it was mounted in.

pub(crate) mod cache;
pub(crate) mod capability;
pub(crate) mod conntrack;
pub(crate) mod counters;
pub(crate) mod disk;
pub(crate) mod driver;
pub(crate) mod host;
pub(crate) mod kernel_thread;
pub(crate) mod memory;
pub(crate) mod pressure;
pub(crate) mod proc;
pub(crate) mod protocols;
pub(crate) mod qdisc;
pub(crate) mod quota;
pub(crate) mod slot;
pub(crate) mod softnet;
pub(crate) mod sources;
pub(crate) mod stat;
pub(crate) mod thread_clock;
pub(crate) mod watch;
pub(crate) mod wire;
