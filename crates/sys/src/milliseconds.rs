//! Waits by calls that take whole milliseconds.

use crate::{Error, clock};

/// Waits by a call that takes whole milliseconds and returns the number of ready sockets. The rest of the timeout is polled without a sleep.
pub(crate) fn poll_in_milliseconds(
    timeout_ns: u64,
    mut poll: impl FnMut(i32) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let until = clock::now().saturating_add(timeout_ns);
    let mut left_ns = timeout_ns;
    loop {
        let ready = poll(i32::try_from(left_ns / 1_000_000).unwrap_or(i32::MAX))?;
        left_ns = until.saturating_sub(clock::now());
        if ready > 0 || left_ns == 0 {
            return Ok(ready);
        }
        if left_ns < 1_000_000 {
            std::thread::yield_now();
        }
    }
}
