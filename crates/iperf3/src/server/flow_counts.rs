//! What the flows of a served test have done, between two moments.

use crate::results::{FlowResult, ids};
use linerate_engine::tcp_flow;
use linerate_model::{EndCounts, FlowCounts as CountsOfFlow, Received, Sent};
use linerate_streams::{Bulk, FlowProgress};
use linerate_sys::{clock, tcp};
use linerate_units::{BitRate, Nanos, grouped};
use std::net::TcpStream;
use std::os::fd::AsFd as _;

/// How far all flows of a test are at one moment.
#[derive(Debug)]
pub(super) struct FlowCounts {
    pub(super) at: u64,
    flows: Vec<FlowProgress>,
    /// TCP's own account of each flow.
    tcp: Vec<tcp::Info>,
}

/// How this end moves data: in the loops of linerate's streams.
const IO_METHOD: &str = "linerate";

fn tcp_info(socket: &TcpStream) -> tcp::Info {
    tcp::info(socket.as_fd()).unwrap_or_default()
}

impl FlowCounts {
    /// How far so many flows are now, of which none has begun. `sockets` are those of TCP flows; empty for UDP.
    pub(super) fn none(flows: usize, sockets: &[TcpStream]) -> Self {
        Self {
            at: clock::now(),
            flows: vec![FlowProgress::default(); flows],
            tcp: sockets.iter().map(tcp_info).collect(),
        }
    }

    /// How far they are now. `sockets` are those of TCP flows; empty for UDP.
    pub(super) fn now(bulk: &Bulk, sockets: &[TcpStream]) -> Self {
        Self { at: clock::now(), flows: bulk.progress(), tcp: sockets.iter().map(tcp_info).collect() }
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
            let sent_again = self.tcp.get(index).zip(before.tcp.get(index));
            // A receiver tells the highest number that came.
            let datagrams = |flow: FlowProgress| if is_udp { flow.datagrams + flow.lost } else { 0 };
            FlowResult {
                id,
                bytes: moved(after).saturating_sub(moved(earlier)),
                retransmits: sent_again
                    .filter(|_| *backward)
                    .map(|(after, earlier)| after.total_retrans.wrapping_sub(earlier.total_retrans).into()),
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

    /// This host's end of a test: `results` are what its flows did since `before`, in messages of `message_bytes`. `sockets` are those of
    /// TCP flows; empty for UDP.
    pub(super) fn end(
        &self,
        before: &Self,
        results: &[FlowResult],
        ways: &[(u16, bool)],
        message_bytes: u64,
        sockets: &[TcpStream],
    ) -> EndCounts {
        let is_udp = sockets.is_empty();
        let of = |backward| Way::of(results, ways, backward);
        let messages = |way: &Way| if is_udp { way.numbered() - way.lost() } else { way.bytes() / message_bytes };
        let received = of(false).map(|way| Received {
            window: way.time,
            payload_bytes: way.bytes(),
            messages: messages(&way),
            arrived: if is_udp { messages(&way) } else { 0 },
            jitter: way.flows.iter().map(|flow| flow.jitter).max().filter(|_| is_udp),
            io_method: IO_METHOD.to_owned(),
            ..Received::default()
        });
        let sent = of(true).map(|way| Sent {
            window: way.time,
            payload_bytes: way.bytes(),
            messages: messages(&way),
            io_method: IO_METHOD.to_owned(),
            ..Sent::default()
        });
        let tcp = |index: usize| {
            let (stream, info) = (sockets.get(index)?, self.tcp.get(index)?);
            Some(tcp_flow(stream, before.tcp.get(index)?, info))
        };
        let flow = |(index, (flow, (_, backward))): (usize, (&FlowResult, &(u16, bool)))| CountsOfFlow {
            sent_bytes: if *backward { flow.bytes } else { 0 },
            received_bytes: if *backward { 0 } else { flow.bytes },
            tcp: tcp(index),
        };
        let flows = results.iter().zip(ways).enumerate().map(flow).collect();
        EndCounts { sent, received, flows, ..EndCounts::default() }
    }

    fn flow(&self, index: usize) -> FlowProgress {
        self.flows.get(index).copied().unwrap_or_default()
    }
}

/// The flows of one direction of a test.
pub(super) struct Way<'a> {
    flows: Vec<&'a FlowResult>,
    /// How long they were measured.
    pub(super) time: Nanos,
}

impl<'a> Way<'a> {
    /// Those that carry data back to the client, or those that carry data here; none if there are none.
    pub(super) fn of(results: &'a [FlowResult], ways: &[(u16, bool)], backward: bool) -> Option<Self> {
        let own = results.iter().zip(ways).filter(|(_, way)| way.1 == backward);
        let flows: Vec<&FlowResult> = own.map(|(flow, _)| flow).collect();
        let time = flows.iter().map(|flow| flow.time).max()?;
        Some(Self { flows, time })
    }

    /// Payload bytes, the warm-up left out.
    pub(super) fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// UDP: datagrams numbered since the warm-up, lost ones included.
    pub(super) fn numbered(&self) -> u64 {
        let since = |flow: &&FlowResult| flow.datagrams.saturating_sub(flow.datagrams_in_warmup.unwrap_or(0));
        self.flows.iter().map(since).sum()
    }

    /// UDP: of them, those that did not arrive.
    pub(super) fn lost(&self) -> u64 {
        let since = |flow: &&FlowResult| flow.lost.saturating_sub(flow.lost_in_warmup.unwrap_or(0));
        self.flows.iter().map(since).sum::<u64>().min(self.numbered())
    }

    /// UDP: the loss, after a rate.
    fn loss_words(&self) -> String {
        format!(", {} of {} datagrams lost", grouped(self.lost()), grouped(self.numbered()))
    }

    /// Payload bits per second.
    fn rate(&self) -> BitRate {
        BitRate::per_second((self.bytes() as f64 * 8.0 / self.time.as_secs_f64()).round() as u64)
    }
}

/// What this host received in words, as in "received 94.1 Mbit/s, 3 of 8,492 datagrams lost"; `None` if the client sent nothing.
pub(super) fn received_words(results: &[FlowResult], ways: &[(u16, bool)], is_udp: bool) -> Option<String> {
    let way = Way::of(results, ways, false)?;
    Some(format!("received {}{}", way.rate(), if is_udp { way.loss_words() } else { String::new() }))
}

/// What the client received in words, as it `told`: "client received 49.8 Mbit/s of 62.1 Mbit/s sent". `None` if this host sent nothing.
pub(super) fn sent_words(
    results: &[FlowResult],
    told: Option<&[FlowResult]>,
    ways: &[(u16, bool)],
    is_udp: bool,
) -> Option<String> {
    let sent = Way::of(results, ways, true)?.rate();
    let Some(received) = told.and_then(|told| Way::of(told, ways, true)) else {
        return Some(format!("sent {sent}; the client did not say what it received"));
    };
    let loss = if is_udp { received.loss_words() } else { String::new() };
    Some(format!("client received {} of {sent} sent{loss}", received.rate()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: u64) -> FlowResult {
        FlowResult { bytes, datagrams: 1_000, lost: 3, time: Nanos::from_secs(1), ..FlowResult::default() }
    }

    #[test]
    fn what_this_host_sent_is_told_as_the_client_received_it() {
        let ways = [(0, false), (0, true)];
        let (own, told) = ([flow(1_000_000), flow(7_762_500)], [flow(1_250_000), flow(6_225_000)]);
        assert_eq!(received_words(&own, &ways, false).as_deref(), Some("received 8 Mbit/s"));
        let sent = |told, is_udp| sent_words(&own, told, &ways, is_udp).expect("one flow sends");
        assert_eq!(sent(Some(&told[..]), false), "client received 49.8 Mbit/s of 62.1 Mbit/s sent");
        assert_eq!(
            sent(Some(&told[..]), true),
            "client received 49.8 Mbit/s of 62.1 Mbit/s sent, 3 of 1,000 datagrams lost"
        );
        assert_eq!(sent(None, false), "sent 62.1 Mbit/s; the client did not say what it received");
        assert_eq!(sent_words(&own[..1], None, &ways[..1], false), None);
    }
}
