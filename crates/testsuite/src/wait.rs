//! Waiting for a condition, instead of for a time.

use std::thread;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(5);
/// No condition of a test takes so long, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until `done` returns a value, and returns it.
///
/// # Panics
/// A minute has passed; the message says `what` was waited for.
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
