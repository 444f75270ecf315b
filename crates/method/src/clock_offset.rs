//! How far a host's clock is from the runner's, by the on-wire protocol of NTP (RFC 5905 section 8).

use linerate_model::{ClockExchange, ClockOffset, HostName};
use linerate_units::Nanos;
use std::collections::BTreeMap;

/// Between which offsets the true one is, nanoseconds: no message arrives before it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    low: i128,
    high: i128,
}

impl Bounds {
    /// What an exchange shows; none of times that cannot be.
    fn of(exchange: &ClockExchange) -> Option<Self> {
        let ClockExchange { origin_ns, receive_ns, transmit_ns, destination_ns } = *exchange;
        let less = |one: u64, other: u64| i128::from(one) - i128::from(other);
        let bounds = Self { low: less(transmit_ns, destination_ns), high: less(receive_ns, origin_ns) };
        (origin_ns <= destination_ns && receive_ns <= transmit_ns && bounds.low <= bounds.high).then_some(bounds)
    }

    /// The exchange with the shortest round trip, without the time that the host took to answer.
    fn narrowest(exchanges: &[ClockExchange]) -> Option<Self> {
        exchanges.iter().filter_map(Self::of).min_by_key(|bounds| bounds.high - bounds.low)
    }
}

/// Returns the offset of a host's clock in a trial, from the exchanges before and after it; none where one side has no exchange
/// that can be.
///
/// For an offset that does not change, half the round trip is a certain bound. Clocks drift, so the offset in the middle of the
/// trial is interpolated between the best exchange before and the best after, and the uncertainty covers what both allow.
pub fn clock_offset(before: &[ClockExchange], after: &[ClockExchange]) -> Option<ClockOffset> {
    let (one, other) = (Bounds::narrowest(before)?, Bounds::narrowest(after)?);
    // ((t2 - t1) + (t3 - t4)) / 2 of either, and their mean.
    let offset = (one.low + one.high + other.low + other.high).div_euclid(4);
    let (low, high) = (one.low.min(other.low), one.high.max(other.high));
    Some(ClockOffset {
        offset_ns: offset.try_into().ok()?,
        uncertainty: Nanos::new((high - offset).max(offset - low).try_into().ok()?),
        exchanges: (before.len() + after.len()).try_into().ok()?,
    })
}

/// Returns the clock of `to` less that of `from`, from their offsets to the runner. `None` if one of them is not known.
pub(crate) fn between(clocks: &BTreeMap<HostName, ClockOffset>, from: &HostName, to: &HostName) -> Option<ClockOffset> {
    let (from, to) = (clocks.get(from)?, clocks.get(to)?);
    Some(ClockOffset {
        offset_ns: to.offset_ns.checked_sub(from.offset_ns)?,
        uncertainty: Nanos::new(to.uncertainty.get().saturating_add(from.uncertainty.get())),
        exchanges: to.exchanges.min(from.exchanges),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An exchange that began at `origin_ns`, with a host whose clock is `offset` ahead, that took so long on each way.
    fn exchange(origin_ns: u64, offset: i64, there: u64, back: u64) -> ClockExchange {
        let receive_ns = (origin_ns + there).checked_add_signed(offset).expect("not before the boot");
        let transmit_ns = receive_ns + 5_000;
        let destination_ns = (transmit_ns + back).checked_add_signed(-offset).expect("not before the boot");
        ClockExchange { origin_ns, receive_ns, transmit_ns, destination_ns }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_shortest_round_trip_counts() {
        let slow = exchange(50 * SECOND, 7_000, 1_000, 90_000);
        let fast = exchange(51 * SECOND, 7_000, 1_000, 1_000);
        let found = clock_offset(&[slow, fast], &[fast]).expect("an offset");
        assert_eq!(found, ClockOffset { offset_ns: 7_000, uncertainty: Nanos::new(1_000), exchanges: 3 });
        let found = clock_offset(&[slow], &[slow]).expect("an offset");
        assert_eq!((found.offset_ns, found.uncertainty), (7_000 + 500 - 45_000, Nanos::new(45_500)));
    }

    #[test]
    fn drift_widens_the_uncertainty() {
        let before = exchange(50 * SECOND, -10_000, 2_000, 2_000);
        let after = exchange(60 * SECOND, 30_000, 1_000, 1_000);
        let found = clock_offset(&[before], &[after]).expect("an offset");
        assert_eq!((found.offset_ns, found.uncertainty), (10_000, Nanos::new(22_000)));
    }

    #[test]
    fn times_that_cannot_be_are_left_out() {
        let good = exchange(SECOND, 0, 10, 10);
        let late = ClockExchange { receive_ns: u64::MAX, transmit_ns: 0, ..good };
        let longer_than_the_round_trip = ClockExchange { transmit_ns: good.transmit_ns + SECOND, ..good };
        let backwards = ClockExchange { destination_ns: 0, ..good };
        for bad in [late, longer_than_the_round_trip, backwards] {
            assert_eq!(clock_offset(&[bad], &[good]), None);
            let found = clock_offset(&[bad, good], &[good, bad]).expect("the good ones");
            assert_eq!(found.offset_ns, 0);
        }
        assert_eq!(clock_offset(&[good], &[]), None);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_always_within_the_uncertainty(
            offset in -40_000_000_000i64..40_000_000_000,
            drift in -500_000i64..500_000,
            ways in prop::collection::vec((0u64..1_000_000, 0u64..1_000_000), 2..20),
            split in 1usize..19,
        ) {
            let exchanges = |ways: &[(u64, u64)], offset| -> Vec<ClockExchange> {
                let each = |(at, (there, back)): (usize, &(u64, u64))| {
                    exchange(50 * SECOND + at as u64 * 3_000_000, offset, *there, *back)
                };
                ways.iter().enumerate().map(each).collect()
            };
            let (before, after) = ways.split_at(split.min(ways.len() - 1));
            let found = clock_offset(&exchanges(before, offset), &exchanges(after, offset + drift)).expect("an offset");
            for truth in [offset, offset + drift / 2, offset + drift] {
                prop_assert!((found.offset_ns - truth).unsigned_abs() <= found.uncertainty.get());
            }
        }
    }
}
