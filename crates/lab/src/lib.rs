//! Benches out of network namespaces: hosts, links and a device between them, on one Linux machine.
//!
//! A [`Bench`] says what to build, [`Lab::up`] builds it and starts a real agent in each host. Everything is held by
//! descriptors and processes of the lab and nothing has a name outside it, so that the kernel removes all of it when
//! the lab ends, however it ends. [`Lab::keep`] leaves a lab to itself; [`kept`] finds it again.
//!
//! A lab needs Linux. On other systems the crate has the same names, and each call fails and says so
//! ([`LabError::NeedsLinux`]).
//!
//! The lab makes virtual links behave as Ethernet of a set rate and plants faults; it measures nothing.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
#[cfg(target_os = "linux")]
mod linux;
mod options;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::*;
pub use error::LabError;
#[cfg(target_os = "linux")]
pub use linux::*;
pub use options::LabOptions;
