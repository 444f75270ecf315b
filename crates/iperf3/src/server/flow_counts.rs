//! Counts of the flows of a served test between two moments.

use crate::results::{FlowResult, ids};
use linerate_engine::tcp_flow;
use linerate_model::{EndCounts, FlowCounts as CountsOfFlow, Received, Sent};
use linerate_streams::{Bulk, FlowProgress};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::{clock, tcp};
use linerate_units::{BitRate, Nanos, grouped};
use std::net::TcpStream;

/// Progress of all flows of a test at one moment.
#[derive(Debug)]
pub(super) struct FlowCounts {
    pub(super) at: u64,
    flows: Vec<FlowProgress>,
    /// State of the connection of each flow, if the system reports it.
    tcp: Vec<Option<tcp::Info>>,
}

/// I/O method of this end: the loops of `linerate_streams`.
const IO_METHOD: &str = "linerate";

fn tcp_info(socket: &TcpStream) -> Option<tcp::Info> {
    tcp::info(socket.as_socket()).ok()?
}

impl FlowCounts {
    /// Returns the counts of `flows` flows before their begin. `sockets` are those of TCP flows; empty for UDP.
    pub(super) fn before_start(flows: usize, sockets: &[TcpStream]) -> Self {
        Self {
            at: clock::now(),
            flows: vec![FlowProgress::default(); flows],
            tcp: sockets.iter().map(tcp_info).collect(),
        }
    }

    /// Returns the current counts. `sockets` are those of TCP flows; empty for UDP.
    pub(super) fn now(bulk: &Bulk, sockets: &[TcpStream]) -> Self {
        Self { at: clock::now(), flows: bulk.progress(), tcp: sockets.iter().map(tcp_info).collect() }
    }

    /// Returns the received payload bytes.
    pub(super) fn received_bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.received_bytes).sum()
    }

    /// Returns the results of each flow since `before`, with the datagrams before that as those of the warm-up. `ways`
    /// are number and direction of each flow; true is back to the client.
    pub(super) fn since(&self, before: &Self, ways: &[(u16, bool)], is_udp: bool) -> Vec<FlowResult> {
        let time = Nanos::new(self.at.saturating_sub(before.at).max(1));
        let mut results = Vec::new();
        for (index, (id, (_, backward))) in ids(ways.len()).zip(ways).enumerate() {
            let after = self.flow(index);
            let before_flow = before.flow(index);
            let bytes = if *backward {
                after.sent_bytes.saturating_sub(before_flow.sent_bytes)
            } else {
                after.received_bytes.saturating_sub(before_flow.received_bytes)
            };
            let tcp = self.tcp_of(before, index).filter(|_| *backward);
            results.push(FlowResult {
                id,
                bytes,
                retransmits: tcp.map(|(after, before)| after.total_retrans.wrapping_sub(before.total_retrans).into()),
                jitter: after.jitter,
                lost: after.lost,
                lost_in_warmup: is_udp.then_some(before_flow.lost),
                // Receivers report the highest number that arrived.
                datagrams: if is_udp { after.datagrams + after.lost } else { 0 },
                datagrams_in_warmup: is_udp.then_some(before_flow.datagrams + before_flow.lost),
                time,
            });
        }
        results
    }

    /// Returns this host's end of a test. `results` are those of its flows since `before`, in messages of
    /// `message_bytes`. `sockets` are those of TCP flows; empty for UDP.
    pub(super) fn end(
        &self,
        before: &Self,
        results: &[FlowResult],
        ways: &[(u16, bool)],
        message_bytes: u64,
        sockets: &[TcpStream],
    ) -> EndCounts {
        let is_udp = sockets.is_empty();
        let received = Way::of(results, ways, false).map(|way| Received {
            window: way.time,
            payload_bytes: way.bytes(),
            messages: way.messages(message_bytes, is_udp),
            arrived: if is_udp { way.messages(message_bytes, is_udp) } else { 0 },
            jitter: way.flows.iter().map(|flow| flow.jitter).max().filter(|_| is_udp),
            io_method: IO_METHOD.to_owned(),
            ..Received::default()
        });
        let sent = Way::of(results, ways, true).map(|way| Sent {
            window: way.time,
            payload_bytes: way.bytes(),
            messages: way.messages(message_bytes, is_udp),
            io_method: IO_METHOD.to_owned(),
            ..Sent::default()
        });
        let mut flows = Vec::new();
        for (index, (flow, (_, backward))) in results.iter().zip(ways).enumerate() {
            let info = self.tcp_of(before, index);
            flows.push(CountsOfFlow {
                sent_bytes: if *backward { flow.bytes } else { 0 },
                received_bytes: if *backward { 0 } else { flow.bytes },
                tcp: sockets.get(index).zip(info).map(|(stream, (after, before))| tcp_flow(stream, before, after)),
            });
        }
        EndCounts { sent, received, flows, ..EndCounts::default() }
    }

    /// Returns the state of the connection of a flow now and at `before`.
    fn tcp_of<'a>(&'a self, before: &'a Self, index: usize) -> Option<(&'a tcp::Info, &'a tcp::Info)> {
        self.tcp.get(index)?.as_ref().zip(before.tcp.get(index)?.as_ref())
    }

    fn flow(&self, index: usize) -> FlowProgress {
        self.flows.get(index).copied().unwrap_or_default()
    }
}

/// Flows of one direction of a test.
pub(super) struct Way<'a> {
    flows: Vec<&'a FlowResult>,
    /// Length of the measurement.
    pub(super) time: Nanos,
}

impl<'a> Way<'a> {
    /// Returns the flows of one direction, or `None` if there are no such flows. True is back to the client.
    pub(super) fn of(results: &'a [FlowResult], ways: &[(u16, bool)], backward: bool) -> Option<Self> {
        let flows = results.iter().zip(ways).filter(|(_, way)| way.1 == backward);
        let flows: Vec<&FlowResult> = flows.map(|(flow, _)| flow).collect();
        let time = flows.iter().map(|flow| flow.time).max()?;
        Some(Self { flows, time })
    }

    /// Returns the payload bytes, without the warm-up.
    pub(super) fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// Returns the number of messages; UDP: of datagrams that arrived.
    fn messages(&self, message_bytes: u64, is_udp: bool) -> u64 {
        if is_udp { self.numbered() - self.lost() } else { self.bytes() / message_bytes }
    }

    /// Returns the number of UDP datagrams numbered since the warm-up, lost ones included.
    pub(super) fn numbered(&self) -> u64 {
        let mut numbered = 0;
        for flow in &self.flows {
            numbered += flow.datagrams.saturating_sub(flow.datagrams_in_warmup.unwrap_or(0));
        }
        numbered
    }

    /// Returns the number of these datagrams that did not arrive.
    pub(super) fn lost(&self) -> u64 {
        let mut lost: u64 = 0;
        for flow in &self.flows {
            lost += flow.lost.saturating_sub(flow.lost_in_warmup.unwrap_or(0));
        }
        lost.min(self.numbered())
    }

    /// Describes the loss of UDP datagrams, to follow a rate.
    fn loss_words(&self) -> String {
        format!(", {} of {} datagrams lost", grouped(self.lost()), grouped(self.numbered()))
    }

    /// Returns the payload rate.
    fn rate(&self) -> BitRate {
        BitRate::per_second((self.bytes() as f64 * 8.0 / self.time.as_secs_f64()).round() as u64)
    }
}

/// Describes the data that this host received, as in "received 94.1 Mbit/s, 3 of 8,492 datagrams lost".
///
/// Returns `None` if the client sent nothing.
pub(super) fn received_words(results: &[FlowResult], ways: &[(u16, bool)], is_udp: bool) -> Option<String> {
    let way = Way::of(results, ways, false)?;
    Some(format!("received {}{}", way.rate(), if is_udp { way.loss_words() } else { String::new() }))
}

/// Describes the data that the client received, from its own results: "client received 49.8 Mbit/s of 62.1 Mbit/s
/// sent".
///
/// Returns `None` if this host sent nothing.
pub(super) fn sent_words(
    results: &[FlowResult],
    client_results: Option<&[FlowResult]>,
    ways: &[(u16, bool)],
    is_udp: bool,
) -> Option<String> {
    let sent = Way::of(results, ways, true)?.rate();
    let Some(received) = client_results.and_then(|results| Way::of(results, ways, true)) else {
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
    fn sent_data_are_reported_as_the_client_received_them() {
        let ways = [(0, false), (0, true)];
        let results = [flow(1_000_000), flow(7_762_500)];
        let client = [flow(1_250_000), flow(6_225_000)];
        assert_eq!(received_words(&results, &ways, false).as_deref(), Some("received 8 Mbit/s"));
        for (client, is_udp, expected) in [
            (Some(&client[..]), false, "client received 49.8 Mbit/s of 62.1 Mbit/s sent"),
            (Some(&client), true, "client received 49.8 Mbit/s of 62.1 Mbit/s sent, 3 of 1,000 datagrams lost"),
            (None, false, "sent 62.1 Mbit/s; the client did not say what it received"),
        ] {
            assert_eq!(sent_words(&results, client, &ways, is_udp).as_deref(), Some(expected));
        }
        assert_eq!(sent_words(&results[..1], None, &ways[..1], false), None);
    }
}
