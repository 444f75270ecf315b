//! TCP's own counters of a connection.

use linerate_model::TcpFlow;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::tcp::{self, Info};
use linerate_units::Nanos;
use std::net::TcpStream;

/// Returns the counters of `stream` between two readings of its TCP_INFO.
pub fn tcp_flow(stream: &TcpStream, before: &Info, after: &Info) -> TcpFlow {
    TcpFlow {
        congestion: tcp::congestion(stream.as_socket()).ok().flatten().unwrap_or_default(),
        retransmits: count(after.total_retrans, before.total_retrans),
        timeouts: u64::from(after.total_rto.wrapping_sub(before.total_rto)),
        unanswered: after.retransmits.into(),
        dsacks: count(after.dsack_dups, before.dsack_dups),
        reorderings: count(after.reord_seen, before.reord_seen),
        segments_out: count(after.data_segs_out, before.data_segs_out),
        segments_in: count(after.data_segs_in, before.data_segs_in),
        busy: micros(after.busy_time.saturating_sub(before.busy_time)),
        receive_window_limited: micros(after.rwnd_limited.saturating_sub(before.rwnd_limited)),
        send_buffer_limited: micros(after.sndbuf_limited.saturating_sub(before.sndbuf_limited)),
        rtt: micros(after.rtt.into()),
        // All ones before the first sample.
        min_rtt: micros(if after.min_rtt == u32::MAX { 0 } else { after.min_rtt.into() }),
        delivery_rate_bps: after.delivery_rate.saturating_mul(8),
        congestion_window: after.snd_cwnd,
        peer_window: after.snd_wnd,
        mss: after.snd_mss,
    }
}

fn micros(micros: u64) -> Nanos {
    Nanos::new(micros * 1_000)
}

/// Returns the difference of two readings of a 32-bit counter of the kernel, which may wrap.
fn count(after: u32, before: u32) -> u64 {
    u64::from(after.wrapping_sub(before))
}
