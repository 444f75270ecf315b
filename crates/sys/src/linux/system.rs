//! The system: its name, and which start of which machine it is.

use crate::Error;
use std::fs;
use std::io;
use std::path::Path;

/// Returns the name of this host. `None` if it has none.
pub fn host_name() -> Option<String> {
    let name = nix::unistd::gethostname().ok()?.into_string().ok()?;
    (!name.is_empty() && name != "(none)").then_some(name)
}

/// Returns the command by which an administrator lets others reach `program` through this system's firewall. `None` if it has none that keeps
/// programs from listening.
pub fn firewall_rule(_program: &Path) -> Option<String> {
    None
}

/// Returns an identifier of this start of this machine (random(4)).
///
/// # Errors
/// /proc cannot be read.
pub fn boot_id() -> Result<String, Error> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let id = fs::read_to_string(FILE).map_err(|error: io::Error| Error::new("read", FILE, error))?;
    Ok(id.trim().to_owned())
}
