//! The system: version, memory, processor, and which start of which machine it is.

use super::sysctl;
use crate::Error;
pub use crate::host::{firewall_rule, host_name};

/// Returns name and release, as in `FreeBSD 14.3-RELEASE` or `Darwin 24.6.0`.
pub fn version() -> String {
    let part = |name| sysctl::text(name).unwrap_or_else(|_| String::from("unknown"));
    format!("{} {}", part(c"kern.ostype"), part(c"kern.osrelease"))
}

/// Returns the size of main memory in bytes.
///
/// # Errors
/// The call fails.
pub fn memory_bytes() -> Result<u64, Error> {
    sysctl::number(if cfg!(target_os = "macos") { c"hw.memsize" } else { c"hw.physmem" })
}

/// Returns the name of the processor. `None` if it is not known.
pub fn processor() -> Option<String> {
    let name = if cfg!(target_os = "macos") { c"machdep.cpu.brand_string" } else { c"hw.model" };
    sysctl::text(name).ok().filter(|text| !text.is_empty())
}

/// Returns an identifier of this start of this machine.
///
/// # Errors
/// The call fails.
#[cfg(target_os = "macos")]
pub fn boot_id() -> Result<String, Error> {
    sysctl::text(c"kern.bootsessionuuid")
}

/// Returns an identifier of this start of this machine: the machine's identifier, which copies of a virtual machine may share, and the time
/// of the start. If the clock is set, the kernel moves that time.
///
/// # Errors
/// The call fails.
#[cfg(target_os = "freebsd")]
pub fn boot_id() -> Result<String, Error> {
    // struct timeval: the seconds come first.
    let started = sysctl::bytes(c"kern.boottime")?;
    let seconds = started.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    Ok(format!("{} {seconds:x}", sysctl::text(c"kern.hostuuid")?))
}
