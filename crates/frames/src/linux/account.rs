//! Account of the arrivals of one stream at one port, for packet sockets. bpf/receive.bpf.c does the same.

use linerate_model::Histogram;

/// Number of sequence numbers in which duplicates are recognised.
const REMEMBERED: usize = 1024;

/// Arrivals of a stream at a port.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) received: u64,
    /// Bytes of the received frames, without FCS.
    pub(crate) bytes: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) latency: Histogram,
    /// Highest number so far plus one.
    pub(crate) expected: u64,
    /// Sending time of the last frame that followed a gap in the numbers.
    pub(crate) last_gap: Option<u64>,
    /// Number last seen in each place, plus one.
    seen: Vec<u64>,
}

impl Account {
    pub(crate) fn new() -> Self {
        Self {
            received: 0,
            bytes: 0,
            duplicates: 0,
            reordered: 0,
            first: 0,
            last: 0,
            latency: Histogram::default(),
            expected: 0,
            last_gap: None,
            seen: vec![0; REMEMBERED],
        }
    }

    /// Counts a frame of `bytes`, sent at `sent`, that arrived at `at`. `carried` are the lower 32 bits of its number.
    pub(crate) fn arrived(&mut self, carried: u32, sent: u64, at: u64, bytes: u64) {
        let next = self.number_of(carried) + 1;
        if std::mem::replace(&mut self.seen[carried as usize % REMEMBERED], next) == next {
            self.duplicates += 1;
            return;
        }
        if self.received == 0 {
            self.first = at;
        }
        self.last = at;
        self.received += 1;
        self.bytes += bytes;
        if next <= self.expected {
            self.reordered += 1;
        } else {
            if next > self.expected + 1 {
                self.last_gap = Some(sent);
            }
            self.expected = next;
        }
        self.latency.record(at.saturating_sub(sent));
    }

    /// Returns the number nearest to the expected one. A long trial has more frames than 32 bits can count.
    fn number_of(&self, carried: u32) -> u64 {
        let ahead = carried.wrapping_sub(self.expected as u32) as i32;
        self.expected.checked_add_signed(ahead.into()).unwrap_or_else(|| carried.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_beyond_32_bits() {
        let mut account = Account::new();
        for (carried, at) in [(u32::MAX - 1, 100), (u32::MAX, 200), (1, 300), (0, 400), (1, 500), (4, 600)] {
            account.arrived(carried, at - 50, at, 60);
        }
        assert_eq!((account.received, account.duplicates, account.reordered), (5, 1, 1));
        assert_eq!((account.expected, account.last_gap), ((1 << 32) + 5, Some(550)));
    }

    #[test]
    fn counts_duplicates_and_reordering() {
        let mut account = Account::new();
        for (number, at) in [(0, 100), (1, 200), (3, 300), (2, 400), (3, 500), (9, 600)] {
            account.arrived(number, at - 50, at, 60);
        }
        assert_eq!((account.received, account.duplicates, account.reordered, account.bytes), (5, 1, 1, 300));
        assert_eq!((account.first, account.last), (100, 600));
        assert_eq!((account.expected, account.last_gap), (10, Some(550)), "4 to 8 were missing before frame 9");
        assert_eq!((account.latency.count(), account.latency.quantile(0.5)), (5, 50));
    }
}
