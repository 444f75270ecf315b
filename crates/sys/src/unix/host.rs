//! The host.

use std::path::Path;

/// Returns the name of this host. `None` if it has none.
pub fn host_name() -> Option<String> {
    let name = nix::unistd::gethostname().ok()?.into_string().ok()?;
    (!name.is_empty() && name != "(none)").then_some(name)
}

/// Returns the command by which an administrator lets others reach `program` through this system's firewall. `None` if it has none that keeps
/// programs from listening. That of macOS asks the user itself.
pub fn firewall_rule(_program: &Path) -> Option<String> {
    None
}
