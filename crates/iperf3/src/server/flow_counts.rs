//! What the flows of a served test have done, between two moments.

use crate::results::{FlowResult, ids};
use linerate_streams::{Bulk, FlowProgress};
use linerate_sys::{clock, tcp};
use linerate_units::{BitRate, Nanos, grouped};
use std::os::fd::{AsFd as _, OwnedFd};

/// How far all flows of a test are at one moment.
#[derive(Debug)]
pub(super) struct FlowCounts {
    pub(super) at: u64,
    flows: Vec<FlowProgress>,
    /// TCP: segments sent again, of each flow.
    retransmits: Vec<u64>,
}

impl FlowCounts {
    /// How far they are now. `sockets` are those of TCP flows; empty for UDP.
    pub(super) fn now(bulk: &Bulk, sockets: &[OwnedFd]) -> Self {
        let retransmits = |socket: &OwnedFd| tcp::info(socket.as_fd()).map_or(0, |info| info.total_retrans.into());
        Self { at: clock::now(), flows: bulk.progress(), retransmits: sockets.iter().map(retransmits).collect() }
    }

    /// Payload bytes that were received.
    pub(super) fn received_bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.received_bytes).sum()
    }

    /// What each flow did since `before`; datagrams also say what they were before that. `ways` says which flows go back to the client.
    pub(super) fn since(&self, before: &Self, ways: &[(u16, bool)], is_udp: bool) -> Vec<FlowResult> {
        let time = Nanos::new(self.at.saturating_sub(before.at).max(1));
        let flow = |(index, (id, (_, backward))): (usize, (u64, &(u16, bool)))| {
            let (after, earlier) = (self.flow(index), before.flow(index));
            let moved = |flow: FlowProgress| if *backward { flow.sent_bytes } else { flow.received_bytes };
            let sent_again = self.retransmits.get(index).zip(before.retransmits.get(index));
            // A receiver tells the highest number that came.
            let datagrams = |flow: FlowProgress| if is_udp { flow.datagrams + flow.lost } else { 0 };
            FlowResult {
                id,
                bytes: moved(after).saturating_sub(moved(earlier)),
                retransmits: sent_again.filter(|_| *backward).map(|(after, earlier)| after.saturating_sub(*earlier)),
                jitter: after.jitter,
                lost: after.lost,
                lost_in_warmup: is_udp.then_some(earlier.lost),
                datagrams: datagrams(after),
                datagrams_in_warmup: is_udp.then(|| datagrams(earlier)),
                time,
            }
        };
        ids(ways.len()).zip(ways).enumerate().map(flow).collect()
    }

    fn flow(&self, index: usize) -> FlowProgress {
        self.flows.get(index).copied().unwrap_or_default()
    }
}

/// One direction of a test in words, as in "received 94.1 Mbit/s, 3 of 8,492 datagrams lost"; none if there is no such direction.
pub(super) fn in_words(results: &[FlowResult], ways: &[(u16, bool)], backward: bool, is_udp: bool) -> Option<String> {
    let own: Vec<&FlowResult> =
        results.iter().zip(ways).filter(|(_, way)| way.1 == backward).map(|(flow, _)| flow).collect();
    let time = own.iter().map(|flow| flow.time).max()?.as_secs_f64();
    let bits = own.iter().map(|flow| flow.bytes).sum::<u64>() as f64 * 8.0;
    let verb = if backward { "sent" } else { "received" };
    let mut words = format!("{verb} {}", BitRate::per_second((bits / time).round() as u64));
    if is_udp && !backward {
        let sum = |of: fn(&FlowResult) -> u64| own.iter().map(|flow| of(flow)).sum::<u64>();
        let lost = sum(|flow| flow.lost.saturating_sub(flow.lost_in_warmup.unwrap_or(0)));
        let all = sum(|flow| flow.datagrams.saturating_sub(flow.datagrams_in_warmup.unwrap_or(0)));
        words += &format!(", {} of {} datagrams lost", grouped(lost), grouped(all));
    }
    Some(words)
}
