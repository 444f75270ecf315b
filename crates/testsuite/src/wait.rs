//! Waits for conditions instead of fixed times.

use std::thread;
use std::time::{Duration, Instant};

/// Interval between two checks of a condition.
const POLL: Duration = Duration::from_millis(5);
/// Time after which a wait fails. It is ample even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until `done` returns a value, and returns it.
///
/// # Panics
/// A minute has passed. The message has `what`.
pub fn wait_until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what}: not within {DEADLINE:?}");
        thread::sleep(POLL);
    }
}
