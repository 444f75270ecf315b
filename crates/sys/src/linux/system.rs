//! The system: its name, and which start of which machine it is.

use crate::Error;
pub use crate::host::{firewall_rule, host_name};
use std::fs;
use std::io;

/// Returns an identifier of this start of this machine (random(4)).
///
/// # Errors
/// /proc cannot be read.
pub fn boot_id() -> Result<String, Error> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    let id = fs::read_to_string(FILE).map_err(|error: io::Error| Error::new("read", FILE, error))?;
    Ok(id.trim().to_owned())
}
