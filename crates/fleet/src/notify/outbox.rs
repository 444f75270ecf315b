//! Contract between a target's worker and its outbox.

use crate::endpoint::Delivery;
use linerate_schedule::Alert;
use std::time::Duration;

/// A request to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outgoing {
    /// Body in JSON.
    pub(super) body: Vec<u8>,
    /// Alerts in the body.
    pub(super) alerts: Vec<Alert>,
}

/// Alerts that wait for a target. Times are since the worker's start.
pub(super) trait Outbox: Send + 'static {
    /// Adds an alert that was raised, changed or resolved. Returns how many alerts were dropped to make room.
    fn put(&mut self, alert: Alert, now: Duration) -> usize;

    /// Returns the next request, if one is due. `unix_s` is the time of day.
    fn next(&self, now: Duration, unix_s: u64) -> Option<Outgoing>;

    /// Notes what became of a request.
    fn settle(&mut self, sent: &[Alert], delivery: &Delivery, now: Duration);

    /// Returns when the next request is due. Returns `None` if nothing waits.
    fn due(&self) -> Option<Duration>;

    /// Returns how many alerts wait for their first delivery.
    fn waiting(&self) -> usize;
}

/// Returns a time in the form of RFC 3339, in UTC.
pub(super) fn rfc3339(unix_s: u64) -> String {
    let seconds = i64::try_from(unix_s).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).to_string()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use linerate_schedule::{AlertKind, Subject};

    /// A firing alert of one pair.
    pub(in crate::notify) fn alert(id: &str) -> Alert {
        Alert {
            id: id.to_owned(),
            kind: AlertKind::LevelChanged,
            subject: Subject::Pair { from: "a".into(), to: "b".into() },
            members: vec![("a".into(), "b".into())],
            labels: [("mesh".to_owned(), "core".to_owned())].into(),
            summary: "a to b fell from 941 to 310 Mbit/s.".to_owned(),
            description: "Limited by a shaper.".to_owned(),
            since_unix_s: 1_800_000_000,
            resolved_unix_s: None,
        }
    }

    /// The alert of [`alert`], resolved.
    pub(in crate::notify) fn resolved(id: &str) -> Alert {
        Alert { resolved_unix_s: Some(1_800_000_600), ..alert(id) }
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(rfc3339(1_800_000_000), "2027-01-15T08:00:00Z");
        assert!(rfc3339(u64::MAX).starts_with("9999-12-30T"));
    }
}
