//! Labs for ordinary users: a user namespace in which they may make networks.

use crate::LabError;
use linerate_sys::namespace;
use std::fs;
use std::sync::OnceLock;

/// User of this process before it moved into a user namespace, where it is root.
static USER_OUTSIDE: OnceLock<u32> = OnceLock::new();

/// Lets a user without privilege build labs: moves the process into a user namespace of its own. To be called first
/// thing in `main`, while there is one thread. Does nothing for who may make networks already.
///
/// A program that only enters or ends a kept lab must not call it: from inside, other user namespaces are out of reach.
pub fn enter_user_namespace() -> Result<(), LabError> {
    let refused = |error: linerate_sys::Error| LabError::NotPermitted { problem: error.to_string(), remedy: remedy() };
    if namespace::may_make_networks().map_err(refused)? {
        return Ok(());
    }
    user_outside();
    namespace::enter_user_namespace().map_err(refused)
}

/// The user's number outside any user namespace that this process moved into.
pub(crate) fn user_outside() -> u32 {
    *USER_OUTSIDE.get_or_init(namespace::effective_user)
}

/// Returns the remedy for an administrator: the settings that forbid user namespaces, by their present values.
fn remedy() -> String {
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")));
    let settings = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    let forbidding: Vec<_> = settings
        .into_iter()
        .filter(|(name, bad, _)| setting(name).is_ok_and(|value| value.trim() == *bad))
        .map(|(name, _, good)| format!("`sysctl -w {name}={good}`"))
        .collect();
    if forbidding.is_empty() {
        return String::from(
            "run as root, or with CAP_NET_ADMIN and CAP_SYS_ADMIN (in a container: allow unshare(2) too)",
        );
    }
    format!("run as root, or let an administrator allow it: {}", forbidding.join(" and "))
}
