//! Checks of what a trial asks for, before anything is opened.

use crate::error::SocketError;
use linerate_model::{Assignment, IpVersion, SocketOptions, Transport, Window};
use std::fs;

/// The kernel's TCP_MIN_MSS and MAX_TCP_WINDOW.
const MSS: std::ops::RangeInclusive<u16> = 88..=32_767;

/// Messages or requests per second: a schedule is kept in nanoseconds, of which ten must lie between two of them.
pub const MOST_PER_SECOND: u64 = 100_000_000;
/// Payload bits per second: more than any interface has.
pub const MOST_BITS_PER_SECOND: u64 = 100_000_000_000_000;

/// Checks the socket options, the flows, the window and the listening addresses of an assignment over sockets. Returns its window.
///
/// # Errors
/// [`SocketError::InvalidRequest`] names what cannot work, and the remedy.
pub fn check_assignment(assignment: &Assignment) -> Result<Window, SocketError> {
    let Some(net) = assignment.task.net() else {
        return Err(asked(format!("{} uses no sockets", assignment.task.kind())));
    };
    net.check_flows(assignment.task.most_flows())
        .and_then(|()| net.socket.check())
        .map_err(|error| asked(error.to_string()))?;
    check(&net.socket, net.transport, net.ip)?;
    let window = assignment.timing.window().filter(|window| window.measure.get() > 0);
    let window = window.ok_or_else(|| asked("the measured window must be longer than 0"))?;
    for listen in assignment.listens() {
        if listen.address.is_ipv6() != (net.ip == IpVersion::V6) {
            return Err(asked(format!(
                "link {}: {} is not of the IP version asked for",
                listen.link.0, listen.address
            )));
        }
    }
    Ok(window)
}

/// Checks a rate that is asked for. `unit` names what is counted, as in "requests"; `otherwise` says what happens without a rate.
///
/// # Errors
/// [`SocketError::InvalidRequest`] names the range: no schedule can be kept beyond `most` per second, and at a rate of zero nothing is sent.
pub fn check_rate(rate: Option<u64>, most: u64, unit: &str, otherwise: &str) -> Result<(), SocketError> {
    let Some(rate) = rate.filter(|rate| !(1..=most).contains(rate)) else { return Ok(()) };
    Err(asked(format!("a rate of {rate} {unit} per second: choose 1 to {most}, or leave the rate out to {otherwise}")))
}

/// Checks socket options.
fn check(options: &SocketOptions, transport: Transport, ip: IpVersion) -> Result<(), SocketError> {
    if let Some(mss) = options.mss
        && !MSS.contains(&mss)
    {
        return Err(asked(format!("MSS of {mss} bytes: choose {} to {}", MSS.start(), MSS.end())));
    }
    if transport == Transport::Udp && (options.mss.is_some() || options.congestion.is_some()) {
        return Err(asked("UDP has neither a segment size nor congestion control: leave them out, or use TCP"));
    }
    if let Some(address) = options.bind_address
        && address.is_ipv6() != (ip == IpVersion::V6)
    {
        return Err(asked(format!("bind address {address} is not of the IP version asked for")));
    }
    let Some(wanted) = &options.congestion else { return Ok(()) };
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    // Where /proc does not tell, the kernel will when the option is set.
    if available.is_empty() || available.split_whitespace().any(|name| name == wanted) {
        return Ok(());
    }
    Err(asked(format!(
        "congestion control `{wanted}` is not available on this host; choose one of: {}; or load its module (modprobe tcp_{wanted})",
        available.split_whitespace().collect::<Vec<_>>().join(", ")
    )))
}

fn asked(text: impl Into<String>) -> SocketError {
    SocketError::InvalidRequest(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_out_of_range_are_refused_with_the_range() {
        let check =
            |rate| check_rate(rate, MOST_PER_SECOND, "requests", "ask at will").map_err(|error| error.to_string());
        for rate in [None, Some(1), Some(MOST_PER_SECOND)] {
            assert_eq!(check(rate), Ok(()));
        }
        for rate in [0, MOST_PER_SECOND + 1] {
            let error = check(Some(rate)).expect_err("out of range");
            assert!(error.contains(&format!("a rate of {rate} requests")), "{error}");
            assert!(error.contains("choose 1 to 100000000, or leave the rate out to ask at will"), "{error}");
        }
    }
}
