//! Signs of whether a run is still being measured.
//!
//! The program that measures a run holds a lock that ends with the program, by `kill -9` too. Nothing is written while a trial
//! runs. A run without such a lock counts as alive if it began since this machine started, or came from a fleet, and was written
//! to recently.

use crate::sql::{SqlRow, UnexpectedColumn};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time without a write after which a run without a lock counts as killed. Its next trial, if any, marks it as running
/// again.
pub(crate) const SILENCE: Duration = Duration::from_secs(30 * 60);

/// Value of column `boot` for runs that are measured elsewhere and arrive as messages.
pub(crate) const FLEET: &str = "fleet";

/// Columns of a run in state `running` that show whether it is alive.
#[derive(Debug, Clone)]
pub(crate) struct Sign {
    pub(crate) number: i64,
    pub(crate) locked: bool,
    pub(crate) boot: String,
    pub(crate) changed_unix_ns: u64,
}

impl Sign {
    /// Columns of a sign.
    pub(crate) const COLUMNS: &str = "number, locked, boot, changed_unix_ns";

    pub(crate) fn read(row: &SqlRow) -> Result<Self, UnexpectedColumn> {
        Ok(Self {
            number: row.integer(0)?,
            locked: row.flag(1)?,
            boot: row.text(2)?.to_owned(),
            changed_unix_ns: row.instant(3)?,
        })
    }

    /// Returns whether the run counts as alive without a lock, at the place `boot`.
    pub(crate) fn is_alive_without_lock(&self, boot: &str, now_unix_ns: u64) -> bool {
        // A clock that stepped back does not count as silence.
        let silent = Duration::from_nanos(now_unix_ns.saturating_sub(self.changed_unix_ns)) >= SILENCE;
        !silent && (self.boot == boot || self.boot == FLEET)
    }
}

/// Returns the time in nanoseconds since 1970.
pub(crate) fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_silence_decide_without_lock() {
        let half_an_hour = SILENCE.as_nanos() as u64;
        let now = 10 * half_an_hour;
        let alive = |boot: &str, changed_unix_ns: u64| {
            let sign = Sign { number: 1, locked: false, boot: boot.into(), changed_unix_ns };
            sign.is_alive_without_lock("here", now)
        };
        assert!(alive("here", now) && alive("here", now - half_an_hour / 2));
        assert!(alive("here", now + half_an_hour), "the clock stepped back");
        assert!(!alive("here", now - half_an_hour));
        assert!(!alive("another", now));
        assert!(alive(FLEET, now) && !alive(FLEET, now - half_an_hour));
    }
}
