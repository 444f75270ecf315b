//! TCP: one stream in order, with windows, acknowledgements and congestion control. Its larger header is a part of its gap
//! that no host can win back.

use super::{Facts, Figure, LadderRequest, Layer, efficiency};
use linerate_model::{
    LayerName, Message, MessageValue, StreamTask, Task, TransactTask, Transport, message, tcp_packet,
};
use linerate_units::ByteCount;

pub(super) const STREAM: &str = "tcp";
const TRANSACTIONS: &str = "tcp transactions";
/// What TCP is handed at a time, as by `linerate stream`.
const MESSAGE: ByteCount = ByteCount::new(125_000);
/// A stall of this share of the time accounts for a gap that is worth naming.
const STALL_WORTH_NAMING: f64 = 0.1;
/// One segment in a thousand sent again keeps a window small: a sender that answers each loss has about sqrt(1.5 / p), here
/// 39, segments in flight (RFC 5348 section 3.1).
const LOSS_WORTH_NAMING: f64 = 0.001;

pub(super) struct Tcp;

impl Layer for Tcp {
    fn name(&self) -> LayerName {
        LayerName::Tcp
    }

    fn trials(&self, request: &LadderRequest) -> Vec<(String, Task)> {
        let (tcp, paths) = (Transport::Tcp, request.paths());
        let stream = StreamTask {
            paths: paths.clone(),
            net: request.net(tcp, request.flows),
            ..StreamTask::plain(tcp, MESSAGE)
        };
        let transact = TransactTask { paths, net: request.net(tcp, 1), ..TransactTask::plain(tcp) };
        vec![(STREAM.to_owned(), Task::Stream(stream)), (TRANSACTIONS.to_owned(), Task::Transact(transact))]
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        facts.streamed(STREAM, TRANSACTIONS, |result| {
            // Segments may be smaller than the path allows (--mss).
            let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
            efficiency(Transport::Tcp, ip, result.message_bytes, packet)
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> Option<Message> {
        let tcp = facts.flows(STREAM).and_then(|flows| flows.tcp.as_ref())?;
        let retransmitted = tcp.retransmits as f64 / tcp.segments.max(1) as f64;
        if tcp.receive_window_limited >= STALL_WORTH_NAMING {
            return Some(message!(
                "ladder-next-window",
                "the receiver's window stalled TCP for {share} of the time: try a larger --receive-buffer (and \
                 net.ipv4.tcp_rmem), or --flows 4",
                share = MessageValue::percent(tcp.receive_window_limited, 0)
            ));
        }
        if tcp.send_buffer_limited >= STALL_WORTH_NAMING {
            return Some(message!(
                "ladder-next-send-buffer",
                "the send buffer stalled TCP for {share} of the time: try a larger --send-buffer (and \
                 net.ipv4.tcp_wmem), or --flows 4",
                share = MessageValue::percent(tcp.send_buffer_limited, 0)
            ));
        }
        if retransmitted >= LOSS_WORTH_NAMING {
            let find = message!(
                "ladder-next-loss",
                "TCP ({congestion}) retransmitted {share} of its segments: find where the path loses packets with \
                 `linerate stream --udp --rate`.",
                congestion = &tcp.congestion,
                share = MessageValue::percent(retransmitted, 1)
            );
            let or_bbr = (!tcp.congestion.starts_with("bbr"))
                .then(|| message!("ladder-next-bbr", "Also try --congestion bbr, which gives way to loss less."));
            return Some(find.and(or_bbr));
        }
        Some(message!(
            "ladder-next-tcp",
            "neither window nor loss held TCP ({congestion}) back: try --flows 4 for more cores, and another \
             --congestion",
            congestion = &tcp.congestion
        ))
    }
}
