//! What a host is, what it can do, and what it saw during a trial. It samples; it judges nothing.
//!
//! Everything is read from the network namespace of the thread that asks: interfaces by netlink, counters from
//! `/proc/thread-self/net`. `/sys/class/net` is never used, since it shows the namespace it was mounted in.
#![forbid(unsafe_code)]

mod capability;
mod conntrack;
mod cores;
mod counters;
mod disk;
mod driver;
mod error;
#[cfg(all(feature = "fuzzing", feature = "snmp"))]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod interface;
mod kernel_thread;
mod memory;
mod pressure;
mod proc;
mod protocols;
mod qdisc;
mod quota;
mod sampler;
mod slot;
pub mod snmp;
mod softnet;
mod sources;
mod thread;
mod watch;

pub use capability::capabilities;
pub use counters::counters;
pub use error::ObserveError;
pub use host::{HostOptions, host};
pub use interface::{interface_between, interface_of, interface_towards};
pub use memory::{UsableMemory, usable_memory};
pub use sampler::HostSampler;
pub use watch::Watch;
