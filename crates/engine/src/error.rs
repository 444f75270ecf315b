//! Errors of sockets and of requests that this host cannot carry out.

use linerate_model::Transport;
use linerate_sys::socket::{EMFILE, ENFILE};
use std::io;
use std::net::SocketAddr;

/// Failure on this host: an invalid request, or a socket that could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The request cannot be carried out. The text names an alternative.
    #[error("{0}")]
    InvalidRequest(String),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// A socket operation failed.
    #[error("{what}: {source}")]
    Socket {
        /// Operation and its object.
        what: String,
        /// Cause.
        source: io::Error,
    },
}

/// Start of a trial before all its flows had arrived.
#[derive(Debug, thiserror::Error)]
#[error(
    "path {path}: {arrived} of {expected} flows had connected when the trial started; check that the client reached this host"
)]
pub struct FlowsMissing {
    /// Index of the path.
    pub path: u16,
    /// Number of flows that had arrived.
    pub arrived: usize,
    /// Number of flows of the trial.
    pub expected: usize,
}

/// Creates the error of the operation `what` from its cause. Names the remedy if the cause is a limit of this host.
pub fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> SocketError {
    let what = what.into();
    move |source| match remedy(&source) {
        Some(remedy) => SocketError::Socket { what: format!("{what} ({remedy})"), source },
        None => SocketError::Socket { what, source },
    }
}

impl SocketError {
    /// Creates the error of listening on `address` from its cause. `remedy` applies if another program has the port
    /// that was requested by its number.
    pub fn listening(address: SocketAddr, transport: Transport, remedy: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if source.kind() != io::ErrorKind::AddrInUse || address.port() == 0 {
                return failed(format!("listening on {address} ({transport})"))(source);
            }
            Self::InvalidRequest(format!(
                "another program has port {} ({transport}) of {}: {remedy}",
                address.port(),
                address.ip()
            ))
        }
    }

    /// Creates the error of connecting to `peer` if `source` is a fault of this host. Returns `source` if it is one of
    /// the peer.
    pub fn connecting(peer: SocketAddr, source: io::Error) -> Result<Self, io::Error> {
        // connect(2): "all port numbers in the ephemeral port range are currently in use".
        if source.kind() != io::ErrorKind::AddrNotAvailable {
            return if remedy(&source).is_some() {
                Ok(failed(format!("connecting to {peer}"))(source))
            } else {
                Err(source)
            };
        }
        Ok(Self::Socket { what: format!("connecting to {peer} ({NO_PORT})"), source })
    }
}

const NO_PORT: &str =
    "this host has no port free for it: widen its range, sysctl net.ipv4.ip_local_port_range, or use fewer connections";

/// Returns how to raise the limit of this host that caused `error`.
fn remedy(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        EMFILE => Some("this process has as many files open as it may: raise the limit, ulimit -n"),
        ENFILE => Some("this host has as many files open as it may: raise the limit, sysctl fs.file-max"),
        _ if error.kind() == io::ErrorKind::AddrInUse => Some(NO_PORT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_port_differs_from_lack_of_ports() {
        for (port, text) in [
            (5_201, "another program has port 5201 (UDP) of 198.18.0.1: stop it"),
            (0, "listening on 198.18.0.1:0 (UDP)"),
        ] {
            let address = SocketAddr::from(([198, 18, 0, 1], port));
            let error = SocketError::listening(address, Transport::Udp, "stop it")(io::ErrorKind::AddrInUse.into());
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }

    #[test]
    fn faults_of_this_host_differ_from_those_of_the_peer() {
        let peer = SocketAddr::from(([198, 18, 0, 1], 7));
        for (error, remedy) in [
            (io::Error::from_raw_os_error(EMFILE), "ulimit -n"),
            (io::Error::from_raw_os_error(ENFILE), "fs.file-max"),
            (io::ErrorKind::AddrNotAvailable.into(), "ip_local_port_range"),
        ] {
            let error = SocketError::connecting(peer, error).expect("this host's fault").to_string();
            assert!(error.contains(remedy) && error.contains("198.18.0.1:7"), "{error}");
        }
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::TimedOut] {
            SocketError::connecting(peer, kind.into()).expect_err("the peer's fault");
        }
        let accept = failed("accept")(io::Error::from_raw_os_error(EMFILE)).to_string();
        assert!(accept.contains("ulimit -n"), "{accept}");
    }
}
