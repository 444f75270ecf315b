//! Sockets with the trial's options. Buffers and segment size must be set before a connection is made, because its
//! first packet carries the window scale and the MSS.

use crate::error::StreamError;
use crate::job::Job;
use linerate_engine::{SocketSpec, failed};
use linerate_model::Transport;
use socket2::Socket;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Timeout of calls, so that threads see the clock and a stop.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(100);

/// Returns the properties of listening sockets.
pub(crate) fn listening(job: &Job) -> SocketSpec<'_> {
    SocketSpec { transport: job.transport(), v6: job.v6(), options: job.socket(), bind: None, device: false }
}

/// Creates a socket with the job's options, bound to `address` if there is one.
pub(crate) fn socket(job: &Job, bind: Option<IpAddr>, device: bool) -> Result<Socket, StreamError> {
    let bind = bind.map(|address| SocketAddr::new(address, 0));
    Ok(linerate_engine::socket(SocketSpec {
        transport: job.transport(),
        v6: job.v6(),
        options: job.socket(),
        bind,
        device,
    })?)
}

/// Returns the address that a client's socket is bound to before it connects, if any.
pub(crate) fn client_address(job: &Job) -> Option<IpAddr> {
    match (job.socket().bind_address, job.transport()) {
        (Some(address), _) => Some(address),
        (None, Transport::Tcp) => None,
        // A UDP socket needs a port before it can be connected twice; binding to any address gives it one.
        (None, Transport::Udp) if job.v6() => Some(Ipv6Addr::UNSPECIFIED.into()),
        (None, Transport::Udp) => Some(Ipv4Addr::UNSPECIFIED.into()),
    }
}

/// Sets the timeouts of a persistent socket that its thread relies on.
pub(crate) fn ready(socket: &Socket) -> Result<(), StreamError> {
    socket
        .set_nonblocking(false)
        .and_then(|()| socket.set_read_timeout(Some(CALL_TIMEOUT)))
        .and_then(|()| socket.set_write_timeout(Some(CALL_TIMEOUT)))
        .map_err(failed("setting timeouts"))?;
    Ok(())
}
