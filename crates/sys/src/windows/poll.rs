//! Waits for sockets by WSAPoll.

use crate::Error;
use crate::milliseconds::poll_in_milliseconds;
use std::os::windows::io::{AsRawSocket as _, BorrowedSocket};
use std::thread;
use std::time::Duration;
use windows_sys::Win32::Networking::WinSock::{SOCKET, WSAPoll};

pub(crate) use windows_sys::Win32::Networking::WinSock::{POLLIN, POLLOUT, WSAPOLLFD as PollEntry};

/// Returns the entry of `socket` in a call of [`poll`].
pub(crate) fn poll_entry(socket: BorrowedSocket<'_>, events: i16) -> PollEntry {
    PollEntry { fd: socket.as_raw_socket() as SOCKET, events, revents: 0 }
}

/// Waits until one of `entries` is ready, at most `timeout_ns`. Returns the number of those that are.
pub(crate) fn poll(entries: &mut [PollEntry], timeout_ns: u64) -> Result<usize, Error> {
    if entries.is_empty() {
        // WSAPoll refuses an empty list.
        thread::sleep(Duration::from_nanos(timeout_ns));
        return Ok(0);
    }
    let count = u32::try_from(entries.len()).expect("fewer sockets than 2^32");
    poll_in_milliseconds(timeout_ns, |timeout_ms| {
        // SAFETY: the pointer and the count are those of a live slice. The owners of the sockets answer for the handles: one that is
        // closed is reported as POLLNVAL.
        let ready = unsafe { WSAPoll(entries.as_mut_ptr(), count, timeout_ms) };
        if ready < 0 { Err(Error::last("WSAPoll", "sockets")) } else { Ok(ready.unsigned_abs() as usize) }
    })
}
