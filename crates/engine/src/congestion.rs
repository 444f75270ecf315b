//! Congestion controls that a trial requests by name.

use crate::error::{SocketError, failed};
use linerate_sys::handle::BorrowedSocket;
use linerate_sys::tcp;
use std::io;

/// File with the names of the loaded controls.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// File with the names of the controls that every process may use.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Sets the congestion control `name`.
///
/// # Errors
/// The kernel has no such control, or does not let this process use it. The text names the remedy.
pub(crate) fn set_congestion(socket: BorrowedSocket<'_>, name: &str) -> Result<(), SocketError> {
    match tcp::set_congestion(socket, name) {
        Ok(()) => Ok(()),
        Err(error) => match denial(name, error.kind(), &names(ALLOWED), &names(AVAILABLE)) {
            Some(text) => Err(SocketError::InvalidRequest(text)),
            None => Err(failed(format!("setting congestion control `{name}`"))(error)),
        },
    }
}

/// Returns the names in a file, separated by blanks.
fn names(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Describes why a control cannot be used, and the remedy. Returns `None` if the kernel had another reason.
fn denial(name: &str, error: io::ErrorKind, allowed: &str, available: &str) -> Option<String> {
    match error {
        io::ErrorKind::PermissionDenied => Some(format!(
            "congestion control `{name}`: this host lets every program use only {allowed}. Allow it there (sysctl -w \
             net.ipv4.tcp_allowed_congestion_control=\"{allowed} {name}\"), or start its agent as root with `linerate serve \
             --keep-net-admin`: an agent started by root gives up that privilege otherwise"
        )),
        io::ErrorKind::NotFound => Some(format!(
            "congestion control `{name}`: this host's kernel has {available}. Load it there (modprobe tcp_{name}), or choose one of those"
        )),
        io::ErrorKind::Unsupported => Some(format!(
            "congestion control `{name}`: this host's operating system has none for a connection; leave it out, or run this end on Linux"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_remedy_for_a_missing_or_forbidden_control() {
        let [denied, absent] = [io::ErrorKind::PermissionDenied, io::ErrorKind::NotFound]
            .map(|kind| denial("cubic", kind, "reno bbr", "reno bbr cubic").unwrap_or_default());
        assert!(denied.contains("only reno bbr.") && denied.contains("--keep-net-admin"), "{denied}");
        assert!(denied.contains("tcp_allowed_congestion_control=\"reno bbr cubic\""), "{denied}");
        assert!(absent.contains("kernel has reno bbr cubic") && absent.contains("modprobe tcp_cubic"), "{absent}");
        assert_eq!(denial("cubic", io::ErrorKind::InvalidInput, "", ""), None);
    }
}
