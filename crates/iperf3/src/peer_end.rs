//! Counts of the other end of a test, from its final report.

use crate::results::{FlowResult, TestResults};
use linerate_model::{Caveat, CaveatKind, EndCounts, FlowCounts, Received, Sent, Transport, message};
use serde_json::Value;

/// The other end of a test, with the facts that its results do not contain.
pub(crate) struct PeerEnd<'a> {
    pub(crate) transport: Transport,
    pub(crate) message_bytes: u64,
    pub(crate) has_warmup: bool,
    /// Whether each flow carries data to this end, in the order of opening.
    pub(crate) to_here: &'a [bool],
    /// Counts of this end.
    pub(crate) local: &'a EndCounts,
    /// UDP: number of datagrams that the other end numbered within this end's window, lost ones included.
    pub(crate) numbered: u64,
}

/// I/O method of the other end, which does not report it.
const IO_METHOD: &str = "iperf3";

impl PeerEnd<'_> {
    /// Returns the counts of the other end from its `results`, and caveats about them. `text` is the JSON of the
    /// results.
    pub(crate) fn counts(&self, results: &TestResults, text: Value) -> (EndCounts, Vec<Caveat>) {
        let mut caveats = Vec::new();
        let received = self.local.sent.as_ref().map(|sent| self.received(results, sent, &mut caveats));
        let sent = self.local.received.as_ref().map(|received| self.sent(results, received));
        let mut flows = Vec::new();
        for (to_here, flow) in self.to_here.iter().zip(&results.flows) {
            flows.push(if *to_here {
                FlowCounts { sent_bytes: flow.bytes, ..FlowCounts::default() }
            } else {
                FlowCounts { received_bytes: flow.bytes, ..FlowCounts::default() }
            });
        }
        let end = EndCounts { path: self.local.path, sent, received, flows, told: Some(text), ..EndCounts::default() };
        (end, caveats)
    }

    /// Returns the results of the flows of one direction.
    fn flows<'a>(&self, results: &'a TestResults, to_here: bool) -> Vec<&'a FlowResult> {
        let flows = self.to_here.iter().zip(&results.flows).filter(|(direction, _)| **direction == to_here);
        flows.map(|(_, flow)| flow).collect()
    }

    /// Returns the counts of the other end as the receiver of data that this end `sent`.
    fn received(&self, results: &TestResults, sent: &Sent, caveats: &mut Vec<Caveat>) -> Received {
        let flows = self.flows(results, false);
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let received = Received {
            window: flows.iter().map(|flow| flow.time).max().unwrap_or_default(),
            payload_bytes: bytes,
            messages: bytes / self.message_bytes,
            io_method: IO_METHOD.to_owned(),
            ..Received::default()
        };
        if self.transport == Transport::Tcp {
            return received;
        }
        let mut lost = never_seen(&flows, sent, self.has_warmup);
        for flow in &flows {
            lost += flow.lost.saturating_sub(flow.lost_in_warmup.unwrap_or(0));
        }
        if lost > 0 && self.has_warmup && flows.iter().any(|flow| flow.lost_in_warmup.is_none()) {
            let text = message!(
                "caveat-iperf3-warm-up-loss",
                "this version of iperf3 does not tell the datagrams that were lost in the warm-up from the \
                 others: the loss is that of both; measure without a warm-up, or use iperf3 3.13 or later there"
            );
            caveats.push(Caveat::new(CaveatKind::Fallback, text));
        }
        Received {
            arrived: sent.messages.saturating_sub(lost),
            jitter: flows.iter().map(|flow| flow.jitter).max(),
            ..received
        }
    }

    /// Returns the counts of the other end as the sender of data that this end `received`.
    fn sent(&self, results: &TestResults, received: &Received) -> Sent {
        if self.transport == Transport::Udp {
            // The numbers of the datagrams show the count in this end's window. The count of another window would show
            // no loss.
            return Sent {
                window: received.window,
                payload_bytes: self.numbered * self.message_bytes,
                messages: self.numbered,
                io_method: IO_METHOD.to_owned(),
                ..Sent::default()
            };
        }
        let flows = self.flows(results, true);
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        Sent {
            window: flows.iter().map(|flow| flow.time).max().unwrap_or_default(),
            payload_bytes: bytes,
            messages: bytes / self.message_bytes,
            io_method: IO_METHOD.to_owned(),
            ..Sent::default()
        }
    }
}

/// Returns the number of datagrams of the window after the last one that arrived, which the other end cannot count as
/// lost.
///
/// The test may end while datagrams are still in a queue, so the datagrams of up to one second count as still on their
/// way.
fn never_seen(flows: &[&FlowResult], sent: &Sent, has_warmup: bool) -> u64 {
    if flows.iter().all(|flow| flow.bytes == 0) {
        return sent.messages.saturating_sub(flows.iter().map(|flow| flow.lost).sum());
    }
    let mut numbered = 0;
    for flow in flows {
        let in_warmup = match flow.datagrams_in_warmup {
            None if has_warmup => return 0,
            in_warmup => in_warmup.unwrap_or(0),
        };
        numbered += flow.datagrams.saturating_sub(in_warmup);
    }
    let unseen = sent.messages.saturating_sub(numbered);
    let per_second = sent.messages as f64 / sent.window.as_secs_f64();
    if unseen as f64 > per_second { unseen } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Nanos;

    /// Returns the arrived datagrams of 10,000 in 10 s, at a server that received `bytes`, and numbers up to
    /// `datagrams`.
    fn arrived(bytes: u64, datagrams: u64, lost: u64) -> u64 {
        let sent = Sent { messages: 10_000, window: Nanos::from_secs(10), ..Sent::default() };
        let local = EndCounts { sent: Some(sent), ..EndCounts::default() };
        let peer = PeerEnd {
            transport: Transport::Udp,
            message_bytes: 1_000,
            has_warmup: false,
            to_here: &[false],
            local: &local,
            numbered: 0,
        };
        let flow = FlowResult { bytes, datagrams, lost, ..FlowResult::default() };
        let results = TestResults { flows: vec![flow], ..TestResults::default() };
        peer.counts(&results, Value::Null).0.received.expect("it received").arrived
    }

    #[test]
    fn datagrams_after_the_last_arrival_count_as_lost() {
        assert_eq!(arrived(0, 0, 0), 0, "nothing arrived");
        assert_eq!(arrived(6_000_000, 6_100, 100), 6_000, "the path died");
        assert_eq!(arrived(9_900_000, 10_100, 100), 9_900, "numbers after the window arrived too");
        assert_eq!(arrived(9_400_000, 9_500, 100), 9_900, "half a second may still be in a queue");
    }
}
