//! Counterproofs of the verdict on a stream.

use crate::counterproof::{FLOWS, Test};
use crate::verdict::{FlowFacts, NOTABLE_LOSS, bits};
use linerate_model::{
    Direction, Expects, Host, Limit, LimitPlace, Measurement, Message, Net, Offered, StreamTask, Task, Transport,
    TrialResult, message,
};
use linerate_units::{BitRate, ByteCount, FrameRate};

/// A receive buffer that holds tens of milliseconds of any load that a host takes.
const LARGE_BUFFER: u64 = 8 << 20;
/// A message of TCP this long costs by its bytes, and no longer by the call.
const LARGE_MESSAGE: u64 = 128 << 10;
/// A verdict is put to no more tests.
const MOST_TESTS: usize = 2;
/// Payload of the largest datagram, and of the largest segment with timestamps, that every path takes: packets of 1,280 bytes with a
/// header of IPv6 (RFC 8200, section 5).
const MINIMUM_MTU_DATAGRAM: u64 = 1232;
const MINIMUM_MTU_SEGMENT: u16 = 1208;
/// Payload of the largest datagram over IPv4 that Ethernet takes whole.
const ETHERNET_DATAGRAM: u64 = 1472;
/// Where so many datagrams are lost, all may be too large for the path.
const NEARLY_ALL: f64 = 0.95;
/// Packets with less payload grow too much by their headers: shapers do not agree in which of them they count.
const LARGE_PACKET: u64 = 1_000;
/// What it shows if data in the other direction are no slower.
fn wide_return() -> Message {
    message!("proof-wide-return", "that the return path carries as much as the forward path")
}
/// Returns the conclusion if only large packets are lost.
fn black_hole() -> Message {
    message!("proof-black-hole", "that the path loses large packets only: a path MTU black hole")
}
/// The share of what came through that a path must carry without loss if that was all it let through.
pub(crate) const BELOW: f64 = 0.9;

/// Returns the tests of the verdict on `result`, the one that shows most first.
pub(crate) fn tests(stream: &StreamTask, result: &Measurement, runs: &[&TrialResult], hosts: &[Host]) -> Vec<Test> {
    let facts = FlowFacts::of(result, runs, hosts);
    Subject { stream, result, facts, hosts }.tests()
}

/// A stream whose verdict is to be tested.
struct Subject<'a> {
    stream: &'a StreamTask,
    result: &'a Measurement,
    facts: FlowFacts,
    hosts: &'a [Host],
}

impl Subject<'_> {
    fn tests(&self) -> Vec<Test> {
        let tcp = self.stream.net.transport == Transport::Tcp;
        let tests = match self.result.verdict.leading() {
            Limit::OfferedLoad => {
                vec![Some(self.with(message!("change-no-limit", "no limit to the load"), Expects::Rise, |stream| {
                    stream.offered = None
                }))]
            }
            Limit::Wire if tcp => vec![self.more_flows(Expects::Same)],
            Limit::PathLoss if tcp => {
                let evenly = self.evenly(Expects::LossStays);
                let evenly = evenly.map(|test| test.else_it_is(Limit::Shaper));
                vec![evenly, self.at_minimum_mtu(Expects::LossStays), self.blind_to_loss()]
            }
            Limit::PathLoss => vec![self.half_the_load(), self.at_minimum_mtu(Expects::LossStays)],
            Limit::MtuBlackHole => vec![self.at_minimum_mtu(Expects::LossGoes)],
            Limit::Shaper if self.result.verdict.place == Some(LimitPlace::ReturnPath) => {
                vec![
                    self.reversed(Expects::Fall).map(|test| test.else_it_shows(wide_return())),
                    self.more_flows(Expects::Same),
                ]
            }
            Limit::Shaper if tcp && self.loses() => {
                let evenly = self.evenly(Expects::LossGoes);
                vec![evenly.map(|test| test.else_it_is(Limit::PathLoss)), self.at_minimum_mtu(Expects::LossStays)]
            }
            Limit::Shaper if !tcp => {
                vec![self.at_minimum_mtu(Expects::LossStays), self.just_below(), self.smaller_packets()]
            }
            Limit::Shaper => vec![self.more_flows(Expects::Same), self.smaller_packets()],
            Limit::Window | Limit::SendBuffer => vec![self.more_in_flight(), self.other_control(Expects::Same)],
            Limit::ReceiverBuffer => {
                let change =
                    message!("change-receive-buffer", "a receive buffer of {mib} MiB", mib = LARGE_BUFFER >> 20);
                let larger =
                    |stream: &mut StreamTask| stream.net.socket.receive_buffer = Some(ByteCount::new(LARGE_BUFFER));
                vec![Some(self.with(change, Expects::Rise, larger))]
            }
            Limit::SenderCpu | Limit::ReceiverCpu => {
                vec![self.larger_messages().or_else(|| self.on_more_cores()).or_else(|| self.with_roles_swapped())]
            }
            Limit::SoftirqCpu => vec![self.larger_packets()],
            // Of a device and a tester the calibration tells: see `settle`.
            Limit::Wire
            | Limit::HostBus
            | Limit::Tester
            | Limit::Device
            | Limit::Server
            | Limit::StorageRead
            | Limit::StorageWrite
            | Limit::StartUp
            | Limit::Corruption
            | Limit::Outage
            | Limit::Latency
            | Limit::CannotTell => Vec::new(),
        };
        tests.into_iter().flatten().take(MOST_TESTS).collect()
    }

    fn with(&self, change: Message, expects: Expects, make: impl FnOnce(&mut StreamTask)) -> Test {
        let mut stream = self.stream.clone();
        make(&mut stream);
        Test::new(Task::Stream(stream), change, expects)
    }

    /// Segments were retransmitted, more than by a stumble.
    fn loses(&self) -> bool {
        self.result.tcp().is_some_and(|tcp| tcp.retransmits as f64 > NOTABLE_LOSS * tcp.segments as f64)
    }

    fn more_flows(&self, expects: Expects) -> Option<Test> {
        let before = self.stream.net.flows;
        let after = before.checked_mul(FLOWS).filter(|flows| *flows <= Net::MOST_FLOWS)?;
        Some(self.with(
            message!("change-flows", "{after} flows instead of {before}", after, before),
            expects,
            |stream| stream.net.flows = after,
        ))
    }

    /// Loss by chance does not care for the load; a path that is full loses nothing of half of what it carried.
    fn half_the_load(&self) -> Option<Test> {
        let offered = match self.stream.offered {
            Some(Offered::PayloadBps(rate)) => Offered::PayloadBps(BitRate::per_second(rate.get() / 2)),
            Some(Offered::MessagesPerS(rate)) => Offered::MessagesPerS(FrameRate::per_second(rate.get() / 2)),
            None => Offered::PayloadBps(self.of_each_path(0.5)?),
        };
        let test = self.with(message!("change-half-load", "half the load"), Expects::LossStays, |stream| {
            stream.offered = Some(offered)
        });
        Some(test.else_it_is(Limit::Shaper))
    }

    /// Of datagrams, what came through at once must come through by itself.
    fn just_below(&self) -> Option<Test> {
        let below = self.of_each_path(BELOW)?;
        let change = message!("change-load", "a load of {rate}", rate = bits(self.received()? * BELOW));
        let test = self.with(change, Expects::LossGoes, |stream| stream.offered = Some(Offered::PayloadBps(below)));
        Some(test.else_it_is(Limit::PathLoss))
    }

    /// What TCP reached, in datagrams as long as its segments: nothing is retransmitted and nothing bunched. A path that loses by chance
    /// loses its share of them too; a policer lets them all through, however TCP's bursts fared with it.
    fn evenly(&self, expects: Expects) -> Option<Test> {
        let (rate, bytes) = (self.of_each_path(BELOW)?, u64::from(self.result.tcp()?.mss));
        let change = message!(
            "change-even-datagrams",
            "evenly spaced datagrams at {rate}",
            rate = bits(self.received()? * BELOW)
        );
        Some(self.with(change, expects, |stream| {
            stream.net.transport = Transport::Udp;
            stream.message_bytes = ByteCount::new(bytes.max(StreamTask::UDP_MINIMUM));
            stream.offered = Some(Offered::PayloadBps(rate));
            stream.offload = false;
            let socket = &mut stream.net.socket;
            (socket.congestion, socket.mss, socket.send_buffer, socket.receive_buffer) = (None, None, None, None);
        }))
    }

    fn received(&self) -> Option<f64> {
        Some(self.result.received()?.payload_bps.median)
    }

    /// That share of the result, as the load of each path and direction; none where nothing came through.
    fn of_each_path(&self, share: f64) -> Option<BitRate> {
        let ways = if self.stream.direction == Direction::Both { 2 } else { 1 };
        let rate = self.received()? * share / (self.stream.paths.len() * ways).max(1) as f64;
        (rate >= 1.0).then(|| BitRate::per_second(rate as u64))
    }

    /// Packets that every path carries. Loss that disappears with them was of packets too large for the path, of which no router told.
    fn at_minimum_mtu(&self, expects: Expects) -> Option<Test> {
        let message = self.stream.message_bytes.get();
        let test = match (&self.facts.tcp, self.result.tcp()) {
            (Some(facts), Some(tcp)) => {
                let at_odds = facts.is_heavy() || facts.is_stalled();
                let is_larger = tcp.mss > u32::from(MINIMUM_MTU_SEGMENT);
                let change = message!(
                    "change-segments",
                    "segments of {minimum_mtu_segment} bytes",
                    minimum_mtu_segment = MINIMUM_MTU_SEGMENT
                );
                (at_odds && is_larger).then(|| {
                    let set = |stream: &mut StreamTask| stream.net.socket.mss = Some(MINIMUM_MTU_SEGMENT);
                    self.with(change, expects, set)
                })
            }
            _ => {
                let lost =
                    self.result.loss().map_or(0.0, |loss| loss.places.unaccounted as f64 / loss.of.max(1) as f64);
                let change = message!(
                    "change-datagrams",
                    "datagrams of {minimum_mtu_datagram} bytes",
                    minimum_mtu_datagram = MINIMUM_MTU_DATAGRAM
                );
                (lost >= NEARLY_ALL && message > MINIMUM_MTU_DATAGRAM).then(|| {
                    let set = |stream: &mut StreamTask| stream.message_bytes = ByteCount::new(MINIMUM_MTU_DATAGRAM);
                    self.with(change, expects, set)
                })
            }
        };
        // It is what this test is of, or what it excludes.
        if expects == Expects::LossGoes {
            return test;
        }
        test.map(|test| test.only_excludes(black_hole()).else_it_is(Limit::MtuBlackHole))
    }

    /// Packets with half the payload. A limit of bits lets through the same with all headers, a limit of packets about half.
    fn smaller_packets(&self) -> Option<Test> {
        let payload = match self.result.tcp() {
            Some(tcp) => u64::from(tcp.mss),
            None => self.stream.message_bytes.get(),
        };
        // Larger datagrams are cut into fragments.
        let whole = self.result.tcp().is_some() || payload <= ETHERNET_DATAGRAM;
        let half = payload / 2;
        let set = |stream: &mut StreamTask| match (stream.net.transport, stream.offered) {
            (Transport::Tcp, _) => stream.net.socket.mss = u16::try_from(half).ok(),
            (Transport::Udp, offered) => {
                stream.message_bytes = ByteCount::new(half);
                if let Some(Offered::MessagesPerS(rate)) = offered {
                    stream.offered = Some(Offered::MessagesPerS(FrameRate::per_second(rate.get() * 2)));
                }
            }
        };
        (payload >= LARGE_PACKET && whole).then(|| {
            let test = self.with(message!("change-packets", "packets of {half} bytes", half), Expects::SameOnWire, set);
            test.else_it_is(Limit::Shaper)
                .else_it_shows(message!("proof-packet-limit", "a limit of packets, not of bits"))
        })
    }

    /// Datagrams with twice the payload, as long as they stay whole: as many soft interrupts carry more.
    fn larger_packets(&self) -> Option<Test> {
        let larger = self.stream.message_bytes.get() * 2;
        (self.stream.net.transport == Transport::Udp && larger <= ETHERNET_DATAGRAM).then(|| {
            let set = |stream: &mut StreamTask| stream.message_bytes = ByteCount::new(larger);
            self.with(message!("change-messages", "messages of {larger} bytes", larger), Expects::Rise, set)
        })
    }

    /// Data in the other direction; none where they go both ways, or where threads are pinned to cores of their hosts.
    fn reversed(&self, expects: Expects) -> Option<Test> {
        let direction = match self.stream.direction {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
            Direction::Both => return None,
        };
        let socket = &self.stream.net.socket;
        let pinned = !socket.sender_cpus.is_empty() || !socket.receiver_cpus.is_empty();
        let set = |stream: &mut StreamTask| stream.direction = direction;
        (!pinned).then(|| self.with(message!("change-other-direction", "data in the other direction"), expects, set))
    }

    /// A host without time has none in the other role either.
    fn with_roles_swapped(&self) -> Option<Test> {
        let other = match self.result.verdict.leading() {
            Limit::SenderCpu => Limit::ReceiverCpu,
            Limit::ReceiverCpu => Limit::SenderCpu,
            _ => return None,
        };
        self.reversed(Expects::Names(other))
    }

    /// A control that does not go by loss; without one several flows, each of which loss holds back by itself.
    fn blind_to_loss(&self) -> Option<Test> {
        match self.result.tcp()?.congestion.as_str() {
            "bbr" => None,
            _ => self.other_control(Expects::Rise).or_else(|| self.more_flows(Expects::Rise)),
        }
    }

    /// BBR where the control goes by loss, and one that does where it is BBR; none where a host does not offer it.
    fn other_control(&self, expects: Expects) -> Option<Test> {
        let others: &[&str] = if self.result.tcp()?.congestion == "bbr" { &["cubic", "reno"] } else { &["bbr"] };
        let ends = self.stream.paths.iter().flat_map(|path| [&path.client, path.server.name()]);
        let ends: Vec<&Host> = ends.filter_map(|end| self.hosts.iter().find(|host| host.name == *end)).collect();
        let offered = |name: &str| ends.iter().all(|host| host.congestion_controls.iter().any(|own| own == name));
        let other = others.iter().find(|name| !ends.is_empty() && offered(name))?;
        let change = message!("change-congestion", "congestion control {other}", other = *other);
        Some(self.with(change, expects, |stream| stream.net.socket.congestion = Some((*other).to_owned())))
    }

    fn more_in_flight(&self) -> Option<Test> {
        let socket = &self.stream.net.socket;
        if socket.receive_buffer.is_none() && socket.send_buffer.is_none() {
            return self.more_flows(Expects::Rise);
        }
        Some(self.with(
            message!("change-system-buffers", "buffers of the system's own size"),
            Expects::Rise,
            |stream| {
                (stream.net.socket.receive_buffer, stream.net.socket.send_buffer) = (None, None);
            },
        ))
    }

    /// Fewer calls for each byte. TCP's stops to matter at some length; UDP's is a packet of its own.
    fn larger_messages(&self) -> Option<Test> {
        let bytes = self.stream.message_bytes.get();
        let larger = match self.stream.net.transport {
            Transport::Tcp => LARGE_MESSAGE,
            Transport::Udp => (bytes * 2).min(StreamTask::UDP_MAXIMUM),
        };
        (2 * bytes <= larger || self.stream.net.transport == Transport::Udp && bytes < larger).then(|| {
            let set = |stream: &mut StreamTask| stream.message_bytes = ByteCount::new(larger);
            self.with(message!("change-messages", "messages of {larger} bytes", larger), Expects::Rise, set)
        })
    }

    /// A thread that has no time leaves the other cores idle. A quota does too, but more threads get no more out of it.
    fn on_more_cores(&self) -> Option<Test> {
        let cores = u16::try_from(self.facts.spare_cores_at(self.result.verdict.leading())?).ok()?;
        let before = self.stream.net.flows;
        let after = before.checked_add(cores).filter(|flows| *flows <= Net::MOST_FLOWS)?;
        let set = |stream: &mut StreamTask| stream.net.flows = after;
        (after > before).then(|| {
            self.with(message!("change-flows", "{after} flows instead of {before}", after, before), Expects::Rise, set)
        })
    }
}
