//! Sockets with a trial's options.
//!
//! Buffers and segment size must be set before a connection is made, because its first packet carries the window scale
//! and the MSS.

use crate::PEER_GONE;
use crate::congestion::set_congestion;
use crate::error::{SocketError, failed};
use crate::zone::own_with_zone;
use linerate_model::{SocketOptions, Transport};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::{BUFFER_FACTOR, bind_device, force_receive_buffer, force_send_buffer, set_traffic_class};
use linerate_sys::tcp;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::net::SocketAddr;

/// Default receive buffer of UDP: the datagrams of a few milliseconds, for a busy core. The system's default of 208 KiB
/// overflows at a few Gbit/s whenever the thread waits for a core.
const UDP_RECEIVE_BUFFER: usize = 4 << 20;

/// Properties of a socket.
#[derive(Debug, Clone, Copy)]
pub struct SocketSpec<'a> {
    /// Transport protocol.
    pub transport: Transport,
    /// Whether it uses IPv6, not IPv4.
    pub v6: bool,
    /// Options of the trial.
    pub options: &'a SocketOptions,
    /// Local address. `None` leaves it to the kernel.
    pub bind: Option<SocketAddr>,
    /// Whether to bind to the interface of the options. Connecting ends do, listening ends do not.
    pub device: bool,
}

/// Opens a socket with its options.
///
/// # Errors
/// Fails if this host cannot set an option. The text names the remedy.
pub fn socket(spec: SocketSpec<'_>) -> Result<Socket, SocketError> {
    let SocketSpec { transport, v6, options, .. } = spec;
    let (kind, protocol) = match transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp => (Type::DGRAM, Protocol::UDP),
    };
    let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, kind, Some(protocol)).map_err(failed("socket"))?;
    set_options(&socket, transport, v6, options)?;
    if spec.device
        && let Some(device) = &options.bind_device
    {
        bind_device(socket.as_socket(), v6, device)
            .map_err(failed(format!("binding to interface {device} (is it there? `linerate probe` lists them)")))?;
    }
    if let Some(address) = spec.bind {
        // A socket that is bound to an interface has its zone.
        let has_zone = spec.device && options.bind_device.is_some();
        let address = if has_zone { address } else { own_with_zone(address) };
        socket.bind(&SockAddr::from(address)).map_err(failed(format!(
            "binding to {} (it must be an address of this host: see `ip address`)",
            address.ip()
        )))?;
    }
    Ok(socket)
}

/// Sets the options of all kinds of ends.
///
/// # Errors
/// See [`socket`].
pub(crate) fn set_options(
    socket: &Socket,
    transport: Transport,
    v6: bool,
    options: &SocketOptions,
) -> Result<(), SocketError> {
    if let Some(dscp) = options.dscp {
        // The upper six bits of the old type of service: RFC 2474 section 3.
        set_traffic_class(socket.as_socket(), v6, dscp << 2).map_err(failed(format!("setting DSCP {dscp}")))?;
    }
    if let Some(bytes) = options.send_buffer {
        let set = send_buffer(socket, bytes.get() as usize)?;
        check_met("send", "wmem_max", bytes.get(), set)?;
    }
    if let Some(bytes) = options.receive_buffer {
        let set = receive_buffer(socket, bytes.get() as usize)?;
        check_met("receive", "rmem_max", bytes.get(), set)?;
    } else if transport == Transport::Udp {
        // A smaller buffer, by the system's limit, is acceptable.
        receive_buffer(socket, UDP_RECEIVE_BUFFER)?;
    }
    if transport == Transport::Tcp {
        tcp_options(options, socket)?;
    }
    Ok(())
}

/// Checks that a connection accepted by another listener can have its receive buffer. The SYN-ACK has announced the
/// window scale before, from the system's limit (tcp(7), `tcp_rmem`).
///
/// # Errors
/// The buffer is larger.
pub(crate) fn check_receive_buffer(options: &SocketOptions) -> Result<(), SocketError> {
    let Some(size) = options.receive_buffer else { return Ok(()) };
    let limits = ["/proc/sys/net/core/rmem_max", "/proc/sys/net/ipv4/tcp_rmem"].map(last_number);
    match limits.into_iter().flatten().max() {
        Some(limit) if size.get() > limit => Err(SocketError::InvalidRequest(format!(
            "a receive buffer of {size} bytes at a port that others share: this host's connections get {limit}; raise the limit \
             (sysctl -w net.core.rmem_max={}), or give the agent --data-ports",
            size.get()
        ))),
        _ => Ok(()),
    }
}

/// Reads the last number in a file.
fn last_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.split_whitespace().last()?.parse().ok()
}

fn tcp_options(options: &SocketOptions, socket: &Socket) -> Result<(), SocketError> {
    if let Some(name) = &options.congestion {
        set_congestion(socket.as_socket(), name)?;
    }
    if let Some(mss) = options.mss {
        tcp::set_max_segment(socket.as_socket(), mss.into()).map_err(failed(format!("setting an MSS of {mss}")))?;
    }
    socket
        .set_tcp_nodelay(true)
        .and_then(|()| tcp::set_user_timeout(socket.as_socket(), Some(PEER_GONE)))
        .map_err(failed("setting TCP options"))
}

/// Sets a send buffer, beyond the system's limit if permitted. Returns the actual size.
fn send_buffer(socket: &Socket, bytes: usize) -> Result<usize, SocketError> {
    let mut result = Ok(());
    if force_send_buffer(socket.as_socket(), bytes as i32).is_err() {
        result = socket.set_send_buffer_size(bytes);
    }
    let size = result
        .and_then(|()| socket.send_buffer_size())
        .map_err(failed(format!("setting a send buffer of {bytes} bytes")))?;
    Ok(size / BUFFER_FACTOR)
}

/// Sets a receive buffer, beyond the system's limit if permitted. Returns the actual size.
fn receive_buffer(socket: &Socket, bytes: usize) -> Result<usize, SocketError> {
    let mut result = Ok(());
    if force_receive_buffer(socket.as_socket(), bytes as i32).is_err() {
        result = socket.set_recv_buffer_size(bytes);
    }
    let size = result
        .and_then(|()| socket.recv_buffer_size())
        .map_err(failed(format!("setting a receive buffer of {bytes} bytes")))?;
    Ok(size / BUFFER_FACTOR)
}

/// Checks the actual size of a buffer, which the kernel silently cuts to its limit.
fn check_met(name: &str, limit: &str, wanted: u64, set: usize) -> Result<(), SocketError> {
    if set as u64 >= wanted {
        return Ok(());
    }
    Err(SocketError::InvalidRequest(format!(
        "a {name} buffer of {wanted} bytes: this host allows {set}; run with CAP_NET_ADMIN, raise the limit (sysctl -w net.core.{limit}={wanted}), or ask for less"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, sysctl: &str, set: fn(&Socket, usize) -> Result<usize, SocketError>) {
        let limit = std::fs::read_to_string(format!("/proc/sys/net/core/{sysctl}")).expect("sysctl");
        let limit: usize = limit.trim().parse().expect("a number");
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("socket");
        for wanted in [4_000, 100_000, limit, limit + 4_096] {
            let size = set(&socket, wanted).expect("sets");
            match check_met(name, sysctl, wanted as u64, size) {
                Ok(()) => assert!(size >= wanted, "{name}: {size} of {wanted}"),
                // Without privilege.
                Err(error) => {
                    assert!(wanted > limit && size == limit, "{name}: {size} of {wanted}, limit {limit}");
                    assert!(error.to_string().contains(&format!("net.core.{sysctl}={wanted}")), "{error}");
                }
            }
        }
    }

    #[test]
    fn buffer_has_the_requested_size_or_the_limit_is_named() {
        check("send", "wmem_max", send_buffer);
        check("receive", "rmem_max", receive_buffer);
        check_met("send", "wmem_max", 5_000, 4_999).expect_err("one byte is missing");
    }
}
