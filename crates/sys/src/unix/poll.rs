//! Waits for descriptors by poll(2).

use crate::Error;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

pub(crate) use libc::{POLLIN, POLLOUT, pollfd as PollEntry};

/// Returns the entry of `socket` in a call of [`poll`].
pub(crate) fn poll_entry(socket: BorrowedFd<'_>, events: i16) -> PollEntry {
    PollEntry { fd: socket.as_raw_fd(), events, revents: 0 }
}

/// Waits until one of `entries` is ready, at most `timeout_ns`. Returns the number of those that are: none after a signal.
#[cfg(not(target_os = "macos"))]
pub(crate) fn poll(entries: &mut [PollEntry], timeout_ns: u64) -> Result<usize, Error> {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the pointer and the count are those of a live slice, the timeout outlives the call, and a null pointer is no mask of signals.
    let ready = unsafe {
        libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, &raw const timeout, std::ptr::null())
    };
    result("ppoll", ready)
}

/// Waits until one of `entries` is ready, at most `timeout_ns`. Returns the number of those that are.
#[cfg(target_os = "macos")]
pub(crate) fn poll(entries: &mut [PollEntry], timeout_ns: u64) -> Result<usize, Error> {
    crate::milliseconds::poll_in_milliseconds(timeout_ns, |timeout_ms| {
        // SAFETY: the pointer and the count are those of a live slice.
        let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, timeout_ms) };
        result("poll", ready)
    })
}

fn result(call: &'static str, ready: i32) -> Result<usize, Error> {
    if ready >= 0 {
        return Ok(ready.unsigned_abs() as usize);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        error => Err(Error::new(call, "sockets", error)),
    }
}
