//! Where each missing datagram was lost.
//!
//! The sequence numbers say how many are missing; the hosts' counters say how many were dropped where. A counter never
//! explains more datagrams than are missing, and what no counter explains is unaccounted: lost on a wire or in a device, or dropped
//! where the kernel does not count.

mod drops;
mod host_drops;

use crate::transfer::stream_transfers;
use drops::Drops;
use host_drops::HostDrops;
use linerate_model::{
    Caveat, CaveatKind, EndCounts, HostName, Loss, LossPlaces, Message, Observation, PathCounts, StreamTask, Transport,
    message,
};
use std::collections::BTreeMap;

/// The most segments Linux joins into one packet (UDP_MAX_SEGMENTS).
const MOST_JOINED: u64 = 64;

/// Why the split between places is an estimate.
fn unsure_split() -> Message {
    message!(
        "caveat-place-unsure",
        "hosts dropped packets of which each stands for several datagrams (offload), or is one of several \
         fragments of a datagram: the split between places is an estimate; to have it exact, measure with \
         --no-offload and datagrams that fit the MTU"
    )
}

/// Accounts for every missing datagram of a UDP stream: fills the losses of `paths` by what the hosts saw. Returns a caveat
/// where two places cannot be told apart. TCP is left as it is.
pub(crate) fn place_losses(
    stream: &StreamTask,
    paths: &mut [PathCounts],
    seen: &BTreeMap<&HostName, &Observation>,
) -> Option<Caveat> {
    if stream.net.transport != Transport::Udp {
        return None;
    }
    let (losses, unsure) = losses(stream, paths, seen);
    for (path, forward, loss) in losses {
        let place = &mut paths[path];
        *(if forward { &mut place.forward_loss } else { &mut place.backward_loss }) = Some(loss);
    }
    unsure.then(|| Caveat::new(CaveatKind::PlaceUnsure, unsure_split()))
}

/// Each transfer's loss: path, whether it goes from client to server, and the account.
fn losses(
    stream: &StreamTask,
    paths: &[PathCounts],
    seen: &BTreeMap<&HostName, &Observation>,
) -> (Vec<(usize, bool, Loss)>, bool) {
    let all = stream_transfers(stream, paths);
    let missing: Vec<u64> = all.iter().map(|t| missing(t.sender, t.receiver)).collect();
    // Several transfers through one interface share its drops in proportion to what each of them misses.
    let mut missing_by_sender = BTreeMap::new();
    let mut missing_by_receiver = BTreeMap::new();
    // What a host counts for all its interfaces together is shared by all that it receives.
    let mut missing_by_host = BTreeMap::new();
    for (transfer, missing) in all.iter().zip(&missing) {
        *missing_by_host.entry(transfer.to).or_insert(0) += missing;
        *missing_by_sender.entry((transfer.from, &transfer.sender.interface)).or_insert(0) += missing;
        *missing_by_receiver.entry((transfer.to, &transfer.receiver.interface)).or_insert(0) += missing;
    }
    let observed = |host: &HostName| seen.get(host).copied();
    let joined_at_most = if stream.offload {
        (StreamTask::UDP_MAXIMUM / stream.message_bytes.get().max(1)).clamp(1, MOST_JOINED)
    } else {
        1
    };

    let mut unsure = false;
    let losses = all.iter().zip(missing).map(|(transfer, missing)| {
        let share =
            |drops: u64, of: u64| (u128::from(drops) * u128::from(missing)).div_ceil(u128::from(of.max(1))) as u64;
        let (sender, receiver) = (observed(transfer.from), observed(transfer.to));
        let from = (transfer.from, &transfer.sender.interface);
        let to = (transfer.to, &transfer.receiver.interface);
        let missing_of = |sums: &BTreeMap<_, u64>, key| sums.get(&key).copied().unwrap_or_default();
        let (out, into) = (missing_of(&missing_by_sender, from), missing_of(&missing_by_receiver, to));
        let of_host = missing_by_host[transfer.to];

        let sent = transfer.sender.sent.clone().unwrap_or_default();
        let socket_drops = transfer.receiver.received.as_ref().and_then(|received| received.socket_drops).unwrap_or(0);
        let sending = HostDrops::new(sender, transfer.sender.interface.as_ref());
        let receiving = HostDrops::new(receiver, transfer.receiver.interface.as_ref());
        let ip = receiver.map(|seen| seen.network.ip).unwrap_or_default();
        let drops = Drops {
            // A filter of `clsact` may have dropped what came in and what went out, and counts both as one.
            sender_filter: share(sending.clsact(), out + missing_of(&missing_by_receiver, from)),
            sender_queue: share(sending.sender_queue(), out),
            receiver_queue: share(receiving.receiver_queue(), into),
            receiver_filter: share(receiving.clsact(), into + missing_of(&missing_by_sender, to))
                + share(receiving.ingress(), into)
                + share(receiver.map_or(0, filtered), of_host),
            damaged: share(ip.header_errors, of_host) + share(receiving.damaged_frames(), into),
            checksum: share(receiver.map_or(0, |seen| seen.network.udp.checksum_errors), of_host),
            unassembled: share(ip.unassembled, of_host),
            refused_fragments: share(ip.reassembly_failures.saturating_sub(ip.reassembly_timeouts), of_host),
            socket_buffer: buffer_drops(receiver, socket_drops),
        };
        let (places, unsure_here) = match sent.fragments {
            0 | 1 => drops.of_joined(missing, joined_at_most),
            each => drops.of_fragments(missing, each),
        };
        unsure |= unsure_here;
        let places = LossPlaces { not_sent: sent.not_sent, sender_queue: places.sender_queue + sent.refused, ..places };
        let received = transfer.receiver.received.clone().unwrap_or_default();
        let loss = Loss {
            lost: places.sum(),
            of: sent.messages + sent.refused + sent.not_sent,
            places,
            duplicates: received.duplicates,
            reordered: received.reordered,
        };
        (transfer.path, transfer.forward, loss)
    });
    (losses.collect(), unsure)
}

/// So few packets reach no protocol on any host: multicast for groups that it has not joined, and counters read one after the
/// other.
const USUALLY_FILTERED: u64 = 10;

/// Packets that netfilter or the reverse path filter of a host dropped.
pub(crate) fn filtered(seen: &Observation) -> u64 {
    Some(seen.network.ip.filtered).filter(|count| *count > USUALLY_FILTERED).unwrap_or_default()
}

/// Datagrams handed to the sender's kernel that never reached the receiving program.
fn missing(sender: &EndCounts, receiver: &EndCounts) -> u64 {
    let sent = sender.sent.as_ref().map_or(0, |s| s.messages);
    sent.saturating_sub(receiver.received.as_ref().map_or(0, |r| r.arrived))
}

/// What the receiving sockets dropped for want of room. The kernel counts datagrams with a wrong checksum among `socket_drops` if it
/// looked for the socket first, as it does with all but short ones. Those are taken out, unless the host's own count of full buffers
/// says that the room was what they wanted.
fn buffer_drops(seen: Option<&Observation>, socket_drops: u64) -> u64 {
    let Some(udp) = seen.map(|seen| seen.network.udp) else { return socket_drops };
    let for_room = udp.receive_buffer_errors + udp.memory_errors;
    socket_drops.saturating_sub(udp.checksum_errors).max(socket_drops.min(for_room))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{InterfaceCounters, QdiscCounters, Task, TrialResult, UdpCounters};

    /// The trial with its losses placed.
    pub(crate) fn placed(mut result: TrialResult) -> TrialResult {
        let task = result.trial.task().clone();
        let Task::Stream(stream) = &task else { panic!("no stream") };
        let hosts = result.hosts.clone();
        let unsure = place_losses(stream, paths_of(&mut result), &hosts.iter().collect());
        result.caveats.extend(unsure);
        result
    }

    fn account(change: impl FnOnce(&mut TrialResult)) -> Loss {
        let mut result = trial(9_000, 1_000);
        change(&mut result);
        placed(result).paths()[0].forward_loss.expect("a UDP stream has an account")
    }

    fn interface() -> InterfaceCounters {
        InterfaceCounters { name: "eth0".into(), ..InterfaceCounters::default() }
    }

    #[test]
    fn what_no_counter_explains_is_unaccounted() {
        let loss = account(|_| ());
        assert_eq!((loss.lost, loss.of, loss.places.unaccounted), (1_000, 10_000, 1_000));
    }

    #[test]
    fn each_counter_explains_its_own() {
        let loss = account(|result| {
            if let Some(a) = result.hosts.get_mut(&"a".into()) {
                a.qdiscs = vec![
                    QdiscCounters { interface: "eth0".into(), root: true, drops: 100, ..QdiscCounters::default() },
                    // A child's drops are in its parent's already.
                    QdiscCounters { interface: "eth0".into(), root: false, drops: 100, ..QdiscCounters::default() },
                    QdiscCounters { interface: "eth9".into(), root: true, drops: 5_000, ..QdiscCounters::default() },
                ];
                a.interfaces = vec![InterfaceCounters { tx_dropped: 20, rx_dropped: 7_000, ..interface() }];
            }
            if let Some(b) = result.hosts.get_mut(&"b".into()) {
                b.interfaces = vec![InterfaceCounters { rx_dropped: 30, ..interface() }];
            }
            if let Some(received) = &mut paths_of(result)[0].server.received {
                received.socket_drops = Some(200);
            }
        });
        let places = loss.places;
        assert_eq!(
            (places.sender_queue, places.receiver_queue, places.socket_buffer, places.unaccounted),
            (120, 30, 200, 650)
        );
        assert_eq!(loss.lost, 1_000);
    }

    #[test]
    fn counters_never_explain_more_than_is_missing() {
        let loss = account(|result| {
            if let Some(received) = &mut paths_of(result)[0].server.received {
                received.socket_drops = Some(1_000_000);
            }
        });
        assert_eq!((loss.lost, loss.places.socket_buffer, loss.places.unaccounted), (1_000, 1_000, 0));
    }

    #[test]
    fn a_drop_counted_at_both_ends_of_a_veth_pair_is_the_receivers() {
        let loss = account(|result| {
            for host in result.hosts.values_mut() {
                host.interfaces = vec![InterfaceCounters { tx_dropped: 1_000, rx_dropped: 1_000, ..interface() }];
            }
        });
        assert_eq!((loss.places.receiver_queue, loss.places.sender_queue), (1_000, 0));
    }

    /// Changes what the receiving host saw.
    fn at_receiver(result: &mut TrialResult, change: impl FnOnce(&mut Observation)) {
        change(result.hosts.get_mut(&"b".into()).expect("the receiver"));
    }

    fn socket_drops(result: &mut TrialResult, drops: u64) {
        paths_of(result)[0].server.received.as_mut().expect("it received").socket_drops = Some(drops);
    }

    #[test]
    fn datagrams_with_a_wrong_checksum_are_not_taken_for_a_full_socket_buffer() {
        let loss = account(|result| {
            // The sockets count both kinds as one, and here they dropped 300 for want of room.
            socket_drops(result, 700);
            at_receiver(result, |seen| {
                seen.network.udp =
                    UdpCounters { checksum_errors: 400, receive_buffer_errors: 300, ..Default::default() }
            });
        });
        assert_eq!((loss.places.corrupted, loss.places.socket_buffer, loss.places.unaccounted), (400, 300, 300));
    }

    #[test]
    fn short_datagrams_fail_their_checksum_before_a_socket_is_found() {
        let loss = account(|result| {
            socket_drops(result, 300);
            at_receiver(result, |seen| {
                seen.network.udp =
                    UdpCounters { checksum_errors: 400, receive_buffer_errors: 300, ..Default::default() };
                seen.network.ip.header_errors = 50;
            });
        });
        assert_eq!((loss.places.corrupted, loss.places.socket_buffer, loss.places.unaccounted), (450, 300, 250));
    }

    #[test]
    fn filters_and_reassembly_have_places_of_their_own() {
        let clsact = |interface: &str, drops| QdiscCounters {
            interface: interface.into(),
            kind: "clsact".into(),
            drops,
            ..QdiscCounters::default()
        };
        let loss = account(|result| {
            result.hosts.get_mut(&"a".into()).expect("the sender").qdiscs =
                vec![clsact("eth0", 10), clsact("eth9", 999)];
            at_receiver(result, |seen| {
                seen.qdiscs = vec![clsact("eth0", 20), QdiscCounters { kind: "ingress".into(), ..clsact("eth0", 5) }];
                (seen.network.ip.filtered, seen.network.ip.unassembled) = (100, 7);
            });
        });
        let places = loss.places;
        assert_eq!((places.sender_filter, places.receiver_filter, places.reassembly), (10, 125, 7));
        assert_eq!((places.unaccounted, loss.lost), (1_000 - 10 - 125 - 7, 1_000));
    }

    #[test]
    fn what_a_host_counts_as_a_whole_is_shared_by_all_that_it_receives() {
        let mut result = trial(9_000, 1_000);
        let again = paths_of(&mut result)[0].clone();
        paths_of(&mut result).push(again);
        let stream = stream_of(&mut result.trial);
        stream.paths.push(stream.paths[0].clone());
        at_receiver(&mut result, |seen| seen.network.udp.checksum_errors = 200);
        let result = placed(result);
        let corrupted: Vec<u64> =
            result.paths().iter().filter_map(|path| path.forward_loss).map(|loss| loss.places.corrupted).collect();
        assert_eq!(corrupted, [100, 100]);
    }

    #[test]
    fn a_few_packets_that_no_protocol_takes_explain_no_loss() {
        // With offloads each of them may stand for many datagrams.
        let of = |filtered| {
            let loss = account(|result| {
                stream_of(&mut result.trial).offload = true;
                let b = result.hosts.get_mut(&"b".into()).expect("host b");
                b.network.ip.filtered = filtered;
            });
            (loss.places.receiver_filter, loss.places.unaccounted)
        };
        assert_eq!((of(3), of(200)), ((0, 1_000), (1_000, 0)));
    }

    #[test]
    fn unsent_and_refused_count_as_lost() {
        let loss = account(|result| {
            if let Some(sent) = &mut paths_of(result)[0].client.sent {
                (sent.not_sent, sent.refused) = (50, 5);
            }
        });
        assert_eq!((loss.lost, loss.of), (1_055, 10_055));
        assert_eq!((loss.places.not_sent, loss.places.sender_queue, loss.places.unaccounted), (50, 5, 1_000));
    }

    #[test]
    fn a_drop_of_a_datagram_in_fragments_stands_for_one_at_the_most() {
        let mut result = trial(9_000, 1_000);
        // The sender joins nothing above the MTU.
        stream_of(&mut result.trial).offload = true;
        paths_of(&mut result)[0].client.sent.as_mut().expect("it sent").fragments = 6;
        at_receiver(&mut result, |seen| {
            seen.interfaces = vec![InterfaceCounters { rx_dropped: 100, ..interface() }];
            seen.network.ip.unassembled = 400;
        });
        let result = placed(result);
        let places = result.paths()[0].forward_loss.expect("an account").places;
        assert_eq!((places.receiver_queue, places.reassembly, places.unaccounted), (100, 300, 600));
        assert_eq!(result.caveats.iter().map(|c| c.kind).collect::<Vec<_>>(), [CaveatKind::PlaceUnsure]);
    }

    #[test]
    fn two_places_under_offload_are_marked_unsure() {
        let mut result = trial(9_000, 1_000);
        stream_of(&mut result.trial).offload = true;
        if let Some(b) = result.hosts.get_mut(&"b".into()) {
            b.interfaces = vec![InterfaceCounters { rx_dropped: 1, ..interface() }];
        }
        if let Some(received) = &mut paths_of(&mut result)[0].server.received {
            received.socket_drops = Some(10);
        }
        assert_eq!(placed(result).caveats.iter().map(|c| c.kind).collect::<Vec<_>>(), [CaveatKind::PlaceUnsure]);
    }
}
