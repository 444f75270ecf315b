//! Streams: what the line, the hosts and loss let through.

use super::{INTERFACE, Network};
use linerate_model::{Direction, EndCounts, FlowCounts, Net, Offered, Received, Sent, StreamTask, TcpFlow, Transport};
use linerate_units::Nanos;

/// The segment that a full packet carries over IPv4.
pub(super) const MSS: u32 = 1_448;
/// A window that never limits, bytes.
const WIDE: u32 = u32::MAX;

/// One direction of one path in a window.
struct Moved {
    sent: Sent,
    received: Received,
}

impl Network {
    /// The end of a stream's path, at its client or its server.
    pub(super) fn stream_end(&self, task: &StreamTask, path: u16, window: Nanos, client: bool) -> EndCounts {
        let (sends, receives) = match task.direction {
            Direction::Send => (client, !client),
            Direction::Receive => (!client, client),
            Direction::Both => (true, true),
        };
        let Moved { sent, received } = self.moved(task, window);
        let flows = u64::from(task.net.flows.max(1));
        let flow = FlowCounts {
            sent_bytes: if sends { sent.payload_bytes / flows } else { 0 },
            received_bytes: if receives { received.payload_bytes / flows } else { 0 },
            tcp: (task.net.transport == Transport::Tcp).then(|| {
                let rate = received.payload_bytes as f64 * 8.0 / window.as_secs_f64() / flows as f64;
                self.tcp_flow(&task.net, rate, window)
            }),
        };
        EndCounts {
            path,
            interface: Some(INTERFACE.into()),
            sent: sends.then_some(sent),
            received: receives.then_some(received),
            flows: vec![flow; flows as usize],
            ..EndCounts::default()
        }
    }

    fn moved(&self, task: &StreamTask, window: Nanos) -> Moved {
        let (message, seconds) = (task.message_bytes.get().max(1), window.as_secs_f64());
        let bits = message as f64 * 8.0;
        // Paths share the line.
        let line = self.payload(task.net.transport, task.net.ip, message) / task.paths.len().max(1) as f64 / bits;
        let host = self.host.get() as f64 / bits;
        let asked = task.offered.map(|offered| match offered {
            Offered::PayloadBps(rate) => rate.get() as f64 / bits,
            Offered::MessagesPerS(rate) => rate.get() as f64,
        });
        let count = |per_s: f64| (per_s * seconds).round() as u64;
        // TCP hands over any number of bytes.
        let bytes = |per_s: f64| match task.net.transport {
            Transport::Udp => count(per_s) * message,
            Transport::Tcp => (per_s * message as f64 * seconds).round() as u64,
        };
        let (sent, arrived) = match task.net.transport {
            Transport::Udp => {
                let sent = asked.unwrap_or(host).min(host);
                (sent, sent.min(line) * (1.0 - self.loss))
            }
            Transport::Tcp => {
                let flows = f64::from(task.net.flows.max(1));
                let allowed = self.reno().map_or(f64::INFINITY, |flow| flow * flows / bits);
                let carried = asked.unwrap_or(host).min(host).min(line).min(allowed);
                (carried, carried)
            }
        };
        let udp = |number: u64| if task.net.transport == Transport::Udp { number } else { 0 };
        Moved {
            sent: Sent {
                window,
                payload_bytes: bytes(sent),
                messages: count(sent),
                not_sent: udp(asked.map_or(0, |asked| count(asked).saturating_sub(count(sent)))),
                io_method: "simulated".into(),
                ..Sent::default()
            },
            received: Received {
                window,
                payload_bytes: bytes(arrived),
                messages: count(arrived),
                arrived: udp(count(arrived)),
                io_method: "simulated".into(),
                ..Received::default()
            },
        }
    }

    /// What TCP Reno reaches at the planted loss, payload bits a second of a flow; none where nothing is lost. Mathis et al. 1997
    /// ("The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", equation 3).
    pub fn reno(&self) -> Option<f64> {
        let segment = f64::from(MSS) * 8.0;
        (self.loss > 0.0).then(|| segment / self.round_trip.as_secs_f64() * (1.5 / self.loss).sqrt())
    }

    /// TCP's own account of a flow of `rate` payload bits a second.
    pub(super) fn tcp_flow(&self, net: &Net, rate: f64, window: Nanos) -> TcpFlow {
        let segments = (rate / 8.0 * window.as_secs_f64() / f64::from(MSS)) as u64;
        let full = rate * f64::from(net.flows.max(1)) >= 0.99 * self.payload(Transport::Tcp, net.ip, 1 << 20);
        let rtt = if full { self.round_trip + self.queue } else { self.round_trip };
        TcpFlow {
            congestion: "reno".into(),
            retransmits: (segments as f64 * self.loss) as u64,
            segments_out: segments,
            segments_in: segments,
            busy: window,
            rtt,
            min_rtt: self.round_trip,
            delivery_rate_bps: rate as u64,
            congestion_window: (rate / 8.0 * rtt.as_secs_f64() / f64::from(MSS)).ceil() as u32,
            peer_window: WIDE,
            mss: MSS,
            ..TcpFlow::default()
        }
    }
}
