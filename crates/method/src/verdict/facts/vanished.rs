//! Whether nothing of a load arrived, and how large its packets were.

use crate::transfer::{Transfer, transfers};
use linerate_model::{Host, StreamTask, Task, Transport, TrialResult, ip_packets, tcp_packet};

/// Packets that must have been sent. Fewer may be lost in a row on a path that loses one in three.
const FEWEST: u64 = 20;
/// Large packets that show that they pass. A slow path carries few in a short window.
const FEWEST_LARGE: u64 = 5;
/// Segments of TCP that must have been sent again. Time-outs double, so a window of a second has few.
const FEWEST_SENT_AGAIN: u64 = 2;
/// Bytes of an acknowledgement of TCP with its options.
const SMALL_PACKET: u32 = 72;
/// Bytes of addresses and type, which most interfaces count.
const ETHERNET_HEADER: u32 = 14;
/// MTU of Ethernet, if the interface's is not known.
const USUAL_MTU: u32 = 1_500;

/// Packets of which none arrived, although the greeting of each flow did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vanished {
    /// Bytes of the largest IP packets of the load.
    pub(crate) packet_bytes: u32,
    /// IP packets or TCP segments sent in all runs.
    pub(crate) sent: u64,
}

impl Vanished {
    /// Returns the packets of a stream of which nothing arrived in any of `runs`.
    ///
    /// Returns `None` if anything arrived, if hardly anything was sent, or if the packets were as small as those of the greeting,
    /// or of unknown size.
    pub(super) fn of(runs: &[&TrialResult], hosts: &[Host]) -> Option<Self> {
        let (mut packet_bytes, mut sent) = (0, 0);
        for run in runs {
            let Task::Stream(stream) = run.trial.task() else { return None };
            for transfer in transfers(run) {
                if transfer.receiver.received.as_ref().is_none_or(|received| received.payload_bytes > 0) {
                    return None;
                }
                let packets = packets(stream, &transfer, hosts);
                let largest = packets.iter().copied().max().filter(|bytes| *bytes > SMALL_PACKET)?;
                if large_packets_arrived(run, &transfer, &packets, largest) {
                    return None;
                }
                packet_bytes = packet_bytes.max(largest);
                sent += sent_in_vain(stream, &transfer)?;
            }
        }
        (packet_bytes > 0).then_some(Self { packet_bytes, sent })
    }
}

/// Returns whether the receiving interface took large packets, of which no message became whole: fragments of datagrams that lost one each.
fn large_packets_arrived(run: &TrialResult, transfer: &Transfer<'_>, packets: &[u32], largest: u32) -> bool {
    // On a path that drops large packets, the small last fragments arrive, and packets that are none of the load.
    let smallest = packets.iter().copied().min().filter(|smallest| *smallest < largest).unwrap_or(SMALL_PACKET);
    let small = u64::from(smallest + ETHERNET_HEADER);
    let seen = run.hosts.get(transfer.to).into_iter().flat_map(|seen| &seen.interfaces);
    let mut own = seen.filter(|counted| Some(&counted.name) == transfer.receiver.interface.as_ref());
    let more = u64::from(largest - smallest);
    own.any(|counted| counted.rx_bytes > counted.rx_packets * small + FEWEST_LARGE * more)
}

/// Returns the packets that left the sending host; `None` if they are too few.
fn sent_in_vain(stream: &StreamTask, transfer: &Transfer<'_>) -> Option<u64> {
    match stream.net.transport {
        Transport::Udp => {
            let sent = transfer.sender.sent.as_ref()?;
            let kept_back = transfer.loss.map_or(0, |loss| loss.places.sender_queue + loss.places.not_sent);
            Some((sent.messages.saturating_sub(kept_back)) * sent.fragments.max(1)).filter(|count| *count >= FEWEST)
        }
        Transport::Tcp => {
            let flows = || transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref());
            // Time-outs double: the retransmissions may all have been before the window, and still be unanswered in it.
            let again: u64 = flows().map(|tcp| tcp.retransmits.max(tcp.unanswered)).sum();
            (again >= FEWEST_SENT_AGAIN).then(|| flows().map(|tcp| tcp.segments_out.max(tcp.unanswered)).sum())
        }
    }
}

/// Returns the bytes of the IP packets that the sender made of a message.
fn packets(stream: &StreamTask, transfer: &Transfer<'_>, hosts: &[Host]) -> Vec<u32> {
    let ip = stream.net.ip;
    match stream.net.transport {
        Transport::Udp => {
            let mtu = mtu(transfer, hosts).unwrap_or(USUAL_MTU);
            ip_packets(Transport::Udp, ip, stream.message_bytes.get(), mtu)
        }
        Transport::Tcp => {
            let segment = transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.mss).max();
            segment.map(|segment| tcp_packet(ip, segment)).into_iter().collect()
        }
    }
}

/// Returns the MTU of the interface that the transfer left by.
fn mtu(transfer: &Transfer<'_>, hosts: &[Host]) -> Option<u32> {
    let nics = &hosts.iter().find(|host| host.name == *transfer.from)?.nics;
    Some(nics.iter().find(|nic| Some(&nic.name) == transfer.sender.interface.as_ref())?.mtu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::tests::placed;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{FlowCounts, InterfaceCounters, TcpFlow};

    #[test]
    fn only_a_load_of_which_nothing_arrived_has_vanished() {
        let of = |arrived, lost| Vanished::of(&[&placed(trial(arrived, lost))], &[]);
        assert_eq!(of(0, 5_000), Some(Vanished { packet_bytes: 1_028, sent: 5_000 }));
        assert_eq!(of(1, 5_000), None);
        assert_eq!(of(0, 5), None, "hardly anything was sent");
        let (none, some) = (placed(trial(0, 5_000)), placed(trial(4_000, 1_000)));
        assert_eq!(Vanished::of(&[&none, &some], &[]), None);
    }

    #[test]
    fn packets_as_small_as_the_greeting_have_not_vanished_by_their_size() {
        let mut small = placed(trial(0, 5_000));
        stream_of(&mut small.trial).message_bytes = linerate_units::ByteCount::new(44);
        assert_eq!(Vanished::of(&[&small], &[]), None);
        // The kernel did not report the MSS of a connection whose trial was too short.
        let mut unknown = placed(trial(0, 5_000));
        stream_of(&mut unknown.trial).net.transport = Transport::Tcp;
        assert_eq!(Vanished::of(&[&unknown], &[]), None);
    }

    #[test]
    fn fragments_that_arrived_have_not_vanished() {
        // 1,900 bytes leave in a packet of 1,500 and one of 448.
        let of = |small: u64, large: u64| {
            let mut run = placed(trial(0, 5_000));
            stream_of(&mut run.trial).message_bytes = linerate_units::ByteCount::new(1_900);
            let host = run.hosts.get_mut(&"b".into()).expect("host b");
            let (rx_packets, rx_bytes) = (small + large, small * 462 + large * 1_514);
            let name = String::from("eth0");
            host.interfaces = vec![InterfaceCounters { name, rx_packets, rx_bytes, ..InterfaceCounters::default() }];
            Vanished::of(&[&run], &[]).is_some()
        };
        assert!(!of(500, 500));
        assert!(!of(0, 6), "a slow path");
        assert!(!of(5_000, 50), "a full queue has room for small fragments more often");
        assert!(of(1_000, 0), "the last, small fragments alone");
        assert!(of(0, 5), "hardly anything arrived");
    }

    #[test]
    fn large_datagrams_leave_in_packets_of_the_mtu() {
        let mut run = trial(0, 100);
        stream_of(&mut run.trial).message_bytes = linerate_units::ByteCount::new(8_000);
        paths_of(&mut run)[0].client.sent.as_mut().expect("sent").fragments = 6;
        let vanished = Vanished::of(&[&placed(run)], &[]).expect("nothing arrived");
        assert_eq!((vanished.packet_bytes, vanished.sent), (1_500, 600));
    }

    #[test]
    fn tcp_that_only_sends_again_has_vanished() {
        let of = |segments_out, retransmits, unanswered| {
            let mut run = trial(0, 0);
            stream_of(&mut run.trial).net.transport = Transport::Tcp;
            let tcp = TcpFlow { segments_out, retransmits, unanswered, mss: 1_448, ..TcpFlow::default() };
            paths_of(&mut run)[0].client.flows = vec![FlowCounts { tcp: Some(tcp), ..FlowCounts::default() }];
            Vanished::of(&[&run], &[])
        };
        assert_eq!(of(14, 4, 3), Some(Vanished { packet_bytes: 1_500, sent: 14 }));
        assert_eq!(of(0, 0, 6), Some(Vanished { packet_bytes: 1_500, sent: 6 }), "all before the window");
        assert_eq!(of(0, 0, 0), None);
    }
}
