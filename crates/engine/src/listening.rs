//! How a host's ends listen for a trial's data: for whom, and at which ports.

use crate::error::{SocketError, failed};
use crate::peers::AllowedPeers;
use crate::reply_allowance::StrangerReplies;
use linerate_model::Transport;
use socket2::{SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4_096;

/// How the ends of a session listen.
#[derive(Debug, Clone, Default)]
pub struct ListenOptions {
    /// Who may open data connections.
    pub peers: AllowedPeers,
    /// The ports that are listened at.
    pub ports: DataPorts,
    /// What strangers may be sent.
    pub replies: Arc<StrangerReplies>,
}

/// The ports that trials listen at; the kernel's choice by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataPorts(Option<(u16, u16)>);

impl DataPorts {
    /// Ports below this are those of system services.
    const FIRST: u16 = 1_024;

    /// Binds `socket` at `address` to a free port. One of TCP listens afterwards.
    ///
    /// # Errors
    /// The address is none of this host, or all ports are taken.
    pub fn bind_in(self, socket: &Socket, address: IpAddr) -> Result<(), SocketError> {
        let is_tcp = socket.r#type().map_err(failed("getsockopt(SO_TYPE)"))? == Type::STREAM;
        let bind = |port| socket.bind(&SockAddr::from(SocketAddr::new(address, port)));
        let binding = || failed(format!("binding to {address} (it must be an address of this host: see `ip address`)"));
        let listen = || if is_tcp { socket.listen(BACKLOG) } else { Ok(()) };
        let Some((first, last)) = self.0 else {
            bind(0).map_err(binding())?;
            return listen().map_err(failed(format!("listening on {address}")));
        };
        // Connections of the trial before may still close: a port is free as soon as nobody listens there. Sockets that may share a
        // port so are found out only when they listen, and then it is too late for another port.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if is_tcp {
            socket.set_reuse_address(true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        }
        for port in first..=last {
            match bind(port) {
                Ok(()) => return listen().map_err(failed(format!("listening on {address}, port {port}"))),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => (),
                Err(error) => return Err(binding()(error)),
            }
        }
        let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
        Err(SocketError::InvalidRequest(format!(
            "all ports {self} ({transport}) of {address} are taken: widen --data-ports, or wait until other trials are over"
        )))
    }

    /// Checks that there are as many ports as `sockets` of one session.
    ///
    /// # Errors
    /// There are fewer.
    pub fn check(self, sockets: usize) -> Result<(), SocketError> {
        match self.0.map(|(first, last)| usize::from(last - first) + 1) {
            Some(ports) if ports < sockets => Err(SocketError::InvalidRequest(format!(
                "this trial takes {sockets} UDP ports of this host, one for each flow and listener, and --data-ports {self} has {ports}: \
                 widen it there, or use fewer flows"
            ))),
            _ => Ok(()),
        }
    }
}

impl FromStr for DataPorts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ends = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.parse().ok().filter(|port| *port >= Self::FIRST);
        match (port(ends.0), port(ends.1)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(Some((first, last)))),
            _ => Err(format!("expected ports from {} on, the lower one first, as in 5000-5010", Self::FIRST)),
        }
    }
}

impl fmt::Display for DataPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((first, last)) => write!(f, "{first}-{last}"),
            None => f.write_str("of the kernel's choice"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Protocol};
    use std::net::Ipv4Addr;

    /// An address of loopback at which nobody else takes a port.
    fn here() -> IpAddr {
        let [.., high, low] = std::process::id().to_be_bytes();
        Ipv4Addr::new(127, 99, high, low).into()
    }

    fn bound(ports: DataPorts, transport: Transport) -> Result<(Socket, u16), String> {
        let (kind, protocol) = match transport {
            Transport::Tcp => (Type::STREAM, Protocol::TCP),
            Transport::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let socket = Socket::new(Domain::IPV4, kind, Some(protocol)).expect("a socket");
        ports.bind_in(&socket, here()).map_err(|error| error.to_string())?;
        let port = socket.local_addr().expect("bound").as_socket().expect("of the Internet").port();
        Ok((socket, port))
    }

    #[test]
    fn a_range_is_used_up_and_given_back() {
        for transport in [Transport::Tcp, Transport::Udp] {
            // A port that was free a moment ago, and is the test's own while this socket has it.
            let (held, port) = bound(DataPorts::default(), transport).expect("a port");
            let one = DataPorts(Some((port, port)));
            let error = bound(one, transport).expect_err("it is taken");
            assert!(
                error.contains(&format!("{port}-{port} ({transport})")) && error.contains("--data-ports"),
                "{error}"
            );
            drop(held);
            let (_own, again) = bound(one, transport).expect("free again");
            assert_eq!(again, port);
        }
    }

    #[test]
    fn a_port_whose_last_connection_has_just_closed_is_free() {
        let (_, port) = bound(DataPorts::default(), Transport::Tcp).expect("a port");
        let one = DataPorts(Some((port, port)));
        let (listener, _) = bound(one, Transport::Tcp).expect("a port");
        let client = std::net::TcpStream::connect((here(), port)).expect("connects");
        // Who closes first keeps the port for a minute (TIME_WAIT).
        drop(listener.accept().expect("accepts"));
        drop((client, listener));
        bound(one, Transport::Tcp).expect("free");
    }

    #[test]
    fn ranges_are_read_and_checked() {
        for (text, read) in [("5000-5010", "5000-5010"), ("1024", "1024-1024"), ("1024-65535", "1024-65535")] {
            assert_eq!(text.parse().map(|ports: DataPorts| ports.to_string()), Ok(read.to_owned()));
        }
        for wrong in ["", "-", "5010-5000", "80-90", "5000-", "5000-70000", "5000:5010", "0"] {
            assert!(wrong.parse::<DataPorts>().is_err_and(|error| error.contains("5000-5010")), "{wrong}");
        }
        let ports: DataPorts = "5000-5010".parse().expect("valid");
        ports.check(11).expect("as many");
        let error = ports.check(12).expect_err("one more").to_string();
        assert!(error.contains("12 UDP ports") && error.contains("has 11"), "{error}");
        DataPorts::default().check(60_000).expect("the kernel has more");
    }
}
