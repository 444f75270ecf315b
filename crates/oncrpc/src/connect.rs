//! Connects a flow of calls to its server.

use crate::client::{Caller, Retransmission};
use crate::error::RpcError;
use crate::job::Job;
use crate::privileged::socket_from_privileged_port;
use linerate_engine::{SocketError, SocketSpec, Stop};
use linerate_model::Transport;
use linerate_sys::clock;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

/// Time that a server has to take a connection.
const CONNECT_NS: u64 = 5_000_000_000;

/// Connects one flow to `server`: a TCP connection, or a UDP socket that receives from no other host. Returns the
/// caller and its local address.
///
/// # Errors
/// Fails if the server does not answer in time or refuses, no socket can be made, or `stop` was set.
pub fn connect_flow(job: &Job, server: SocketAddr, stop: &Arc<Stop>) -> Result<(Caller, SocketAddr), RpcError> {
    // A UDP socket is bound even without a given address, so that a lack of ports shows at once.
    let any: IpAddr = if job.v6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let default_address = (job.transport() == Transport::Udp).then_some(any);
    let bind = job.socket().bind_address.or(default_address).map(|address| SocketAddr::new(address, 0));
    let spec = SocketSpec { transport: job.transport(), v6: job.v6(), options: job.socket(), bind, device: true };
    let socket =
        if job.has_foreign_server() { socket_from_privileged_port(spec)? } else { linerate_engine::socket(spec)? };
    let connected =
        linerate_engine::connect(&socket, server, clock::now() + CONNECT_NS, stop.flag()).map_err(|error| {
            SocketError::connecting(server, error).map_or_else(
                |error| RpcError::NoAnswer {
                    server,
                    what: "a connection".to_owned(),
                    seconds: CONNECT_NS / 1_000_000_000,
                    reason: error.to_string(),
                },
                RpcError::from,
            )
        })?;
    if !connected {
        return Err(RpcError::Stopped);
    }
    let local = socket.local_addr().map_err(RpcError::socket("getsockname"))?;
    let local = local.as_socket().expect("an IP socket has an IP address");
    let caller = match job.transport() {
        Transport::Tcp => Caller::tcp(socket.into())?,
        Transport::Udp => Caller::udp(UdpSocket::from(socket), Retransmission::default())?,
    };
    Ok((caller.until(stop), local))
}
