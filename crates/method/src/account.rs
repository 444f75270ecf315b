//! Where each missing datagram was lost.
//!
//! The sequence numbers say how many are missing; the hosts' counters say how many were dropped where. A counter never
//! explains more datagrams than are missing, and what no counter explains was lost between the two NICs.

use crate::transfer::stream_transfers;
use linerate_model::{
    Caveat, CaveatKind, EndCounts, HostName, Loss, LossPlaces, Observation, PathCounts, StreamTask, Transport,
};
use std::collections::BTreeMap;

/// The most segments Linux joins into one packet (UDP_MAX_SEGMENTS).
const MOST_JOINED: u64 = 64;

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
    unsure.then(|| {
        Caveat::new(
            CaveatKind::PlaceUnsure,
            "more than one place dropped packets, and with offload on a dropped packet stands for an unknown number of \
             datagrams: the split between places is an estimate; measure with --no-offload to have it exact",
        )
    })
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
    for (transfer, missing) in all.iter().zip(&missing) {
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
        let out = share(
            sender_drops(observed(transfer.from), transfer.sender),
            missing_by_sender[&(transfer.from, &transfer.sender.interface)],
        );
        let into = share(
            receiver_drops(observed(transfer.to), transfer.receiver),
            missing_by_receiver[&(transfer.to, &transfer.receiver.interface)],
        );
        let socket = transfer.receiver.received.as_ref().map_or(0, |r| r.socket_drops);
        unsure |=
            joined_at_most > 1 && missing > 0 && [out, into, socket].iter().filter(|drops| **drops > 0).count() > 1;

        let mut left = missing;
        let mut take = |drops: u64| {
            let taken = left.min(drops.saturating_mul(joined_at_most));
            left -= taken;
            taken
        };
        // The receiver's first: where the two NICs are one veth pair, what the receiver's queue drops is counted as a drop
        // on sending too.
        let (receiver_queue, socket_buffer, sender_queue) = (take(into), take(socket), take(out));
        let sent = transfer.sender.sent.clone().unwrap_or_default();
        let received = transfer.receiver.received.clone().unwrap_or_default();
        let places = LossPlaces {
            not_sent: sent.not_sent,
            sender_queue: sender_queue + sent.refused,
            wire: left,
            receiver_queue,
            socket_buffer,
        };
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

/// Datagrams handed to the sender's kernel that never reached the receiving program.
fn missing(sender: &EndCounts, receiver: &EndCounts) -> u64 {
    let sent = sender.sent.as_ref().map_or(0, |s| s.messages);
    sent.saturating_sub(receiver.received.as_ref().map_or(0, |r| r.arrived))
}

/// What the sending host's queue and NIC dropped on the way out of the end's interface.
fn sender_drops(observation: Option<&Observation>, end: &EndCounts) -> u64 {
    let (Some(observation), Some(interface)) = (observation, &end.interface) else { return 0 };
    let queue: u64 =
        observation.qdiscs.iter().filter(|q| q.root && q.interface == *interface).map(|qdisc| qdisc.drops).sum();
    let nic: u64 = observation
        .interfaces
        .iter()
        .filter(|i| i.name == *interface)
        .map(|interface| interface.tx_dropped + interface.tx_errors)
        .sum();
    queue + nic
}

/// What the receiving host's NIC and input queue dropped. A drop of the kernel's input queue (softnet) is counted at the
/// interface too, and there it belongs to one network namespace, so the interface's counter is the one to use.
fn receiver_drops(observation: Option<&Observation>, end: &EndCounts) -> u64 {
    let (Some(observation), Some(interface)) = (observation, &end.interface) else { return 0 };
    observation
        .interfaces
        .iter()
        .filter(|i| i.name == *interface)
        .map(|interface| interface.rx_dropped + interface.rx_errors)
        .sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{InterfaceCounters, QdiscCounters, Task, TrialResult};

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
    fn what_no_counter_explains_was_lost_on_the_wire() {
        let loss = account(|_| ());
        assert_eq!((loss.lost, loss.of, loss.places.wire), (1_000, 10_000, 1_000));
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
                received.socket_drops = 200;
            }
        });
        let places = loss.places;
        assert_eq!(
            (places.sender_queue, places.receiver_queue, places.socket_buffer, places.wire),
            (120, 30, 200, 650)
        );
        assert_eq!(loss.lost, 1_000);
    }

    #[test]
    fn counters_never_explain_more_than_is_missing() {
        let loss = account(|result| {
            if let Some(received) = &mut paths_of(result)[0].server.received {
                received.socket_drops = 1_000_000;
            }
        });
        assert_eq!((loss.lost, loss.places.socket_buffer, loss.places.wire), (1_000, 1_000, 0));
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

    #[test]
    fn unsent_and_refused_count_as_lost() {
        let loss = account(|result| {
            if let Some(sent) = &mut paths_of(result)[0].client.sent {
                (sent.not_sent, sent.refused) = (50, 5);
            }
        });
        assert_eq!((loss.lost, loss.of), (1_055, 10_055));
        assert_eq!((loss.places.not_sent, loss.places.sender_queue, loss.places.wire), (50, 5, 1_000));
    }

    #[test]
    fn two_places_under_offload_are_marked_unsure() {
        let mut result = trial(9_000, 1_000);
        stream_of(&mut result.trial).offload = true;
        if let Some(b) = result.hosts.get_mut(&"b".into()) {
            b.interfaces = vec![InterfaceCounters { rx_dropped: 1, ..interface() }];
        }
        if let Some(received) = &mut paths_of(&mut result)[0].server.received {
            received.socket_drops = 10;
        }
        assert_eq!(placed(result).caveats.iter().map(|c| c.kind).collect::<Vec<_>>(), [CaveatKind::PlaceUnsure]);
    }
}
