//! Hours of the day at which sessions are allowed.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_control::{ApiError, ErrorKind};
use linerate_units::{DayHours, Nanos};

/// Hours of the day at which sessions are allowed, in the local time of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHours {
    hours: DayHours,
    zone: TimeZone,
}

impl AllowedHours {
    /// Allows sessions at `hours` in the time zone of this host. The zone is read once: a confined agent cannot read it.
    pub fn local(hours: DayHours) -> Self {
        Self { hours, zone: TimeZone::system() }
    }

    /// Allows sessions at `hours` in `zone`.
    #[cfg(test)]
    pub(crate) fn in_zone(hours: DayHours, zone: TimeZone) -> Self {
        Self { hours, zone }
    }

    /// Checks that a session may begin at `now` and last for `time`. A session of unknown length ends at any time.
    ///
    /// # Errors
    /// It would be outside of the hours.
    pub(crate) fn check(&self, now: Timestamp, time: Option<Nanos>) -> Result<(), ApiError> {
        let local = now.to_zoned(self.zone.clone());
        let second = local.hour() as u32 * 3_600 + local.minute() as u32 * 60 + local.second() as u32;
        let hours = self.hours;
        let problem = match (self.hours.left(second), time) {
            (None, _) => String::from("now"),
            (Some(left), Some(time)) if time > Nanos::from_secs(u64::from(left)) => {
                format!("at the end of these {time}")
            }
            (Some(_), _) => return Ok(()),
        };
        Err(ApiError::new(
            ErrorKind::Limit,
            format!(
                "this agent allows trials from {hours} in its local time, and {problem} it is not: its clock shows {}; its owner \
                 sets this with `linerate serve --hours`",
                local.strftime("%H:%M:%S")
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::Offset;

    #[test]
    fn hours_are_those_of_the_agents_zone() {
        let zone = TimeZone::fixed(Offset::constant(2));
        let night = AllowedHours::in_zone("20:00-06:00".parse().expect("hours"), zone);
        let check = |utc: &str, time| night.check(utc.parse().expect("a time"), time).map_err(|error| error.message);
        let minute = Some(Nanos::from_secs(60));
        assert_eq!(check("2026-11-29T18:00:00Z", minute), Ok(()));
        assert_eq!(check("2026-11-30T03:59:00Z", minute), Ok(()));
        assert_eq!(check("2026-11-30T03:59:30Z", None), Ok(()));
        let early = check("2026-11-29T17:59:59Z", minute).expect_err("too early");
        assert!(early.contains("20:00-06:00") && early.contains("19:59:59") && early.contains("--hours"), "{early}");
        let late = check("2026-11-30T03:59:30Z", minute).expect_err("too long");
        assert!(late.contains("at the end of these 60 s") && late.contains("05:59:30"), "{late}");
    }
}
