//! Sockets with the trial's options set. Buffers and segment size must be set before a connection is made, for the
//! window scale and the MSS are told in its first packet.

use crate::error::StreamError;
use crate::job::Job;
use linerate_model::Transport;
use linerate_sys::socket::{force_receive_buffer, force_send_buffer};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// A UDP receiver's buffer unless another is asked for: what arrives within a few milliseconds of a busy core. The
/// system's default of 208 KiB overflows at a few Gbit/s whenever the thread waits for a core.
const UDP_RECEIVE_BUFFER: usize = 4 << 20;
/// Calls give up after this, so that threads see the clock and a stop.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(100);
/// Data unacknowledged for so long mean that the peer is gone (TCP_USER_TIMEOUT).
const PEER_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket with the job's options, bound to `address` if one is given.
pub(crate) fn socket(job: &Job, bind: Option<IpAddr>, device: bool) -> Result<Socket, StreamError> {
    let (kind, protocol) = match job.transport() {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let domain = if job.v6() { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, kind, Some(protocol)).map_err(StreamError::socket("socket"))?;
    let options = job.socket();
    if let Some(dscp) = options.dscp {
        // The upper six bits of the old type of service: RFC 2474 section 3.
        let tos = u32::from(dscp) << 2;
        if job.v6() { socket.set_tclass_v6(tos) } else { socket.set_tos_v4(tos) }
            .map_err(StreamError::socket(format!("setting DSCP {dscp}")))?;
    }
    if let Some(bytes) = options.send_buffer {
        let set = send_buffer(&socket, bytes.get() as usize)?;
        check_met("send", "wmem_max", bytes.get(), set)?;
    }
    if let Some(bytes) = options.receive_buffer {
        let set = receive_buffer(&socket, bytes.get() as usize)?;
        check_met("receive", "rmem_max", bytes.get(), set)?;
    } else if job.transport() == Transport::Udp {
        // What the system grants of it will do.
        receive_buffer(&socket, UDP_RECEIVE_BUFFER)?;
    }
    if job.transport() == Transport::Tcp {
        tcp_options(job, &socket)?;
    }
    if device && let Some(device) = &options.bind_device {
        socket
            .bind_device(Some(device.as_bytes()))
            .map_err(StreamError::socket(format!("binding to interface {device} (is it there? see `ip link`)")))?;
    }
    if let Some(address) = bind {
        socket.bind(&SockAddr::from(SocketAddr::new(address, 0))).map_err(StreamError::socket(format!(
            "binding to {address} (it must be an address of this host: see `ip address`)"
        )))?;
    }
    Ok(socket)
}

/// The address an opener's socket is bound to before it connects, if any.
pub(crate) fn opener_address(job: &Job) -> Option<IpAddr> {
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

fn tcp_options(job: &Job, socket: &Socket) -> Result<(), StreamError> {
    let options = job.socket();
    if let Some(name) = &options.congestion {
        socket.set_tcp_congestion(name.as_bytes()).map_err(StreamError::socket(format!(
            "setting congestion control `{name}` (without privilege only those in net.ipv4.tcp_allowed_congestion_control)"
        )))?;
    }
    if let Some(mss) = options.mss {
        socket.set_tcp_mss(mss.into()).map_err(StreamError::socket(format!("setting an MSS of {mss}")))?;
    }
    socket
        .set_tcp_nodelay(true)
        .and_then(|()| socket.set_tcp_user_timeout(Some(PEER_TIMEOUT)))
        .map_err(StreamError::socket("setting TCP options"))
}

/// Beyond the system's limit where permitted, up to it otherwise; returns what was set.
fn send_buffer(socket: &Socket, bytes: usize) -> Result<usize, StreamError> {
    let setting = || StreamError::socket(format!("setting a send buffer of {bytes} bytes"));
    if force_send_buffer(socket.as_fd(), bytes as i32).is_err() {
        socket.set_send_buffer_size(bytes).map_err(setting())?;
    }
    // The kernel doubles what is asked for, to have room for its own records (socket(7)), and tells the double.
    Ok(socket.send_buffer_size().map_err(setting())? / 2)
}

/// As [`send_buffer`].
fn receive_buffer(socket: &Socket, bytes: usize) -> Result<usize, StreamError> {
    let setting = || StreamError::socket(format!("setting a receive buffer of {bytes} bytes"));
    if force_receive_buffer(socket.as_fd(), bytes as i32).is_err() {
        socket.set_recv_buffer_size(bytes).map_err(setting())?;
    }
    Ok(socket.recv_buffer_size().map_err(setting())? / 2)
}

/// A size that was asked for must be had: the kernel cuts it to its limit without a word.
fn check_met(name: &str, limit: &str, wanted: u64, set: usize) -> Result<(), StreamError> {
    if set as u64 >= wanted {
        return Ok(());
    }
    Err(StreamError::Asked(format!(
        "a {name} buffer of {wanted} bytes: this host allows {set}; run with CAP_NET_ADMIN, raise the limit (sysctl -w net.core.{limit}={wanted}), or ask for less"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, sysctl: &str, set: fn(&Socket, usize) -> Result<usize, StreamError>) {
        let limit = std::fs::read_to_string(format!("/proc/sys/net/core/{sysctl}")).expect("sysctl");
        let limit: usize = limit.trim().parse().expect("a number");
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("socket");
        for wanted in [4_000, 100_000, limit, limit + 4_096] {
            let got = set(&socket, wanted).expect("sets");
            match check_met(name, sysctl, wanted as u64, got) {
                Ok(()) => assert!(got >= wanted, "{name}: {got} of {wanted}"),
                // Without privilege.
                Err(error) => {
                    assert!(wanted > limit && got == limit, "{name}: {got} of {wanted}, limit {limit}");
                    assert!(error.to_string().contains(&format!("net.core.{sysctl}={wanted}")), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_buffer_is_as_large_as_asked_for_or_the_limit_is_named() {
        check("send", "wmem_max", send_buffer);
        check("receive", "rmem_max", receive_buffer);
        check_met("send", "wmem_max", 5_000, 4_999).expect_err("one byte is missing");
    }
}
