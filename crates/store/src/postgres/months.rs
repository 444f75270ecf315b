//! Months, by which the tables of bodies are partitioned.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// A month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Month(Date);

impl Month {
    /// Returns the month of a time. Returns `None` outside the years that have partitions of their own: those rows are in the default
    /// partition, so that records with a wrong clock do not make partitions.
    pub(super) fn of(unix_ns: u64) -> Option<Self> {
        let time = Timestamp::from_nanosecond(unix_ns.into()).ok()?;
        let date = time.to_zoned(TimeZone::UTC).date();
        (2020..2100).contains(&date.year()).then(|| Self(date.first_of_month()))
    }

    /// Reads the end of the name of a partition, as in `2026_11`.
    pub(super) fn of_suffix(suffix: &str) -> Option<Self> {
        let (year, month) = suffix.split_once('_')?;
        Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok().map(Self)
    }

    /// Returns the end of the name of its partitions.
    pub(super) fn suffix(self) -> String {
        format!("{:04}_{:02}", self.0.year(), self.0.month())
    }

    /// Returns its first nanosecond since 1970.
    pub(super) fn start_unix_ns(self) -> i64 {
        let start = self.0.to_zoned(TimeZone::UTC).expect("midnight exists in UTC");
        i64::try_from(start.timestamp().as_nanosecond()).expect("the years of partitions are before 2262")
    }

    pub(super) fn next(self) -> Self {
        Self(self.0.checked_add(1.month()).expect("the years of partitions are before 9999"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_follow_each_other_without_gap() {
        let december = Month::of(1_795_253_400_123_456_789 + 30 * 86_400_000_000_000).expect("2026");
        assert_eq!(december.suffix(), "2026_12");
        assert_eq!(december.next().suffix(), "2027_01");
        assert_eq!(Month::of(december.next().start_unix_ns() as u64 - 1), Some(december));
        assert_eq!(Month::of_suffix("2026_12"), Some(december));
        assert_eq!((Month::of(1), Month::of(u64::MAX)), (None, None));
    }
}
