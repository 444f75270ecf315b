//! Why a socket could not be made or used.

use linerate_model::Transport;
use linerate_sys::socket::{EMFILE, ENFILE};
use std::io;
use std::net::SocketAddr;

/// Why a socket could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The request cannot be carried out; the text says what can.
    #[error("{0}")]
    InvalidRequest(String),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] linerate_sys::Error),
    /// A socket operation failed.
    #[error("{what}: {source}")]
    Socket {
        /// The operation and its object.
        what: String,
        /// Why.
        source: io::Error,
    },
}

/// A trial was started before all its flows had arrived.
#[derive(Debug, thiserror::Error)]
#[error(
    "path {path}: {arrived} of {expected} flows had connected when the trial started; check that the client reached this host"
)]
pub struct FlowsMissing {
    /// The path's index.
    pub path: u16,
    /// Flows that had arrived.
    pub arrived: usize,
    /// Flows the trial needs.
    pub expected: usize,
}

/// `what` failed with the error that follows; where that is a limit of this host, its remedy is told.
pub fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> SocketError {
    let what = what.into();
    move |source| match remedy(&source) {
        Some(remedy) => SocketError::Socket { what: format!("{what} ({remedy})"), source },
        None => SocketError::Socket { what, source },
    }
}

impl SocketError {
    /// Listening on `address` failed with the error that follows. `remedy` is what to do if another program has a port that was asked for
    /// by its number.
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

    /// Connecting to `peer` failed with `source`: an error if that is this host's fault, `source` again if the peer's.
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

/// How to lift the limit of this host that `error` speaks of.
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
    fn a_port_that_is_taken_is_no_lack_of_ports() {
        let listening = |port| {
            let address = SocketAddr::from(([198, 18, 0, 1], port));
            SocketError::listening(address, Transport::Udp, "stop it")(io::ErrorKind::AddrInUse.into()).to_string()
        };
        assert_eq!(listening(5_201), "another program has port 5201 (UDP) of 198.18.0.1: stop it");
        assert!(listening(0).starts_with("listening on 198.18.0.1:0 (UDP)"), "{}", listening(0));
    }

    #[test]
    fn this_hosts_faults_are_not_the_peers() {
        let peer = SocketAddr::from(([198, 18, 0, 1], 7));
        let connecting = |error: io::Error| SocketError::connecting(peer, error).map(|error| error.to_string());
        for (error, remedy) in [
            (io::Error::from_raw_os_error(EMFILE), "ulimit -n"),
            (io::Error::from_raw_os_error(ENFILE), "fs.file-max"),
            (io::ErrorKind::AddrNotAvailable.into(), "ip_local_port_range"),
        ] {
            let own = connecting(error).expect("this host's fault");
            assert!(own.contains(remedy) && own.contains("198.18.0.1:7"), "{own}");
        }
        connecting(io::ErrorKind::ConnectionRefused.into()).expect_err("the peer's fault");
        connecting(io::ErrorKind::TimedOut.into()).expect_err("the peer's fault");
        let accept = failed("accept")(io::Error::from_raw_os_error(EMFILE)).to_string();
        assert!(accept.contains("ulimit -n"), "{accept}");
    }
}
