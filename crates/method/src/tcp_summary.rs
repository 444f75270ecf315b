//! Sums over the kernel's accounts of TCP connections.

use crate::statistics::summary;
use linerate_model::{TcpFlow, TcpSummary};

/// Sums the kernel's accounts of several connections. Returns `None` without a connection.
pub(crate) fn tcp_summary(flows: &[&TcpFlow]) -> Option<TcpSummary> {
    let first = flows.first()?;
    let busy: u64 = flows.iter().map(|flow| flow.busy.get()).sum();
    let share = |part: u64| if busy == 0 { 0.0 } else { part as f64 / busy as f64 };
    Some(TcpSummary {
        congestion: first.congestion.clone(),
        retransmits: flows.iter().map(|flow| flow.retransmits).sum(),
        timeouts: flows.iter().map(|flow| flow.timeouts).sum(),
        dsacks: flows.iter().map(|flow| flow.dsacks).sum(),
        reorderings: flows.iter().map(|flow| flow.reorderings).sum(),
        segments: flows.iter().map(|flow| flow.segments_out).sum(),
        rtt_ns: summary(flows.iter().map(|flow| flow.rtt.get() as f64).collect()).map_or(0, |s| s.median as u64),
        min_rtt_ns: flows.iter().map(|flow| flow.min_rtt.get()).min().unwrap_or(0),
        receive_window_limited: share(flows.iter().map(|flow| flow.receive_window_limited.get()).sum()),
        send_buffer_limited: share(flows.iter().map(|flow| flow.send_buffer_limited.get()).sum()),
        mss: first.mss,
    })
}
