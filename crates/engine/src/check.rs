//! Checks of an assignment before anything is opened.

use crate::error::SocketError;
use linerate_model::{Assignment, IpVersion, SocketOptions, Transport, Window};
use std::fs;

/// Range from the kernel's TCP_MIN_MSS to MAX_TCP_WINDOW.
const MSS: std::ops::RangeInclusive<u16> = 88..=32_767;

/// Highest rate of messages or requests. Schedules count nanoseconds, and need ten of them between two messages.
pub const MOST_PER_SECOND: u64 = 100_000_000;
/// Highest payload rate in bits per second, more than any interface has.
pub const MOST_BITS_PER_SECOND: u64 = 100_000_000_000_000;

/// Checks the socket options, the flows, the window and the listening addresses of an assignment over sockets. Returns
/// its window.
///
/// # Errors
/// [`SocketError::InvalidRequest`] names the invalid option, and the remedy.
pub fn check_assignment(assignment: &Assignment) -> Result<Window, SocketError> {
    let Some(net) = assignment.task.net() else {
        return Err(invalid(format!("{} uses no sockets", assignment.task.kind())));
    };
    net.check_flows(assignment.task.most_flows())
        .and_then(|()| net.socket.check())
        .map_err(|error| invalid(error.to_string()))?;
    check(&net.socket, net.transport, net.ip)?;
    let window = assignment.timing.window().filter(|window| window.measure.get() > 0);
    let window = window.ok_or_else(|| invalid("the measured window must be longer than 0"))?;
    for listen in assignment.listens() {
        if listen.address.is_ipv6() != (net.ip == IpVersion::V6) {
            return Err(invalid(format!(
                "link {}: {} is not of the IP version asked for",
                listen.link.0, listen.address
            )));
        }
    }
    Ok(window)
}

/// Checks a requested rate. `unit` names the counted objects, as in "requests"; `otherwise` describes the load without
/// a rate.
///
/// # Errors
/// [`SocketError::InvalidRequest`] names the range, from 1 to `maximum` per second.
pub fn check_rate(rate: Option<u64>, maximum: u64, unit: &str, otherwise: &str) -> Result<(), SocketError> {
    let Some(rate) = rate.filter(|rate| !(1..=maximum).contains(rate)) else { return Ok(()) };
    Err(invalid(format!(
        "a rate of {rate} {unit} per second: choose 1 to {maximum}, or leave the rate out to {otherwise}"
    )))
}

/// Checks socket options.
fn check(options: &SocketOptions, transport: Transport, ip: IpVersion) -> Result<(), SocketError> {
    if let Some(mss) = options.mss
        && !MSS.contains(&mss)
    {
        return Err(invalid(format!("MSS of {mss} bytes: choose {} to {}", MSS.start(), MSS.end())));
    }
    if transport == Transport::Udp && (options.mss.is_some() || options.congestion.is_some()) {
        return Err(invalid("UDP has neither a segment size nor congestion control: leave them out, or use TCP"));
    }
    if let Some(address) = options.bind_address
        && address.is_ipv6() != (ip == IpVersion::V6)
    {
        return Err(invalid(format!("bind address {address} is not of the IP version asked for")));
    }
    let Some(name) = &options.congestion else { return Ok(()) };
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    // Without /proc, the kernel reports an unknown control when the option is set.
    if available.is_empty() || available.split_whitespace().any(|available| available == name) {
        return Ok(());
    }
    Err(invalid(format!(
        "congestion control `{name}` is not available on this host; choose one of: {}; or load its module (modprobe tcp_{name})",
        available.split_whitespace().collect::<Vec<_>>().join(", ")
    )))
}

fn invalid(text: impl Into<String>) -> SocketError {
    SocketError::InvalidRequest(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_out_of_range_are_refused_with_the_range() {
        for rate in [None, Some(1), Some(MOST_PER_SECOND)] {
            check_rate(rate, MOST_PER_SECOND, "requests", "ask at will").expect("in range");
        }
        for rate in [0, MOST_PER_SECOND + 1] {
            let error = check_rate(Some(rate), MOST_PER_SECOND, "requests", "ask at will").expect_err("out of range");
            let error = error.to_string();
            assert!(error.contains(&format!("a rate of {rate} requests")), "{error}");
            assert!(error.contains("choose 1 to 100000000, or leave the rate out to ask at will"), "{error}");
        }
    }
}
