//! Congestion controls that a trial asks for by name.

use crate::error::{SocketError, failed};
use socket2::Socket;
use std::io;

/// The names that the kernel has loaded, and those of them that every process may use, as files list them.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Sets the congestion control `name`.
///
/// # Errors
/// The kernel has no such control, or does not let this process use it; the text says what can be done.
pub(crate) fn set_congestion(socket: &Socket, name: &str) -> Result<(), SocketError> {
    let listed =
        |path| std::fs::read_to_string(path).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    match socket.set_tcp_congestion(name.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => match denial(name, error.kind(), &listed(ALLOWED), &listed(AVAILABLE)) {
            Some(text) => Err(SocketError::InvalidRequest(text)),
            None => Err(failed(format!("setting congestion control `{name}`"))(error)),
        },
    }
}

/// Returns why a control cannot be used and what to do. `None` if the kernel gave another reason.
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
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_that_is_not_allowed_or_not_there_has_its_remedy() {
        let refused = |kind| denial("cubic", kind, "reno bbr", "reno bbr cubic").unwrap_or_default();
        let denied = refused(io::ErrorKind::PermissionDenied);
        assert!(denied.contains("only reno bbr.") && denied.contains("--keep-net-admin"), "{denied}");
        assert!(denied.contains("tcp_allowed_congestion_control=\"reno bbr cubic\""), "{denied}");
        let absent = refused(io::ErrorKind::NotFound);
        assert!(absent.contains("kernel has reno bbr cubic") && absent.contains("modprobe tcp_cubic"), "{absent}");
        assert_eq!(denial("cubic", io::ErrorKind::InvalidInput, "", ""), None);
    }
}
