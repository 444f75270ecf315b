//! What became of UDP's datagrams.

use super::median;
use crate::transfer::{Transfer, rate, transfers};
use linerate_model::{Task, TrialResult};

/// What a socket holds of payload where nothing is asked for: half of net.core.rmem_default, as its book-keeping takes about
/// as much again.
const USUAL_BUFFER: u64 = 106_496;

/// So many datagrams may be under way, with some of their fragments, as the counters are read.
const AT_THE_EDGES: u64 = 2;

/// What became of UDP's datagrams, as shares of those sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Udp {
    /// Lost between the two NICs, so far as no counter tells otherwise: all of a datagram, or one of its fragments.
    pub(crate) wire: f64,
    /// Lost as the receiving host refused fragments of them.
    pub(crate) refused_fragments: f64,
    /// Damaged on the path: the receiver's checksums failed.
    pub(crate) corrupted: f64,
    /// Dropped by the receiver's NIC or input queue.
    pub(crate) receiver_queue: f64,
    /// Dropped by a filter of the receiving host.
    pub(crate) receiver_filter: f64,
    /// Dropped by the sender's own queue or NIC, as a share of all that was handed to the kernel.
    pub(crate) sender_queue: f64,
    /// Dropped for want of room in the receiving socket.
    pub(crate) socket_buffer: f64,
    /// How much of what arrives that socket holds, seconds.
    pub(crate) buffer_time: f64,
    /// A receiving system does not count what its sockets drop, so that `wire` may include it.
    pub(crate) drops_uncounted: bool,
}

/// The median over the runs of what became of their datagrams.
pub(super) fn udp(runs: &[&TrialResult]) -> Udp {
    let places: Vec<Udp> = runs
        .iter()
        .map(|run| {
            let all = transfers(run);
            let losses = || all.iter().filter_map(|transfer| transfer.loss);
            let sent = losses()
                .map(|loss| loss.of.saturating_sub(loss.places.not_sent + loss.places.sender_queue))
                .sum::<u64>();
            let share = |count: u64| count as f64 / sent.max(1) as f64;
            // A host that refuses fragments counts each of them. What it keeps incomplete has lost fragments before, and may be why its
            // memory is full: then the path lost all of it.
            let refused = |transfer: &Transfer<'_>| {
                let ip = run.hosts.get(transfer.to).map(|seen| seen.network.ip).unwrap_or_default();
                let fragments = ip.reassembly_failures.saturating_sub(ip.reassembly_timeouts);
                let incomplete = ip.unassembled.saturating_sub(fragments);
                let lost = transfer.loss.map_or(0, |loss| loss.places.reassembly);
                if incomplete <= AT_THE_EDGES { lost.min(fragments) } else { 0 }
            };
            let refused = all.iter().map(refused).sum::<u64>();
            let on_path = losses().map(|loss| loss.places.unaccounted + loss.places.reassembly).sum::<u64>() - refused;
            let held = match run.trial.task() {
                Task::Stream(stream) => stream.net.socket.receive_buffer.map_or(USUAL_BUFFER, |bytes| bytes.get()),
                _ => USUAL_BUFFER,
            };
            let came = |transfer: &Transfer<'_>| {
                let received = transfer.receiver.received.as_ref()?;
                let sockets = transfer.receiver.flows.len().max(1) as u64;
                let dropped = transfer.loss.map_or(0, |loss| loss.places.socket_buffer);
                let bytes = received.payload_bytes + dropped * received.payload_bytes / received.messages.max(1);
                Some(rate(bytes, received.window.get()) / sockets as f64)
            };
            let fastest = all.iter().filter_map(came).fold(0.0, f64::max);
            let handed_over =
                losses().map(|loss| loss.of.saturating_sub(loss.places.not_sent)).sum::<u64>().max(1) as f64;
            let dropped = losses().map(|loss| loss.places.sender_queue).sum::<u64>();
            let received = || all.iter().filter_map(|transfer| transfer.receiver.received.as_ref());
            Udp {
                drops_uncounted: received().any(|received| received.socket_drops.is_none()),
                sender_queue: dropped as f64 / handed_over,
                buffer_time: held as f64 / fastest.max(1.0),
                wire: share(on_path),
                refused_fragments: share(refused),
                corrupted: share(losses().map(|loss| loss.places.corrupted).sum()),
                receiver_filter: share(losses().map(|loss| loss.places.receiver_filter).sum()),
                receiver_queue: share(losses().map(|loss| loss.places.receiver_queue).sum()),
                socket_buffer: share(losses().map(|loss| loss.places.socket_buffer).sum()),
            }
        })
        .collect();
    Udp {
        drops_uncounted: places.iter().any(|udp| udp.drops_uncounted),
        sender_queue: median(places.iter().map(|udp| udp.sender_queue)),
        buffer_time: median(places.iter().map(|udp| udp.buffer_time)),
        wire: median(places.iter().map(|udp| udp.wire)),
        refused_fragments: median(places.iter().map(|udp| udp.refused_fragments)),
        corrupted: median(places.iter().map(|udp| udp.corrupted)),
        receiver_filter: median(places.iter().map(|udp| udp.receiver_filter)),
        receiver_queue: median(places.iter().map(|udp| udp.receiver_queue)),
        socket_buffer: median(places.iter().map(|udp| udp.socket_buffer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::tests::placed;
    use crate::transfer::tests::{paths_of, trial};

    /// What became of the 1,000 of 2,000 datagrams that are missing, by what the receiver counts of reassembly.
    fn of(unassembled: u64, failures: u64, timeouts: u64) -> (f64, f64) {
        let mut result = trial(1_000, 1_000);
        paths_of(&mut result)[0].client.sent.as_mut().expect("it sent").fragments = 7;
        let ip = &mut result.hosts.get_mut(&"b".into()).expect("the receiver").network.ip;
        (ip.unassembled, ip.reassembly_failures, ip.reassembly_timeouts) = (unassembled, failures, timeouts);
        let facts = udp(&[&placed(result)]);
        (facts.wire, facts.refused_fragments)
    }

    #[test]
    fn incomplete_datagrams_are_lost_on_the_path_and_refused_ones_at_the_host() {
        assert_eq!(of(1_000, 0, 0), (0.5, 0.0));
        assert_eq!(of(1_000, 1_000, 1_000), (0.5, 0.0), "a fragment did not come in time");
        assert_eq!(of(7_000, 7_000, 0), (0.0, 0.5));
        // Those that are incomplete fill the memory, and then others are refused.
        assert_eq!(of(5_600, 5_000, 0), (0.5, 0.0));
    }
}
