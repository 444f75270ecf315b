//! The runner's clock: it begins with the system's time and advances with the runtime's clock.

use linerate_units::Nanos;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Clock of the time since 1970. Corrections of the system's clock do not move it, and it follows the runtime's clock
/// if that is simulated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    began_unix: Nanos,
    began: Instant,
}

impl Clock {
    /// Begins a clock with the system's time.
    pub(crate) fn begin() -> Self {
        let began_unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(Nanos::default(), Nanos::from);
        Self { began_unix, began: Instant::now() }
    }

    /// Returns the time since 1970.
    pub(crate) fn now(&self) -> Nanos {
        self.began_unix + self.began.elapsed().into()
    }
}
