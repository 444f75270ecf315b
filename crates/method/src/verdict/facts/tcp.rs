//! What TCP says of its connections, and what loss-based congestion control allows.
//!
//! How fast a loss-based TCP goes at a given loss and round-trip time is known: Reno by Mathis et al. 1997 ("The Macroscopic
//! Behavior of the TCP Congestion Avoidance Algorithm", equation 3), CUBIC by RFC 9438 section 5.1.

use super::course::{Floor, QUEUE_NOTABLE};
use super::median;
use crate::transfer::transfers;
use linerate_model::{Measurement, TcpFlow, TcpSummary, TrialResult};

/// Linux waits no less for an acknowledgement, seconds (TCP_RTO_MIN; RFC 6298 section 2.4 would have it wait for 1 s).
const SHORTEST_TIMEOUT: f64 = 0.2;
/// TCP held back by windows or buffers for more than this does not show what the path lets through.
pub(crate) const HELD_BACK: f64 = 0.2;
/// Of a window that is full all the time nearly so much arrives each round trip; some of that is the time an acknowledgement takes.
const WINDOW_FULL: f64 = 0.9;
/// A window of which this share is in flight, on average over the round trips, is full whenever it matters.
pub(crate) const FILLED: f64 = 0.75;
/// Loss by a path that is bad, and not full, is rarely more than this.
pub(crate) const USUAL_LOSS: f64 = 0.05;
/// Loss of a policer is more than this of a TCP that does not go by loss: it probes for more again and again.
pub(crate) const LIGHT_LOSS: f64 = 0.02;
/// Where they allow this many times the result, loss is not what rules: they hold for an average over long times, a run is
/// short and loss comes by chance.
pub(crate) const FAR: f64 = 4.0;
/// Where so many of the segments that TCP sent again had arrived before, they overtook one another and were not lost.
const MOSTLY_IN_VAIN: f64 = 0.5;
/// Fewer losses in all runs do not show how much a path loses.
const FEWEST_LOSSES: f64 = 5.0;
/// Waiting for timeouts for so much of the time is what rules the rate.
const STALLED: f64 = 0.2;
/// Without such a share of their time, requests would be faster by no more than a run differs from the next.
const WAIT_SHARE: f64 = 0.2;

/// TCP's own account.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tcp {
    pub(crate) congestion: String,
    /// Segments retransmitted, as a share of those sent.
    pub(crate) retransmitted: f64,
    /// How many that were, over all runs.
    pub(crate) retransmits: f64,
    /// Of them, the share that the receiver had already got.
    pub(crate) in_vain: f64,
    /// How often acknowledgements showed segments to have overtaken one another, over all runs.
    pub(crate) reorderings: u64,
    /// Share of the time at the least that it waited for a retransmission timeout; zero where those are not counted.
    pub(crate) stalled: f64,
    /// Smoothed round-trip time, seconds.
    pub(crate) rtt: f64,
    /// The smallest seen, seconds.
    pub(crate) min_rtt: f64,
    /// Share of the time with data to send in which the receiver's window held it back.
    pub(crate) window_limited: f64,
    /// Share in which the send buffer did.
    pub(crate) buffer_limited: f64,
    /// Payload of a segment, bits.
    pub(crate) segment_bits: f64,
    /// Payload bit/s of one flow.
    pub(crate) flow_bps: f64,
    /// The receiver's window, bytes.
    pub(crate) peer_window: f64,
    /// The congestion window, bytes.
    pub(crate) congestion_window: f64,
}

impl Tcp {
    /// A window of data a round trip is what the receiver allows (RFC 9293 section 3.8), and so much came, of the shortest round trips
    /// even: no path and no host gives more. TCP's own count of the time that the window held it back does not tell: BBR sends at
    /// the rate that came through before, a window each round trip, and meets the window's end by chance.
    pub(crate) fn fills_window(&self) -> bool {
        self.peer_window > 0.0 && self.flow_bps * self.min_rtt / 8.0 >= WINDOW_FULL * self.peer_window
    }

    /// Bytes in flight, on average.
    pub(crate) fn flight(&self) -> f64 {
        self.flow_bps * self.rtt / 8.0
    }

    /// What `account` of `flows` says, which had `time` seconds together and brought `flow_bps` each.
    pub(crate) fn of(account: &TcpSummary, flows: &[&TcpFlow], time: f64, flow_bps: f64) -> Self {
        let timeouts = account.timeouts as f64 * SHORTEST_TIMEOUT;
        Self {
            congestion: account.congestion.clone(),
            retransmitted: account.retransmits as f64 / account.segments.max(1) as f64,
            retransmits: account.retransmits as f64,
            in_vain: (account.dsacks as f64 / account.retransmits.max(1) as f64).min(1.0),
            reorderings: account.reorderings,
            stalled: if time > 0.0 { (timeouts / time).min(1.0) } else { 0.0 },
            rtt: account.rtt_ns as f64 / 1e9,
            min_rtt: account.min_rtt_ns as f64 / 1e9,
            window_limited: account.receive_window_limited,
            buffer_limited: account.send_buffer_limited,
            segment_bits: f64::from(account.mss) * 8.0,
            flow_bps,
            peer_window: median(flows.iter().map(|flow| f64::from(flow.peer_window))),
            congestion_window: median(flows.iter().map(|flow| f64::from(flow.congestion_window) * f64::from(flow.mss))),
        }
    }

    /// More is lost than by a path that is bad; the formulas do not hold then either.
    pub(crate) fn is_heavy(&self) -> bool {
        self.retransmitted > USUAL_LOSS
    }

    /// Segments overtook one another, and TCP took that for loss.
    pub(crate) fn is_reordered(&self) -> bool {
        self.retransmits > 0.0 && self.in_vain >= MOSTLY_IN_VAIN
    }

    /// So little was lost that the share may be chance.
    pub(crate) fn lost_few(&self) -> bool {
        self.retransmits < FEWEST_LOSSES
    }

    /// Timeouts rule the rate.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled >= STALLED
    }

    /// Bit/s of a flow while it did not wait for a timeout, which the formulas do not count.
    pub(crate) fn active(&self) -> f64 {
        self.flow_bps.max(1.0) / (1.0 - self.stalled).max(0.01)
    }

    /// The congestion control takes every loss for congestion.
    pub(crate) fn goes_by_loss(&self) -> bool {
        !self.congestion.starts_with("bbr")
    }

    /// What makes a longer round trip a queue.
    pub(crate) fn floor(&self) -> Floor {
        Floor { rtt: self.min_rtt, segments_per_s: self.flow_bps / self.segment_bits.max(1.0) }
    }

    /// A queue stood on the path when the window closed. Timeouts make round trips longer too.
    pub(crate) fn queued(&self) -> bool {
        self.floor().is_queue(self.rtt) && !self.is_stalled()
    }

    /// Whether requests of `response` seconds spend a notable part of that waiting on the path, be it too short for a queue that
    /// stands.
    pub(crate) fn holds_up(&self, response: f64) -> bool {
        let longer = self.rtt - self.min_rtt;
        longer >= QUEUE_NOTABLE.max(WAIT_SHARE * response) && !self.is_stalled()
    }

    /// Bit/s that a loss-based TCP reaches over a path of round-trip time `rtt`.
    pub(crate) fn allowed(&self, rtt: f64) -> f64 {
        let (loss, rtt) = (self.retransmitted.max(1e-9), rtt.max(1e-6));
        // Segments in flight on average: Mathis et al., equation 3 (C = sqrt(3/2)).
        let reno = 1.22 / loss.sqrt();
        // RFC 9438, figure 5: C = 0.4, beta = 0.7.
        let cubic = 1.054 * (rtt / loss).powf(0.75);
        let window = if self.congestion == "cubic" { reno.max(cubic) } else { reno };
        window * self.segment_bits / rtt
    }
}

/// What TCP says of `result`; none where it was not TCP.
pub(super) fn tcp(result: &Measurement, runs: &[&TrialResult]) -> Option<Tcp> {
    let account = result.tcp()?;
    let flows: Vec<&TcpFlow> = runs
        .iter()
        .flat_map(|run| transfers(run))
        .flat_map(|transfer| transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref()))
        .collect();
    let each = flows.len() as f64 / runs.len().max(1) as f64;
    let windows = |run: &&TrialResult| {
        let all = transfers(run);
        all.iter()
            .map(|t| t.sender.flows.len() as u64 * t.sender.sent.as_ref().map_or(0, |s| s.window.get()))
            .sum::<u64>()
    };
    let time = runs.iter().map(windows).sum::<u64>() as f64 / 1e9;
    let reached = result.received().map_or(0.0, |received| received.payload_bps.median);
    Some(Tcp::of(account, &flows, time, reached / each.max(1.0)))
}
