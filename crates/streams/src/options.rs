//! Sockets with the trial's options set. Buffers and segment size must be set before a connection is made, for the
//! window scale and the MSS are told in its first packet.

use crate::error::StreamError;
use crate::job::Job;
use linerate_engine::SocketSpec;
use linerate_model::Transport;
use socket2::Socket;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Calls give up after this, so that threads see the clock and a stop.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(100);

/// The properties of sockets that listen.
pub(crate) fn listening(job: &Job) -> SocketSpec<'_> {
    SocketSpec { transport: job.transport(), v6: job.v6(), options: job.socket(), bind: None, device: false }
}

/// A socket with the job's options, bound to `address` if one is given.
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

/// The address a client's socket is bound to before it connects, if any.
pub(crate) fn client_address(job: &Job) -> Option<IpAddr> {
    // A UDP socket needs a port before it can be connected twice; binding to any address gives it one.
    let any = || if job.v6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    job.socket().bind_address.or_else(|| (job.transport() == Transport::Udp).then(any))
}

/// Gives a standing socket the timeouts that its thread relies on.
pub(crate) fn ready(socket: &Socket) -> Result<(), StreamError> {
    socket
        .set_nonblocking(false)
        .and_then(|()| socket.set_read_timeout(Some(CALL_TIMEOUT)))
        .and_then(|()| socket.set_write_timeout(Some(CALL_TIMEOUT)))
        .map_err(StreamError::socket("setting timeouts"))
}
