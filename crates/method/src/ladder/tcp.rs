//! TCP: one stream in order, with windows, acknowledgements and congestion control. Its larger header is a part of its gap
//! that no host can win back.

use super::{Facts, Figure, LadderRequest, Layer, efficiency};
use linerate_model::{LayerName, StreamTask, Task, TransactTask, Transport, tcp_packet};
use linerate_units::ByteCount;

pub(super) const STREAM: &str = "tcp";
const TRANSACTIONS: &str = "tcp transactions";
/// What TCP is handed at a time, as by `linerate stream`.
const MESSAGE: ByteCount = ByteCount::new(1 << 20);
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

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, String> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        facts.streamed(STREAM, TRANSACTIONS, |result| {
            // Segments may be smaller than the path allows (--mss).
            let packet = result.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
            efficiency(Transport::Tcp, ip, result.message_bytes, packet)
        })
    }

    fn advice(&self, facts: &Facts<'_>) -> String {
        let Some(tcp) = facts.flows(STREAM).and_then(|flows| flows.tcp.as_ref()) else { return String::new() };
        let percent = |share: f64| share * 100.0;
        let retransmitted = tcp.retransmits as f64 / tcp.segments.max(1) as f64;
        if tcp.receive_window_limited >= STALL_WORTH_NAMING {
            return format!(
                "the receiver's window stalled TCP for {:.0} % of the time: try a larger --receive-buffer (and \
                 net.ipv4.tcp_rmem), or --flows 4",
                percent(tcp.receive_window_limited)
            );
        }
        if tcp.send_buffer_limited >= STALL_WORTH_NAMING {
            return format!(
                "the send buffer stalled TCP for {:.0} % of the time: try a larger --send-buffer (and net.ipv4.tcp_wmem), or \
                 --flows 4",
                percent(tcp.send_buffer_limited)
            );
        }
        if retransmitted >= LOSS_WORTH_NAMING {
            let find = format!(
                "TCP ({}) retransmitted {:.1} % of its segments: find where the path loses packets with `linerate stream --udp \
                 --rate`",
                tcp.congestion,
                percent(retransmitted)
            );
            return if tcp.congestion.starts_with("bbr") {
                find
            } else {
                find + ", and try --congestion bbr, which gives way to loss less"
            };
        }
        format!(
            "neither window nor loss held TCP ({}) back: try --flows 4 for more cores, and another --congestion",
            tcp.congestion
        )
    }
}
