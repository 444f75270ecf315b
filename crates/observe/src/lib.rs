//! What a host is, what it can do, and what it saw during a trial. It samples; it judges nothing.
//!
//! Linux has a folder, and all other operating systems have one, with the same names.
#![forbid(unsafe_code)]

mod cores;
mod error;
#[cfg(all(feature = "fuzzing", feature = "snmp"))]
#[doc(hidden)]
pub mod fuzzing;
mod growth;
mod host_options;
mod interface;
mod interface_counters;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
mod sampler;
pub mod snmp;
mod thread;
mod usable_memory;

pub use capability::capabilities;
pub use counters::counters;
pub use error::ObserveError;
pub use host::host;
pub use host_options::HostOptions;
pub use interface::{interface_between, interface_of, interface_towards};
#[cfg(target_os = "linux")]
use linux::*;
pub use memory::usable_memory;
#[cfg(not(target_os = "linux"))]
use portable::*;
pub use sampler::HostSampler;
pub use usable_memory::UsableMemory;
pub use watch::Watch;
