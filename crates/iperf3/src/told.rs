//! Counts of the other end of a test, from its final report.

use crate::results::{FlowResult, TestResults};
use linerate_model::{Caveat, CaveatKind, EndCounts, FlowCounts, Received, Sent, Transport, message};
use serde_json::Value;

/// What must be known of a test to read what the other end told.
pub(crate) struct ToldOf<'a> {
    pub(crate) transport: Transport,
    /// Bytes of a message.
    pub(crate) message_bytes: u64,
    pub(crate) has_warmup: bool,
    /// Whether each flow carries data to this end, in the order in which the flows were opened.
    pub(crate) to_here: &'a [bool],
    /// What this end counted.
    pub(crate) own: &'a EndCounts,
    /// UDP: how many datagrams the other end numbered within this end's window, lost ones included.
    pub(crate) numbered: u64,
}

/// How the other end moves its data: it does not tell.
const IO_METHOD: &str = "iperf3";

impl ToldOf<'_> {
    /// Returns the other end, which told `results` as `text`, and doubts about what it told.
    pub(crate) fn end(&self, results: &TestResults, text: Value) -> (EndCounts, Vec<Caveat>) {
        let udp = self.transport == Transport::Udp;
        let flows = || self.to_here.iter().zip(&results.flows);
        let of = |wanted: bool| flows().filter(move |(to_here, _)| **to_here == wanted).map(|(_, flow)| flow);
        let bytes = |to_here| of(to_here).map(|flow| flow.bytes).sum::<u64>();
        let time = |to_here| of(to_here).map(|flow| flow.time).max().unwrap_or_default();
        let mut caveats = Vec::new();
        let received = self.own.sent.as_ref().map(|sent| {
            let lost = |flow: &FlowResult| flow.lost.saturating_sub(flow.lost_in_warmup.unwrap_or(0));
            let lost: u64 = of(false).map(lost).sum();
            let flows: Vec<&FlowResult> = of(false).collect();
            let lost = lost + if udp { never_seen(&flows, sent, self.has_warmup) } else { 0 };
            if udp && lost > 0 && self.has_warmup && of(false).any(|flow| flow.lost_in_warmup.is_none()) {
                let text = message!(
                    "caveat-iperf3-warm-up-loss",
                    "this version of iperf3 does not tell the datagrams that were lost in the warm-up from the \
                     others: the loss is that of both; measure without a warm-up, or use iperf3 3.13 or later there"
                );
                caveats.push(Caveat::new(CaveatKind::Fallback, text));
            }
            Received {
                window: time(false),
                payload_bytes: bytes(false),
                messages: bytes(false) / self.message_bytes,
                arrived: if udp { sent.messages.saturating_sub(lost) } else { 0 },
                jitter: of(false).map(|flow| flow.jitter).max().filter(|_| udp),
                io_method: IO_METHOD.to_owned(),
                ..Received::default()
            }
        });
        let sent = self.own.received.as_ref().map(|received| match udp {
            // What it sent within this end's window is known by its numbers, and no loss could be told by the count of another window.
            true => Sent {
                window: received.window,
                payload_bytes: self.numbered * self.message_bytes,
                messages: self.numbered,
                io_method: IO_METHOD.to_owned(),
                ..Sent::default()
            },
            false => Sent {
                window: time(true),
                payload_bytes: bytes(true),
                messages: bytes(true) / self.message_bytes,
                io_method: IO_METHOD.to_owned(),
                ..Sent::default()
            },
        });
        let flow = |(to_here, flow): (&bool, &FlowResult)| match to_here {
            true => FlowCounts { sent_bytes: flow.bytes, ..FlowCounts::default() },
            false => FlowCounts { received_bytes: flow.bytes, ..FlowCounts::default() },
        };
        let flows = flows().map(flow).collect();
        let end = EndCounts { path: self.own.path, sent, received, flows, told: Some(text), ..EndCounts::default() };
        (end, caveats)
    }
}

/// Datagrams of the window that came behind the last one which the other end saw, and which it therefore misses in no count. Its end hears of
/// the test's end soon, perhaps before what still stands in a queue: so much as is sent in a second counts as under way.
fn never_seen(flows: &[&FlowResult], sent: &Sent, has_warmup: bool) -> u64 {
    if flows.iter().all(|flow| flow.bytes == 0) {
        return sent.messages.saturating_sub(flows.iter().map(|flow| flow.lost).sum());
    }
    let numbered = |flow: &&FlowResult| match flow.datagrams_in_warmup {
        None if has_warmup => None,
        in_warmup => Some(flow.datagrams.saturating_sub(in_warmup.unwrap_or(0))),
    };
    let Some(numbered) = flows.iter().map(numbered).sum::<Option<u64>>() else { return 0 };
    let unseen = sent.messages.saturating_sub(numbered);
    let in_a_second = sent.messages as f64 / sent.window.as_secs_f64();
    if unseen as f64 > in_a_second { unseen } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Nanos;

    /// Of 10,000 datagrams in 10 s, what a server tells that saw `bytes` of them, and numbers up to `datagrams`.
    fn arrived(bytes: u64, datagrams: u64, lost: u64) -> u64 {
        let sent = Sent { messages: 10_000, window: Nanos::from_secs(10), ..Sent::default() };
        let own = EndCounts { sent: Some(sent), ..EndCounts::default() };
        let (transport, to_here) = (Transport::Udp, [false]);
        let of =
            ToldOf { transport, message_bytes: 1_000, has_warmup: false, to_here: &to_here, own: &own, numbered: 0 };
        let flow = FlowResult { bytes, datagrams, lost, ..FlowResult::default() };
        let results = TestResults { flows: vec![flow], ..TestResults::default() };
        of.end(&results, Value::Null).0.received.expect("it received").arrived
    }

    #[test]
    fn what_nothing_came_after_is_lost_as_well() {
        assert_eq!(arrived(0, 0, 0), 0, "nothing came");
        assert_eq!(arrived(6_000_000, 6_100, 100), 6_000, "the path died");
        assert_eq!(arrived(9_900_000, 10_100, 100), 9_900, "numbers of the time after the window came too");
        assert_eq!(arrived(9_400_000, 9_500, 100), 9_900, "half a second may stand in a queue");
    }
}
