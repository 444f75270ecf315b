//! Fields of the pages of a fleet, read and checked.

use super::cell::{HOUR, NO_SITE};
use crate::page_error::PageError;
use crate::query::Fields;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use linerate_store::{Level, Store};

/// Age from which a result counts as old, in hours, unless the reader chooses another.
const OLD_HOURS: u64 = 24;
/// Longest time that can be asked for, in hours.
const MOST_HOURS: u64 = 8_760;

/// Returns the current time, in nanoseconds since 1970.
pub(super) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or_default()
}

/// Part of a matrix that a reader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MatrixFields {
    pub(super) test: String,
    /// `None` if the reader has not chosen.
    pub(super) by: Option<Level>,
    /// Sites of the rows. `None` for all.
    pub(super) from: Option<String>,
    /// Sites of the columns. `None` for all.
    pub(super) to: Option<String>,
    /// Text in the names of hosts.
    pub(super) text: String,
    /// Page of rows, from 1.
    pub(super) row: usize,
    /// Page of columns, from 1.
    pub(super) column: usize,
    /// Age from which a result counts as old.
    pub(super) old_hours: u64,
}

impl MatrixFields {
    /// Reads the fields.
    ///
    /// # Errors
    /// A field holds something else than its kind of value.
    pub(super) fn read(fields: &Fields) -> Result<Self, PageError> {
        let by = match fields.one("by") {
            "" => None,
            "site" => Some(Level::Site),
            "host" => Some(Level::Host),
            other => return Err(PageError::Level(other.to_owned())),
        };
        Ok(Self {
            test: fields.one("test").to_owned(),
            by,
            from: site(fields.one("from")),
            to: site(fields.one("to")),
            text: fields.one("text").to_owned(),
            row: page(fields.one("row")),
            column: page(fields.one("column")),
            old_hours: hours(fields.one("old"))?,
        })
    }
}

/// Returns the site that a field names. Returns `None` for an empty field.
fn site(field: &str) -> Option<String> {
    match field {
        "" => None,
        NO_SITE => Some(String::new()),
        site => Some(site.to_owned()),
    }
}

/// Returns the number of a page, 1 for anything else.
fn page(field: &str) -> usize {
    field.parse().ok().filter(|page| *page > 0).unwrap_or(1)
}

fn hours(field: &str) -> Result<u64, PageError> {
    if field.is_empty() {
        return Ok(OLD_HOURS);
    }
    let hours = field.parse().ok().filter(|hours| (1..=MOST_HOURS).contains(hours));
    hours.ok_or_else(|| PageError::Hours(field.to_owned()))
}

/// Returns the time that a field names: `6h` before now, a day, or a day and a time (UTC). An empty field means 24 hours before now.
///
/// # Errors
/// The field holds no time.
pub(super) fn since(field: &str, now: u64) -> Result<u64, PageError> {
    if field.is_empty() {
        return Ok(now.saturating_sub(24 * HOUR));
    }
    if let Some(hours) = field.strip_suffix('h').and_then(|hours| hours.parse::<u64>().ok()) {
        let hours = Some(hours).filter(|hours| *hours <= MOST_HOURS);
        let hours = hours.ok_or_else(|| PageError::Since(field.to_owned()))?;
        return Ok(now.saturating_sub(hours * HOUR));
    }
    let day = field.parse::<Date>().ok().map(|date| date.at(0, 0, 0, 0));
    // A day parses as a time as well: at midnight.
    let time = field.parse::<DateTime>().ok().or(day);
    let instant =
        time.and_then(|time| time.to_zoned(TimeZone::UTC).ok()).map(|zoned| zoned.timestamp().as_nanosecond());
    match instant {
        Some(instant) => Ok(u64::try_from(instant.max(0)).unwrap_or(u64::MAX)),
        None => Err(PageError::Since(field.to_owned())),
    }
}

/// Returns the tests of the store and the chosen one. Returns `None` instead of a test if the store has none.
///
/// # Errors
/// The store has no results of the named test, or cannot be read.
pub(super) fn test(store: &Store, name: &str) -> Result<(Vec<String>, Option<String>), PageError> {
    let tests = store.tests()?;
    if name.is_empty() {
        let first = tests.first().cloned();
        return Ok((tests, first));
    }
    if tests.iter().any(|test| test == name) {
        Ok((tests, Some(name.to_owned())))
    } else {
        Err(PageError::NoTest(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<MatrixFields, PageError> {
        MatrixFields::read(&Fields::read(Some(query)))
    }

    #[test]
    fn fields_are_read() {
        let fields =
            read("test=stream+--udp&by=host&from=paris&to=(none)&row=3&column=2&old=48&text=web").expect("fields");
        assert_eq!((fields.test.as_str(), fields.by), ("stream --udp", Some(Level::Host)));
        assert_eq!((fields.from.as_deref(), fields.to.as_deref()), (Some("paris"), Some("")));
        assert_eq!((fields.row, fields.column, fields.old_hours, fields.text.as_str()), (3, 2, 48, "web"));
        assert_eq!(read("").expect("fields").old_hours, OLD_HOURS);
    }

    #[test]
    fn absurd_pages_are_the_first() {
        for page in ["0", "-1", "99999999999999999999999", "x", "1.5"] {
            assert_eq!(
                read(&format!("row={page}&column={page}")).map(|fields| (fields.row, fields.column)).ok(),
                Some((1, 1))
            );
        }
    }

    #[test]
    fn bad_fields_are_refused() {
        assert!(matches!(read("by=rack"), Err(PageError::Level(_))));
        for hours in ["0", "-5", "8761", "1e3", "soon", "99999999999999999999"] {
            assert!(matches!(read(&format!("old={hours}")), Err(PageError::Hours(_))), "{hours}");
        }
    }

    #[test]
    fn times_are_read_in_utc() {
        let now = 1_795_262_400_000_000_000;
        for (field, expected) in [
            ("", now - 24 * HOUR),
            ("6h", now - 6 * HOUR),
            ("2026-11-21", now - 12 * HOUR),
            ("2026-11-21T11:00", now - HOUR),
            ("1969-01-01", 0),
        ] {
            assert_eq!(since(field, now).ok(), Some(expected), "{field}");
        }
        for field in ["yesterday", "h", "-3h", "99999h", "2026-13-01", "2026-11-21T25:00"] {
            assert!(matches!(since(field, now), Err(PageError::Since(_))), "{field}");
        }
    }
}
