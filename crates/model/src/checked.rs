//! Values that are checked when they are read, so that no sender of JSON can ask for what the command line refuses.

/// A value that is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutOfRange(pub(crate) String);

/// Checks that `value` is in `range`; `what` names it behind the number, as in "flows".
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    what: &str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<(), OutOfRange> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(OutOfRange(format!("{value} {what}: choose {} to {}", range.start(), range.end())))
}

/// No rate of bits, frames or operations is higher, per second, so that sums of many stay within 64 bits. Engines allow less.
pub(crate) const HIGHEST_RATE: u64 = 1_000_000_000_000_000;

/// Checks that a rate that was asked for is one; `what` names it, as in "calls per second".
pub(crate) fn rate(what: &str, per_second: u64) -> Result<(), OutOfRange> {
    within(what, per_second, 1..=HIGHEST_RATE)
}

/// Has types with a method `check` refuse what it refuses when they are read. Their fields are read by what serde derives under
/// `#[serde(remote = "Self")]`.
macro_rules! check_when_read {
    ($($name:ident),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Self::deserialize(deserializer)?;
                value.check().map_err(serde::de::Error::custom)?;
                Ok(value)
            }
        }
    )+};
}
pub(crate) use check_when_read;
