//! The load of a device under test, read by SNMP while trials run.
//!
//! A device answers from figures that it renews every few seconds (net-snmp: CPU every 5 s, interfaces every 3 s), so a
//! reading may be older than the question. [`Watcher`] therefore follows the CPU counters during a trial and uses what
//! changed within it; what did not change is reported as unknown, not as zero.
//!
//! CPU use comes from the first of these that the device has, and [`linerate_model::DeviceLoad::source`] says which:
//! 1. UCD-SNMP-MIB `ssCpuRaw*`: counters of CPU time, so that the share is that of the trial;
//! 2. HOST-RESOURCES-MIB `hrProcessorLoad`: each CPU, but an average over the last minute;
//! 3. UCD-SNMP-MIB `ssCpuIdle`: likewise, all CPUs together.

//!
//! Without the feature `snmp` devices are named all the same, and [`Watcher::open`] fails.

#[cfg(feature = "snmp")]
mod cpu;
mod error;
#[cfg(feature = "snmp")]
mod interfaces;
#[cfg(feature = "snmp")]
mod session;
mod target;
#[cfg(feature = "snmp")]
mod watcher;
#[cfg(feature = "snmp")]
mod wire;
#[cfg(not(feature = "snmp"))]
mod without;

pub use error::SnmpError;
#[cfg(feature = "snmp")]
pub use session::{Device, Reading, Session};
pub use target::{Access, AuthProtocol, PrivacyProtocol, Secret, Target, TargetError};
#[cfg(feature = "snmp")]
pub use watcher::Watcher;
#[cfg(all(feature = "fuzzing", feature = "snmp"))]
pub(crate) use wire::read_answer;
#[cfg(not(feature = "snmp"))]
pub use without::{Device, Watcher};
