//! The time of the runner: begun from the system's clock, and kept by the runtime's.

use linerate_units::Nanos;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Tells the time since 1970. No correction of the system's clock moves it, and where the runtime's clock is simulated it goes
/// by that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    began_unix: Nanos,
    began: Instant,
}

impl Clock {
    /// A clock that begins with the system's time.
    pub(crate) fn begin() -> Self {
        let began_unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(Nanos::default(), Nanos::from);
        Self { began_unix, began: Instant::now() }
    }

    /// Nanoseconds since 1970.
    pub(crate) fn now(&self) -> Nanos {
        self.began_unix + self.began.elapsed().into()
    }
}
