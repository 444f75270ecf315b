//! Hours of the day.

use std::fmt;
use std::str::FromStr;

/// Seconds of a day.
pub(crate) const DAY_S: u64 = 86_400;

/// Hours of the day, local time: spans of seconds since midnight, ordered, disjoint, each with an end after its begin.
///
/// Hours that wrap around midnight are two spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours(Vec<(u64, u64)>);

/// A text that names no hours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoursError {
    /// Not `HH:MM-HH:MM`.
    #[error("`{0}` is not a span of hours; write it like 20:00-06:00, several with commas")]
    NotHours(String),
    /// Begin and end are equal.
    #[error("`{0}` begins and ends at the same time, which is no hour or all hours; leave `hours` out for all hours")]
    Empty(String),
    /// Two spans overlap.
    #[error("`{0}` and `{1}` overlap; write one span for both")]
    Overlap(String, String),
}

impl Hours {
    /// The whole day.
    pub fn all_day() -> Self {
        Self(vec![(0, DAY_S)])
    }

    /// Returns whether a second of the day is within the hours.
    pub fn contains(&self, second: u64) -> bool {
        self.0.iter().any(|(begin, end)| (*begin..*end).contains(&second))
    }

    /// Returns the spans, in seconds since midnight.
    pub fn spans(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Returns the number of seconds a day.
    pub fn seconds(&self) -> u64 {
        self.0.iter().map(|(begin, end)| end - begin).sum()
    }

    /// Returns the hours in which a trial of `time_s` can begin so that it ends within them.
    ///
    /// Returns `None` if no span is long enough.
    pub fn shortened(&self, time_s: u64) -> Option<Self> {
        if self.seconds() == DAY_S {
            return Some(self.clone());
        }
        let wraps = self.0.last().is_some_and(|span| span.1 == DAY_S) && self.0.first().is_some_and(|span| span.0 == 0);
        let mut spans = Vec::new();
        for (index, (begin, end)) in self.0.iter().enumerate() {
            // The evening part of a span that goes on after midnight ends in the morning part.
            let after_midnight = if wraps && index + 1 == self.0.len() { self.0[0].1 } else { 0 };
            let last = (end + after_midnight).saturating_sub(time_s).min(*end);
            if last > *begin {
                spans.push((*begin, last));
            }
        }
        if spans.is_empty() { None } else { Some(Self(spans)) }
    }
}

impl FromStr for Hours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        let mut spans: Vec<(u64, u64, &str)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let not_hours = || HoursError::NotHours(part.to_owned());
            let (begin, end) = part.split_once('-').ok_or_else(not_hours)?;
            let begin = second_of_day(begin).ok_or_else(not_hours)?;
            let end = second_of_day(end).ok_or_else(not_hours)?;
            if begin % DAY_S == end % DAY_S {
                return Err(HoursError::Empty(part.to_owned()));
            }
            let begin = begin % DAY_S;
            if begin < end {
                spans.push((begin, end, part));
            } else {
                spans.push((begin, DAY_S, part));
                if end > 0 {
                    spans.push((0, end, part));
                }
            }
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            if pair[1].0 < pair[0].1 {
                return Err(HoursError::Overlap(pair[0].2.to_owned(), pair[1].2.to_owned()));
            }
        }
        Ok(Self(spans.into_iter().map(|(begin, end, _)| (begin, end)).collect()))
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (begin, end)) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let (from, to) = (begin / 60, end / 60);
            write!(f, "{comma}{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)?;
        }
        Ok(())
    }
}

/// Returns the second of the day of `HH:MM`. 24:00 is the end of the day.
fn second_of_day(text: &str) -> Option<u64> {
    let (hour, minute) = text.trim().split_once(':')?;
    if hour.len() != 2 || minute.len() != 2 {
        return None;
    }
    let hour: u64 = hour.parse().ok()?;
    let minute: u64 = minute.parse().ok()?;
    let second = hour * 3600 + minute * 60;
    (minute < 60 && second <= DAY_S).then_some(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_wrap_around_midnight() {
        let night: Hours = "20:00-06:00".parse().expect("hours");
        assert_eq!(night.spans(), [(0, 6 * 3600), (20 * 3600, DAY_S)]);
        assert!(
            night.contains(23 * 3600) && night.contains(0) && !night.contains(6 * 3600) && !night.contains(12 * 3600)
        );
        assert_eq!(night.seconds(), 10 * 3600);
        let early = night.shortened(3600).expect("hours are left");
        assert_eq!(early.spans(), [(0, 5 * 3600), (20 * 3600, DAY_S)]);
        assert_eq!("22:00-24:00".parse::<Hours>().expect("hours").spans(), [(22 * 3600, DAY_S)]);
        let two: Hours = "01:00-02:00, 12:00-13:30".parse().expect("hours");
        assert_eq!(two.to_string(), "01:00-02:00, 12:00-13:30");
        assert_eq!(two.shortened(3600).expect("one span is left").spans(), [(12 * 3600, 12 * 3600 + 1800)]);
        assert_eq!(two.shortened(2 * 3600), None);
    }

    #[test]
    fn empty_and_overlapping_hours_are_errors() {
        for text in ["20:00-20:00", "00:00-24:00"] {
            assert_eq!(text.parse::<Hours>(), Err(HoursError::Empty(text.to_owned())));
        }
        for text in ["", "8-9", "25:00-26:00", "08:60-09:00", "20:00"] {
            assert!(matches!(text.parse::<Hours>(), Err(HoursError::NotHours(_))), "{text}");
        }
        assert!(matches!("08:00-10:00,09:00-11:00".parse::<Hours>(), Err(HoursError::Overlap(..))));
    }
}
