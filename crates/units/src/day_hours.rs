//! Hours of the day.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Seconds of a day.
const DAY: u32 = 24 * 3_600;

/// A span of the day in local time, as in `20:00-06:00`. It may include midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DayHours {
    /// Minutes after midnight.
    from: u16,
    /// Minutes after midnight; 1,440 for midnight at the end of the day.
    until: u16,
}

/// A text that names no hours of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseHoursError(String);

impl std::error::Error for ParseHoursError {}

impl fmt::Display for ParseHoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl DayHours {
    /// Returns the seconds that are left of the span at a time of the day, in seconds after midnight. Returns `None`
    /// outside of the span.
    pub fn left(self, second: u32) -> Option<u32> {
        let from = u32::from(self.from) * 60;
        let length = (u32::from(self.until) * 60 + DAY - from) % DAY;
        let since = (second % DAY + DAY - from) % DAY;
        let length = if length == 0 { DAY } else { length };
        length.checked_sub(since).filter(|left| *left > 0)
    }
}

impl FromStr for DayHours {
    type Err = ParseHoursError;

    fn from_str(text: &str) -> Result<Self, ParseHoursError> {
        let wrong = || ParseHoursError(format!("`{text}` is no span of hours; write it like 20:00-06:00"));
        let (from, until) = text.trim().split_once('-').ok_or_else(wrong)?;
        let from = minute(from).filter(|minute| u32::from(*minute) * 60 < DAY).ok_or_else(wrong)?;
        let until = minute(until).ok_or_else(wrong)?;
        if from == until {
            return Err(ParseHoursError(format!(
                "`{text}` begins and ends at the same time; for the whole day write 00:00-24:00"
            )));
        }
        Ok(Self { from, until })
    }
}

/// Reads a time of the day as minutes after midnight; `24:00` is its end.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let is_number = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hour) || !is_number(minute) || minute.len() != 2 {
        return None;
    }
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    (minute < 60 && (hour < 24 || (hour, minute) == (24, 0))).then_some(hour * 60 + minute)
}

impl fmt::Display for DayHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, until] = [self.from, self.until].map(|minute| (minute / 60, minute % 60));
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.0, from.1, until.0, until.1)
    }
}

impl TryFrom<String> for DayHours {
    type Error = ParseHoursError;

    fn try_from(text: String) -> Result<Self, ParseHoursError> {
        text.parse()
    }
}

impl From<DayHours> for String {
    fn from(hours: DayHours) -> Self {
        hours.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u32, minute: u32) -> u32 {
        hour * 3_600 + minute * 60
    }

    #[test]
    fn spans_may_include_midnight() {
        let night: DayHours = "20:00-06:00".parse().expect("hours");
        assert_eq!([night.left(at(20, 0)), night.left(at(5, 59))], [Some(at(10, 0)), Some(60)]);
        assert_eq!([night.left(at(6, 0)), night.left(at(12, 0)), night.left(at(19, 59))], [None; 3]);
        let day: DayHours = "8:30-17:00".parse().expect("hours");
        assert_eq!([day.left(at(8, 29)), day.left(at(8, 30)), day.left(at(17, 0))], [None, Some(at(8, 30)), None]);
        let evening: DayHours = "18:00-24:00".parse().expect("hours");
        assert_eq!([evening.left(DAY - 1), evening.left(0)], [Some(1), None]);
        let all: DayHours = "00:00-24:00".parse().expect("hours");
        assert_eq!([all.left(0), all.left(DAY - 1)], [Some(DAY), Some(1)]);
        assert_eq!(day.to_string(), "08:30-17:00");
    }

    #[test]
    fn texts_that_are_no_hours_are_refused() {
        for text in ["", "20:00", "20-06", "25:00-06:00", "20:60-06:00", "24:00-06:00", "20:0-06:00", "a:00-b:00"] {
            let error = text.parse::<DayHours>().expect_err(text).to_string();
            assert!(error.contains("20:00-06:00"), "{error}");
        }
        assert!("06:00-06:00".parse::<DayHours>().expect_err("empty").to_string().contains("00:00-24:00"));
    }
}
