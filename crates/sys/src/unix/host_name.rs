//! Name of the host.

/// Returns the name of this host. `None` if it has none.
pub fn host_name() -> Option<String> {
    let name = nix::unistd::gethostname().ok()?.into_string().ok()?;
    (!name.is_empty() && name != "(none)").then_some(name)
}
