//! Token buckets that bound the packets of a reflector.

/// Bucket that earns `per_second` packets a second and saves up at most a tenth of a second's packets, at least one.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenBucket {
    interval_ns: u64,
    saved_ns: u64,
    /// Time at which all tokens taken so far are earned.
    earned_at: u64,
}

const NANOS_PER_S: u64 = 1_000_000_000;
const SAVED_NS: u64 = NANOS_PER_S / 10;

impl TokenBucket {
    /// A full bucket.
    pub(super) fn new(per_second: u32) -> Self {
        let interval_ns = NANOS_PER_S / u64::from(per_second.max(1));
        Self { interval_ns, saved_ns: SAVED_NS.max(interval_ns), earned_at: 0 }
    }

    /// Whether a token is left at `now`, nanoseconds of a monotonic clock.
    pub(super) fn has_token(&self, now: u64) -> bool {
        self.earned_at.max(now) + self.interval_ns <= now + self.saved_ns
    }

    /// Takes a token, whether or not one is left.
    pub(super) fn take(&mut self, now: u64) {
        self.earned_at = self.earned_at.max(now) + self.interval_ns;
    }

    /// Whether the bucket is full again, as a new one is.
    pub(super) fn is_full(&self, now: u64) -> bool {
        self.earned_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(bucket: &mut TokenBucket, times: impl Iterator<Item = u64>) -> u32 {
        let mut count = 0;
        for now in times {
            if bucket.has_token(now) {
                bucket.take(now);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_flood_gets_the_rate_and_one_burst() {
        let mut bucket = TokenBucket::new(1_000);
        assert_eq!(taken(&mut bucket, (0..500).map(|_| 5)), 100);
        let second = (0..1_000_000u64).map(|micros| 5 + micros * 1_000);
        assert_eq!(taken(&mut bucket, second), 999);
        assert!(!bucket.is_full(1_000_000_000) && bucket.is_full(1_200_000_000));
    }

    #[test]
    fn rates_below_ten_a_second_allow_single_packets() {
        let mut bucket = TokenBucket::new(1);
        assert_eq!(taken(&mut bucket, (0..50).map(|tenths| tenths * NANOS_PER_S / 10)), 5);
    }
}
