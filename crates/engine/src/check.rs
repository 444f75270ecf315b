//! Checks of what a trial asks for, before anything is opened.

use crate::error::SocketError;
use linerate_model::{EndRole, HalfSpec, IpVersion, SocketOptions, Transport};
use linerate_units::OpRate;
use std::fs;

/// The kernel's TCP_MIN_MSS and MAX_TCP_WINDOW.
const MSS: std::ops::RangeInclusive<u16> = 88..=32_767;

/// Flows of one path and direction: each is a thread at both ends.
const FLOWS: std::ops::RangeInclusive<u16> = 1..=1_024;
/// Requests a second: an open loop's schedule is kept in nanoseconds, of which ten must lie between two requests.
const RATES: std::ops::RangeInclusive<u64> = 1..=100_000_000;

/// Checks the socket options, the window and the listening addresses of an assignment.
///
/// # Errors
/// [`SocketError::Asked`] names what cannot work, and the remedy.
pub fn check_half(spec: &HalfSpec) -> Result<(), SocketError> {
    check(spec.workload.socket(), spec.workload.transport(), spec.workload.ip())?;
    if spec.timing.measure.get() == 0 {
        return Err(asked("the measured window must be longer than 0"));
    }
    for end in &spec.ends {
        if let EndRole::Listener { address } = end.role
            && address.is_ipv6() != (spec.workload.ip() == IpVersion::V6)
        {
            return Err(asked(format!("path {}: {address} is not of the IP version asked for", end.path)));
        }
    }
    Ok(())
}

/// Checks the number of flows of one path.
///
/// # Errors
/// [`SocketError::Asked`] names the range.
pub fn check_flows(flows: u16) -> Result<(), SocketError> {
    if FLOWS.contains(&flows) {
        return Ok(());
    }
    Err(asked(format!("{flows} flows: choose {} to {}", FLOWS.start(), FLOWS.end())))
}

/// Checks the rate of an open loop. `what` names its operations, as in "requests"; `otherwise` says how they are made without a rate.
///
/// # Errors
/// [`SocketError::Asked`] names the range.
pub fn check_rate(rate: Option<OpRate>, what: &str, otherwise: &str) -> Result<(), SocketError> {
    let Some(rate) = rate.map(OpRate::get).filter(|rate| !RATES.contains(rate)) else { return Ok(()) };
    let (least, most) = (RATES.start(), RATES.end());
    Err(asked(format!("{rate} {what} a second: choose {least} to {most}, or leave the rate out to {otherwise}")))
}

/// Checks socket options.
fn check(options: &SocketOptions, transport: Transport, ip: IpVersion) -> Result<(), SocketError> {
    if let Some(dscp) = options.dscp
        && dscp > 63
    {
        return Err(asked(format!("DSCP {dscp}: choose 0 to 63 (RFC 2474)")));
    }
    if let Some(mss) = options.mss
        && !MSS.contains(&mss)
    {
        return Err(asked(format!("MSS of {mss} bytes: choose {} to {}", MSS.start(), MSS.end())));
    }
    if transport == Transport::Udp && (options.mss.is_some() || options.congestion.is_some()) {
        return Err(asked("UDP has neither a segment size nor congestion control: leave them out, or use TCP"));
    }
    for (name, size) in [("send", options.send_buffer), ("receive", options.receive_buffer)] {
        if let Some(size) = size
            && !(1..=i32::MAX as u64 / 2).contains(&size.get())
        {
            return Err(asked(format!("{name} buffer of {} bytes: choose 1 to {}", size.get(), i32::MAX / 2)));
        }
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
    SocketError::Asked(text.into())
}
