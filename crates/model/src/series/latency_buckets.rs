//! Response times of one interval, coarse enough to be kept for every point of a series.

use crate::checked::{OutOfRange, within};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of durations in buckets of a quarter of an octave: each bucket ends about 19 % above where it begins, so that a
/// quantile is known to 9 %. Buckets merge by addition.
///
/// Bucket `b` holds durations from 2^(b/4) ns on, the quarter taken linearly: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 ... ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<(u8, u64)>")]
pub struct LatencyBuckets(Vec<(u8, u64)>);

impl TryFrom<Vec<(u8, u64)>> for LatencyBuckets {
    type Error = OutOfRange;

    fn try_from(buckets: Vec<(u8, u64)>) -> Result<Self, OutOfRange> {
        if !buckets.is_sorted_by(|(before, _), (after, _)| before < after) {
            return Err(OutOfRange("the buckets of response times are not in order".to_owned()));
        }
        if let Some((last, _)) = buckets.last() {
            within("as a bucket of response times", *last, 0..=Self::COUNT as u8 - 1)?;
        }
        Ok(Self(buckets))
    }
}

impl LatencyBuckets {
    /// Number of buckets: enough for 100 s and a little more.
    pub const COUNT: usize = 148;

    /// The bucket of a duration.
    #[inline]
    pub fn bucket(nanos: u64) -> usize {
        let nanos = nanos.max(4);
        let octave = nanos.ilog2();
        let quarter = (nanos >> (octave - 2)) & 3;
        (((octave - 2) * 4) as usize + quarter as usize).min(Self::COUNT - 1)
    }

    /// Where a bucket begins.
    fn begins(bucket: u8) -> u64 {
        (4 + u64::from(bucket % 4)) << (bucket / 4)
    }

    /// The counts of all [`LatencyBuckets::COUNT`] buckets.
    pub fn of(counts: &[u64]) -> Self {
        let some = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Self(some.map(|(bucket, count)| (bucket as u8, *count)).collect())
    }

    /// Durations counted.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The middle of the bucket that `share` (0 to 1) of all are at or below; none if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut below = 0_u64;
        self.0.iter().find_map(|(bucket, count)| {
            below = below.saturating_add(*count);
            (below >= wanted).then(|| Nanos::new((Self::begins(*bucket) + Self::begins(*bucket + 1)) / 2))
        })
    }

    /// What was counted since the earlier counts `before` of the same durations.
    pub fn since(&self, before: &Self) -> Self {
        let earlier = |bucket: &u8| before.0.iter().find(|(own, _)| own == bucket).map_or(0, |(_, count)| *count);
        let grown = self.0.iter().map(|(bucket, count)| (*bucket, count.saturating_sub(earlier(bucket))));
        Self(grown.filter(|(_, count)| *count > 0).collect())
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            match self.0.binary_search_by_key(bucket, |(own, _)| *own) {
                Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(*count),
                Err(at) => self.0.insert(at, (*bucket, *count)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_join_without_gaps() {
        for bucket in 0..LatencyBuckets::COUNT as u8 {
            let begins = LatencyBuckets::begins(bucket);
            assert_eq!(LatencyBuckets::bucket(begins), usize::from(bucket));
            assert_eq!(LatencyBuckets::bucket(LatencyBuckets::begins(bucket + 1) - 1), usize::from(bucket));
        }
        assert!(LatencyBuckets::begins(LatencyBuckets::COUNT as u8 - 1) > 100_000_000_000);
        assert_eq!((LatencyBuckets::bucket(0), LatencyBuckets::bucket(u64::MAX)), (0, LatencyBuckets::COUNT - 1));
    }

    proptest! {
        #[test]
        fn a_quantile_is_known_to_an_eighth(mut values in prop::collection::vec(4u64..10_000_000_000, 1..200), share in 0.01f64..1.0) {
            let mut counts = [0; LatencyBuckets::COUNT];
            for value in &values {
                counts[LatencyBuckets::bucket(*value)] += 1;
            }
            values.sort_unstable();
            let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len());
            let (found, truth) = (LatencyBuckets::of(&counts).quantile(share).expect("some").get(), values[at - 1]);
            prop_assert!(found.abs_diff(truth) <= truth / 8 + 1, "{found} for {truth}");
        }

        #[test]
        fn merging_adds(one in prop::collection::vec(0u64..3, LatencyBuckets::COUNT), other in prop::collection::vec(0u64..3, LatencyBuckets::COUNT)) {
            let both: Vec<u64> = one.iter().zip(&other).map(|(a, b)| a + b).collect();
            let mut merged = LatencyBuckets::of(&one);
            merged.merge(&LatencyBuckets::of(&other));
            prop_assert_eq!(merged, LatencyBuckets::of(&both));
        }
    }
}
