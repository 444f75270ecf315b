//! The places of missing datagrams, by what the counters of both hosts say was dropped of one transfer.

use linerate_model::LossPlaces;

/// What was dropped of one transfer. Packets, if not said otherwise: each may be several datagrams joined, or one of several fragments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drops {
    pub(super) sender_filter: u64,
    pub(super) sender_queue: u64,
    pub(super) receiver_queue: u64,
    pub(super) receiver_filter: u64,
    /// Frames that were damaged, and packets with a wrong IP header.
    pub(super) damaged: u64,
    /// Datagrams with a wrong checksum.
    pub(super) checksum: u64,
    /// Datagrams of which the host could not put the fragments together, and `refused_fragments`.
    pub(super) unassembled: u64,
    /// Fragments that the host took no notice of, as for want of memory.
    pub(super) refused_fragments: u64,
    /// What the sockets had no room for: datagrams, or several of them joined.
    pub(super) socket_buffer: u64,
}

/// Missing datagrams that have no place yet.
struct Left(u64);

impl Left {
    /// Places as many as `drops` may explain.
    fn take(&mut self, drops: u64) -> u64 {
        let taken = self.0.min(drops);
        self.0 -= taken;
        taken
    }
}

impl Drops {
    /// The places of `missing` datagrams that each fitted into a packet, of which up to `at_most` may have been joined; and whether
    /// the split between places is unsure.
    pub(super) fn of_joined(self, missing: u64, at_most: u64) -> (LossPlaces, bool) {
        let mut left = Left(missing);
        let joined = |drops: u64| drops.saturating_mul(at_most);
        // Damaged packets and fragments never came joined. The receiver's other drops come before the sender's: where the two NICs are
        // one veth pair, what the receiver's queue drops is counted as a drop on sending too.
        let (corrupted, reassembly) = (left.take(self.checksum + self.damaged), left.take(self.unassembled));
        // Filters first: some drivers count what an XDP program drops as a drop of the queue, too.
        let receiver_filter = left.take(joined(self.receiver_filter));
        let receiver_queue = left.take(joined(self.receiver_queue));
        let socket_buffer = left.take(joined(self.socket_buffer));
        let (sender_filter, sender_queue) =
            (left.take(joined(self.sender_filter)), left.take(joined(self.sender_queue)));
        let places = LossPlaces {
            not_sent: 0,
            sender_filter,
            sender_queue,
            unaccounted: left.0,
            corrupted,
            receiver_queue,
            receiver_filter,
            reassembly,
            socket_buffer,
        };
        let dropping =
            [self.sender_filter, self.sender_queue, self.receiver_queue, self.receiver_filter, self.socket_buffer];
        let several = dropping.into_iter().filter(|drops| *drops > 0).count() > 1;
        (places, at_most > 1 && missing > 0 && several)
    }

    /// The same of datagrams in `each` fragments. A dropped packet then was one fragment: so many drops made an end of as many datagrams at
    /// the most, and at the least of as many as have all their fragments among them. The most is taken, as a kernel that drops one of a
    /// datagram's own fragments does not send the others. What the receiver could not put together includes what lost a
    /// fragment to a counted drop.
    pub(super) fn of_fragments(self, missing: u64, each: u64) -> (LossPlaces, bool) {
        let mut left = Left(missing);
        // Behind reassembly there are datagrams only, so that these counts are exact.
        let (checksum, socket_buffer) = (left.take(self.checksum), left.take(self.socket_buffer));
        let fragments = left.0;
        let damaged = left.take(self.damaged);
        let (receiver_filter, receiver_queue) = (left.take(self.receiver_filter), left.take(self.receiver_queue));
        let (sender_filter, sender_queue) = (left.take(self.sender_filter), left.take(self.sender_queue));
        let reassembly = left.take(self.unassembled.saturating_sub(fragments - left.0));
        let places = LossPlaces {
            not_sent: 0,
            sender_filter,
            sender_queue,
            unaccounted: left.0,
            corrupted: checksum + damaged,
            receiver_queue,
            receiver_filter,
            reassembly,
            socket_buffer,
        };
        let dropped = self.damaged
            + self.receiver_filter
            + self.receiver_queue
            + self.sender_filter
            + self.sender_queue
            + self.refused_fragments;
        (places, dropped.div_ceil(each).min(fragments) < dropped.min(fragments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places that hold any of 1,000 missing datagrams of 7 fragments, and whether they are unsure.
    fn of_fragments(drops: Drops) -> (Vec<(&'static str, u64)>, bool) {
        let (places, unsure) = drops.of_fragments(1_000, 7);
        assert_eq!(places.sum(), 1_000);
        (
            places
                .named()
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(place, count)| (place.english, count))
                .collect(),
            unsure,
        )
    }

    #[test]
    fn a_dropped_fragment_stands_for_no_more_than_its_datagram() {
        let (places, unsure) = of_fragments(Drops { sender_queue: 300, ..Drops::default() });
        assert_eq!((places, unsure), (vec![("sender's queue or NIC", 300), ("unaccounted", 700)], true));
        // Joined datagrams with the same counts.
        let (joined, _) = Drops { sender_queue: 300, ..Drops::default() }.of_joined(1_000, 7);
        assert_eq!((joined.sender_queue, joined.unaccounted), (1_000, 0));
    }

    #[test]
    fn what_lost_a_fragment_to_a_counted_drop_is_not_of_reassembly() {
        // The receiver misses fragments of all datagrams, of which the sender's queue dropped those of 300.
        let (places, unsure) = of_fragments(Drops { sender_queue: 300, unassembled: 1_000, ..Drops::default() });
        assert_eq!(places, [("sender's queue or NIC", 300), ("receiver's IP reassembly", 700)]);
        assert!(unsure, "the 300 may be of 43 datagrams");
        let (places, _) = of_fragments(Drops { receiver_queue: 400, unassembled: 300, ..Drops::default() });
        assert_eq!(places, [("unaccounted", 600), ("receiver's NIC or kernel queue", 400)]);
    }

    #[test]
    fn drops_of_whole_datagrams_are_exact() {
        let drops = Drops { checksum: 100, socket_buffer: 300, unassembled: 200, ..Drops::default() };
        let (places, unsure) = of_fragments(drops);
        let expected = [
            ("unaccounted", 400),
            ("corrupted", 100),
            ("receiver's IP reassembly", 200),
            ("receiver's socket buffer", 300),
        ];
        assert_eq!((places, unsure), (expected.to_vec(), false));
        // Far more fragments than make all that is left: nothing else can have lost it.
        let (places, unsure) = of_fragments(Drops { sender_queue: 7_000, ..drops });
        let expected = [("sender's queue or NIC", 600), ("corrupted", 100), ("receiver's socket buffer", 300)];
        assert_eq!((places, unsure), (expected.to_vec(), false));
    }

    #[test]
    fn fragments_that_the_receiver_refused_may_be_of_fewer_datagrams() {
        let refused = |count| of_fragments(Drops { unassembled: count, refused_fragments: count, ..Drops::default() });
        assert_eq!(refused(7_000), (vec![("receiver's IP reassembly", 1_000)], false));
        assert_eq!(refused(3_000), (vec![("receiver's IP reassembly", 1_000)], true));
    }
}
